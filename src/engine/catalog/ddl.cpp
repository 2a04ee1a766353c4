#include "engine/catalog/ddl.h"

#include "engine/catalog/index_build.h"
#include "engine/catalog/index_rules.h"
#include "engine/collection/apply_scope.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine {

namespace {

Error collection_missing(const Namespace& ns) {
    return Error(ErrorCode::NamespaceNotFound, fmt::format("ns not found {}", ns.full()));
}

void log_drop(ApplyScope& scope, const Collection& collection) {
    scope.log_command(collection.ns.db, collection.ns.collection, collection.id, collection.uuid,
                      bson::make("drop", collection.ns.collection));
}

/// Positions of the indexes that `which` names. Errors: IndexNotFound, InvalidOptions,
/// TypeMismatch.
Result<std::vector<std::size_t>> select_indexes(const Collection& collection,
                                                bson::ValueView which) {
    std::vector<std::size_t> selected;
    auto add = [&](std::optional<std::size_t> position,
                   const std::string& missing) -> Result<void> {
        if (!position) return Error(ErrorCode::IndexNotFound, missing);
        if (*position == 0) return Error(ErrorCode::InvalidOptions, "cannot drop _id index");
        selected.push_back(*position);
        return {};
    };
    auto add_name = [&](std::string_view name) {
        return add(collection.index_named(name),
                   fmt::format("index not found with name [{}]", name));
    };
    if (auto name = which.get_string()) {
        if (*name != "*") {
            ANGELIA_TRY(add_name(*name));
            return selected;
        }
        for (std::size_t i = 1; i < collection.indexes.size(); ++i) selected.push_back(i);
        return selected;
    }
    if (auto names = which.get_array()) {
        for (const auto& element : *names) {
            const auto name = element.value.get_string();
            if (!name)
                return Error(ErrorCode::TypeMismatch,
                             "dropIndexes: an array of index names may only hold strings");
            ANGELIA_TRY(add_name(*name));
        }
        return selected;
    }
    if (auto key = which.get_document()) {
        std::optional<std::size_t> position;
        for (std::size_t i = 0; i < collection.indexes.size() && !position; ++i)
            if (same_key_pattern(collection.indexes[i]->spec.key, *key)) position = i;
        ANGELIA_TRY(
            add(position, fmt::format("can't find index with key: {}", bson::to_json(*key))));
        return selected;
    }
    return Error(ErrorCode::TypeMismatch,
                 "dropIndexes: 'index' must be a string, an object or an array of strings");
}

}  // namespace

Result<Committed<bool>> create_collection(Core& core, const Namespace& ns,
                                          const bson::Document& options, WaiterId waiter) {
    ANGELIA_TRY(core.check_open());
    ANGELIA_TRY(check_namespace(ns));
    ApplyScope scope(core, waiter);
    ANGELIA_TRY(scope.create_collection(ns, options));
    ANGELIA_TRY_ASSIGN(auto position, scope.commit(nullptr, {}));
    return Committed<bool>{true, position};
}

Result<Committed<std::int32_t>> drop_collection(Core& core, const Namespace& ns, WaiterId waiter) {
    ANGELIA_TRY(core.check_open());
    ApplyScope scope(core, waiter);
    auto collection = scope.collection(ns);
    if (!collection) return collection_missing(ns);
    ANGELIA_TRY(scope.need_collection_free(*collection));
    scope.erase_collection(collection);
    log_drop(scope, *collection);
    ANGELIA_TRY_ASSIGN(auto position, scope.commit(nullptr, {}));
    return Committed<std::int32_t>{static_cast<std::int32_t>(collection->indexes.size()), position};
}

Result<Committed<bool>> drop_database(Core& core, const std::string& db, WaiterId waiter) {
    ANGELIA_TRY(core.check_open());
    ApplyScope scope(core, waiter);
    const auto collections = scope.view().in_database(db);
    if (collections.empty()) return Committed<bool>{false, core.storage->applied()};
    for (const auto& collection : collections) ANGELIA_TRY(scope.need_collection_free(*collection));
    for (const auto& collection : collections) {
        scope.erase_collection(collection);
        log_drop(scope, *collection);
    }
    scope.log_command(db, "", 0, Uuid{}, bson::make("dropDatabase", std::int32_t{1}));
    ANGELIA_TRY_ASSIGN(auto position, scope.commit(nullptr, {}));
    return Committed<bool>{true, position};
}

