#include "engine/catalog/modify.h"

#include "engine/catalog/index_rules.h"
#include "engine/collection/apply_scope.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>

namespace angelia::engine {

namespace {

constexpr std::string_view kImagesOption = "changeStreamPreAndPostImages";

Result<std::size_t> find_changed_index(const Collection& collection,
                                       const CollectionChange::IndexChange& change) {
    std::optional<std::size_t> position;
    if (!change.name.empty()) {
        position = collection.index_named(change.name);
    } else {
        for (std::size_t i = 0; i < collection.indexes.size() && !position; ++i)
            if (same_key_pattern(collection.indexes[i]->spec.key, change.key)) position = i;
    }
    if (!position)
        return Error(ErrorCode::IndexNotFound,
                     fmt::format("cannot find index {} for ns {}",
                                 change.name.empty() ? bson::to_json(change.key) : change.name,
                                 collection.ns.full()));
    return *position;
}

bson::Document without_field(bson::DocumentView document, std::string_view field) {
    bson::Builder b;
    for (const auto& element : document)
        if (element.key != field) b.add(element.key, element.value);
    return b.take();
}

/// The index with its changed specification; the entries stay as they are.
Result<IndexPtr> change_index(const Index& old, const CollectionChange::IndexChange& change) {
    auto index = std::make_shared<Index>();
    index->id = old.id;
    index->spec = copy_spec(old.spec);
    index->pattern = old.pattern;
    index->partial = old.partial;
    index->multikey = old.multikey;
    index->gaps = old.gaps;
    if (change.expire_after_seconds) {
        index->spec.expire_after_seconds = change.expire_after_seconds;
        if (auto allowed = check_index_spec(index->spec); !allowed)
            return Error(ErrorCode::InvalidOptions, std::move(allowed).error().message);
    }
    if (change.hidden) {
        if (*change.hidden && old.spec.name == "_id_")
            return Error(ErrorCode::BadValue, "can't hide _id index");
        bson::Builder extra;
        extra.add_all(without_field(old.spec.extra, "hidden"));
        if (*change.hidden) extra.add("hidden", true);
        index->spec.extra = extra.take();
    }
    return IndexPtr(std::move(index));
}

bson::Document index_change_document(const Index& index,
                                     const CollectionChange::IndexChange& change) {
    bson::Builder b;
    b.add("name", index.spec.name);
    if (change.expire_after_seconds) b.add("expireAfterSeconds", *change.expire_after_seconds);
    if (change.hidden) b.add("hidden", *change.hidden);
    return b.take();
}

CollectionChanged note_old_index(const Index& old, const CollectionChange::IndexChange& change) {
    CollectionChanged changed;
    if (change.expire_after_seconds) {
        changed.expire_old = old.spec.expire_after_seconds;
        changed.expire_new = change.expire_after_seconds;
    }
    const bool was_hidden = old.spec.extra["hidden"].truthy();
    if (change.hidden && *change.hidden != was_hidden) {
        changed.hidden_old = was_hidden;
        changed.hidden_new = change.hidden;
    }
    return changed;
}

/// What a `modify` event tells of the time before.
void add_state_before(bson::Builder& b, const Collection& collection, const Index* index,
                      const CollectionChange& change) {
    const auto& uuid = collection.uuid;
    b.open("before").open("collectionOptions");
    b.add("uuid", bson::BinaryView{4, {reinterpret_cast<const char*>(uuid.data()), uuid.size()}});
    b.add_all(collection.options).close();
    if (index) {
        b.open("indexOptions");
        if (change.index->expire_after_seconds && index->spec.expire_after_seconds)
            b.add("expireAfterSeconds", *index->spec.expire_after_seconds);
        if (change.index->hidden) b.add("hidden", index->spec.extra["hidden"].truthy());
        b.close();
    }
    b.close();
}

void set_images(Collection& collection, bool enabled) {
    bson::Builder options;
    options.add_all(without_field(collection.options, kImagesOption));
    if (enabled) options.add(kImagesOption, bson::make("enabled", true));
    collection.options = options.take();
    collection.keeps_images = enabled;
}

}  // namespace

Result<Committed<CollectionChanged>> modify_collection(Core& core, const Namespace& ns,
                                                       const CollectionChange& change,
                                                       WaiterId waiter) {
    ANGELIA_TRY(core.check_open());
    ApplyScope scope(core, waiter);
    const auto collection = scope.collection(ns);
    if (!collection)
        return Error(ErrorCode::NamespaceNotFound, fmt::format("ns does not exist: {}", ns.full()));
    ANGELIA_TRY(scope.need_collection_free(*collection));
    auto made = copy_collection(*collection);
    CollectionChanged changed;
    IndexPtr old;
    bson::Builder payload;
    payload.add("collMod", ns.collection).open("change");
    if (change.index) {
        ANGELIA_TRY_ASSIGN(const std::size_t at, find_changed_index(*collection, *change.index));
        old = collection->indexes[at];
        ANGELIA_TRY_ASSIGN(made->indexes[at], change_index(*old, *change.index));
        changed = note_old_index(*old, *change.index);
        payload.add("index", index_change_document(*old, *change.index));
    }
    if (change.keep_images) {
        set_images(*made, *change.keep_images);
        payload.add(kImagesOption, bson::make("enabled", *change.keep_images));
    }
    payload.close();
    add_state_before(payload, *collection, old.get(), change);
    refresh_index_infos(*made);
    scope.replace_collection(std::move(made));
    scope.log_command(ns.db, ns.collection, collection->id, collection->uuid, payload.take());
    ANGELIA_TRY_ASSIGN(auto position, scope.commit(nullptr, {}));
    changed.operation_time = position.time;
    return Committed<CollectionChanged>{changed, position};
}

Result<Committed<bool>> rename_collection(Core& core, const Namespace& from, const Namespace& to,
                                          const RenameOptions& options, WaiterId waiter) {
    ANGELIA_TRY(core.check_open());
    ANGELIA_TRY(check_namespace(to));
    ApplyScope scope(core, waiter);
    const auto collection = scope.collection(from);
    if (!collection)
        return Error(ErrorCode::NamespaceNotFound,
                     fmt::format("Source collection {} does not exist", from.full()));
    if (from == to)
        return Error(ErrorCode::IllegalOperation, "Can't rename a collection to itself");
    const auto target = scope.collection(to);
    if (target &&
        (!options.drop_target || (options.target_uuid && *options.target_uuid != target->uuid)))
        return Error(ErrorCode::NamespaceExists,
                     fmt::format("target namespace exists: {}", to.full()));
    ANGELIA_TRY(scope.need_collection_free(*collection));
    if (target) ANGELIA_TRY(scope.need_collection_free(*target));
    bson::Builder payload;
    payload.add("renameCollection", from.collection);
    payload.add("to", bson::make("db", to.db, "coll", to.collection));
    if (target) {
        const auto& uuid = target->uuid;
        payload.add("dropTarget",
                    bson::BinaryView{4, {reinterpret_cast<const char*>(uuid.data()), uuid.size()}});
        scope.erase_collection(target);
    }
    ANGELIA_TRY(scope.rename_collection(collection, to));
    scope.log_command(from.db, from.collection, collection->id, collection->uuid, payload.take());
    ANGELIA_TRY_ASSIGN(auto position, scope.commit(nullptr, {}));
    return Committed<bool>{target != nullptr, position};
}

}  // namespace angelia::engine
