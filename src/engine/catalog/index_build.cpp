#include "engine/catalog/index_build.h"

#include "engine/catalog/index_rules.h"
#include "engine/collection/records.h"

#include <algorithm>

namespace angelia::engine {

namespace {

constexpr std::int64_t kBuildInsideDocumentsMax = 1000;  // less is faster inside than read twice

/// Two neighbours with the same key and different records break uniqueness.
Result<void> check_built_unique(const storage::Reader& reader, const Collection& collection,
                                const Index& index, const BuiltIndexes::Entries& entries) {
    for (std::size_t i = 1; i < entries.keys.size(); ++i) {
        const auto& [key, record] = entries.keys[i];
        if (key != entries.keys[i - 1].first || record == entries.keys[i - 1].second) continue;
        std::string value;
        ANGELIA_TRY_ASSIGN(bool there, read_record(reader, collection.id, record, value));
        if (!there) continue;
        return duplicate_key_error(collection, index,
                                   bson::DocumentView(storage::record_document(value)), key);
    }
    return {};
}

}  // namespace

bool BuiltIndexes::holds_for(const Collection& other) const {
    return other.id == collection && other.index_generation == index_generation &&
           other.live->version.load() == version;
}

Result<BuiltIndexes> build_indexes(const storage::Reader& reader, const CollectionPtr& collection,
                                   const std::vector<IndexSpec>& specs) {
    BuiltIndexes built;
    built.collection = collection->id;
    built.version = collection->live->version.load();
    built.index_generation = collection->index_generation;
    built.indexes.resize(specs.size());
    std::vector<IndexPtr> indexes;
    for (const auto& spec : specs) {
        ANGELIA_TRY_ASSIGN(auto index, make_index(0, spec, false));
        indexes.push_back(std::move(index));
    }
    const auto prefix = storage::record_prefix(collection->id);
    auto it = reader.iterate(storage::Family::Records, prefix, storage::prefix_end(prefix));
    for (it->seek_to_first(); it->valid(); it->next()) {
        const bson::DocumentView document(storage::record_document(it->value()));
        const auto record = storage::record_id_of(it->key());
        for (std::size_t i = 0; i < indexes.size(); ++i) {
            ANGELIA_TRY_ASSIGN(auto keys, keys_in_index(*indexes[i], document));
            built.indexes[i].multikey = built.indexes[i].multikey || keys.multikey;
            for (auto& key : keys.keys) built.indexes[i].keys.emplace_back(std::move(key), record);
        }
    }
    ANGELIA_TRY(it->status());
    for (std::size_t i = 0; i < indexes.size(); ++i) {
        std::sort(built.indexes[i].keys.begin(), built.indexes[i].keys.end());
        if (specs[i].unique)
            ANGELIA_TRY(check_built_unique(reader, *collection, *indexes[i], built.indexes[i]));
    }
    return built;
}

Result<std::optional<BuiltIndexes>> build_outside(Core& core, const Namespace& ns,
                                                  const std::vector<IndexSpec>& requested) {
    std::optional<BuiltIndexes> built;
    auto collection = core.catalog.find(ns);
    if (!collection || collection->live->count.load() <= kBuildInsideDocumentsMax) return built;
    ANGELIA_TRY_ASSIGN(auto fresh, new_index_specs(*collection, requested));
    if (fresh.empty()) return built;
    auto result = build_indexes(core.storage->latest(), collection, fresh);
    // Inside, the error comes again if it is still true.
    if (result) built = std::move(result).value();
    return built;
}

Result<void> install_indexes(ApplyScope& scope, const CollectionPtr& collection,
                             const std::vector<IndexSpec>& specs, const BuiltIndexes& built) {
    auto changed = copy_collection(*collection);
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const auto id = scope.next_id();
        ANGELIA_TRY_ASSIGN(auto index, make_index(id, specs[i], built.indexes[i].multikey));
        for (const auto& [key, record] : built.indexes[i].keys) {
            if (specs[i].unique)
                scope.section().put(storage::Family::Indexes, storage::unique_entry(id, key),
                                    storage::encode_record_id(record));
            else
                scope.section().put(storage::Family::Indexes, storage::index_entry(id, key, record),
                                    {});
        }
        changed->indexes.push_back(std::move(index));
    }
    changed->index_generation = scope.core().catalog.next_generation();
    refresh_index_infos(*changed);
    scope.replace_collection(std::move(changed));
    return {};
}

}  // namespace angelia::engine