Result<Committed<IndexBuild>> create_indexes(Core& core, const Namespace& ns,
                                             const std::vector<IndexSpec>& specs, WaiterId waiter) {
    ANGELIA_TRY(check_namespace(ns));
    for (const auto& spec : specs) ANGELIA_TRY(check_index_spec(spec));
    // A large collection is read outside first; writers that come in between make that worthless,
    // so after some tries they wait.
    constexpr int kBuildsOutsideMax = 2;
    for (int attempt = 0;; ++attempt) {
        ANGELIA_TRY(core.check_open());
        std::optional<BuiltIndexes> built;
        if (attempt < kBuildsOutsideMax) {
            ANGELIA_TRY_ASSIGN(built, build_outside(core, ns, specs));
        }

        ApplyScope scope(core, waiter);
        IndexBuild build;
        auto collection = scope.collection(ns);
        if (!collection) {
            ANGELIA_TRY_ASSIGN(collection, scope.create_collection(ns, bson::Document()));
            build.created_collection = true;
        }
        ANGELIA_TRY_ASSIGN(auto fresh, new_index_specs(*collection, specs));
        build.before = static_cast<std::int32_t>(collection->indexes.size());
        build.after = build.before + static_cast<std::int32_t>(fresh.size());
        build.all_existed = fresh.empty();
        if (fresh.empty() && !scope.changed())
            return Committed<IndexBuild>{build, core.storage->applied()};
        if (!fresh.empty()) {
            ANGELIA_TRY(scope.need_collection_free(*collection));
            if (built && !built->holds_for(*collection)) {
                if (attempt + 1 < kBuildsOutsideMax) continue;
                built.reset();
            }
            if (!built) {
                ANGELIA_TRY_ASSIGN(built, build_indexes(scope.section(), collection, fresh));
            }
            ANGELIA_TRY(install_indexes(scope, collection, fresh, *built));
            scope.log_command(ns.db, ns.collection, collection->id, collection->uuid,
                              indexes_payload("createIndexes", ns.collection, fresh));
        }
        ANGELIA_TRY_ASSIGN(auto position, scope.commit(nullptr, {}));
        build.operation_time = position.time;
        return Committed<IndexBuild>{build, position};
    }
}

Result<Committed<std::int32_t>> drop_indexes(Core& core, const Namespace& ns, bson::ValueView which,
                                             WaiterId waiter) {
    ANGELIA_TRY(core.check_open());
    ApplyScope scope(core, waiter);
    auto collection = scope.collection(ns);
    if (!collection) return collection_missing(ns);
    const auto before = static_cast<std::int32_t>(collection->indexes.size());
    ANGELIA_TRY_ASSIGN(auto selected, select_indexes(*collection, which));
    if (selected.empty()) return Committed<std::int32_t>{before, core.storage->applied()};
    ANGELIA_TRY(scope.need_collection_free(*collection));
    auto changed = copy_collection(*collection);
    changed->indexes.clear();
    std::vector<IndexSpec> dropped;
    for (std::size_t i = 0; i < collection->indexes.size(); ++i) {
        const auto& index = collection->indexes[i];
        if (std::find(selected.begin(), selected.end(), i) == selected.end()) {
            changed->indexes.push_back(index);
            continue;
        }
        dropped.push_back(copy_spec(index->spec));
        const auto prefix = storage::index_prefix(index->id);
        scope.section().erase_range(storage::Family::Indexes, prefix, storage::prefix_end(prefix));
    }
    changed->index_generation = core.catalog.next_generation();
    refresh_index_infos(*changed);
    scope.replace_collection(std::move(changed));
    scope.log_command(ns.db, ns.collection, collection->id, collection->uuid,
                      indexes_payload("dropIndexes", ns.collection, dropped));
    ANGELIA_TRY_ASSIGN(auto position, scope.commit(nullptr, {}));
    return Committed<std::int32_t>{before, position};
}

}  // namespace angelia::engine
