// Records and their index entries change together.
#include "engine/collection/records.h"

#include "engine/query/disambiguated_paths.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine {

namespace {

Result<void> check_unique(WriteScope& scope, const Collection& collection, const Index& index,
                          bson::DocumentView document, std::string_view encoded,
                          storage::RecordId own) {
    if (!index.spec.unique) return {};
    ANGELIA_TRY(scope.touch_unique(index, encoded));
    std::string value;
    ANGELIA_TRY_ASSIGN(bool taken,
                       scope.reader().get(storage::Family::Indexes,
                                          storage::unique_entry(index.id, encoded), value));
    if (taken && storage::decode_record_id(value) != own)
        return duplicate_key_error(collection, index, document, encoded);
    return {};
}

/// True when the fields of the index hold the same bytes in both documents: then so do the keys.
bool same_indexed_fields(const Index& index, bson::DocumentView a, bson::DocumentView b) {
    if (index.partial) return false;
    return std::all_of(index.pattern.fields.begin(), index.pattern.fields.end(),
                       [&](const auto& field) {
                           return a.find(field.path.front()).identical(b.find(field.path.front()));
                       });
}

bson::Document describe_update(const query::UpdateDescription& description,
                               bson::DocumentView before, bson::DocumentView after) {
    bson::Builder b;
    b.add("updatedFields", description.updated_fields)
        .add("removedFields", description.removed_fields)
        .add("truncatedArrays", description.truncated_arrays);
    const auto paths = query::disambiguated_paths(description, before, after);
    if (!paths.empty()) b.add("disambiguatedPaths", paths);
    return b.take();
}

}  // namespace

Result<query::IndexKeys> keys_in_index(const Index& index, bson::DocumentView document) {
    if (index.partial && !index.partial->matches(document)) return query::IndexKeys{};
    return query::index_keys(index.pattern, document, index.spec.sparse);
}

Result<KeysOfDocument> keys_of_document(const Collection& collection, bson::DocumentView document) {
    KeysOfDocument all;
    all.reserve(collection.indexes.size());
    for (const auto& index : collection.indexes) {
        ANGELIA_TRY_ASSIGN(auto keys, keys_in_index(*index, document));
        all.push_back(std::move(keys));
    }
    return all;
}

Result<bson::Document> prepare_insert(bson::Document document) {
    if (document.size_bytes() > bson::kDocumentBytesMax)
        return Error(ErrorCode::BSONObjectTooLarge,
                     fmt::format("object to insert too large. size in bytes: {}, max size: {}",
                                 document.size_bytes(), bson::kDocumentBytesMax));
    const auto view = document.view();
    bson::ValueView id;
    std::size_t position = 0, id_position = 0;
    for (const auto& element : view) {
        if (element.key == "_id") {
            if (id)
                return Error(ErrorCode::BadValue, "can't have multiple _id fields in one document");
            id = element.value;
            id_position = position;
        }
        ++position;
    }
    if (id) {
        ANGELIA_TRY(query::check_id(id));
        if (id_position == 0) return document;
    }
    bson::Builder b;
    if (id)
        b.add("_id", id);
    else
        b.add("_id", bson::ObjectId::generate());
    for (const auto& element : view)
        if (element.key != "_id") b.add(element.key, element.value);
    return b.take();
}

Result<bool> read_record(const storage::Reader& reader, storage::CollectionId collection,
                         storage::RecordId record, std::string& value) {
    return reader.get(storage::Family::Records, storage::record_key(collection, record), value);
}

Result<std::optional<storage::RecordId>> find_record_by_id(const storage::Reader& reader,
                                                           const Collection& collection,
                                                           bson::ValueView id) {
    std::string encoded, value;
    query::append_key(encoded, id);
    std::optional<storage::RecordId> record;
    ANGELIA_TRY_ASSIGN(bool found,
                       reader.get(storage::Family::Indexes,
                                  storage::unique_entry(collection.id_index().id, encoded), value));
    if (found) record = storage::decode_record_id(value);
    return record;
}

Result<void> insert_record(WriteScope& scope, const Namespace& ns, bson::Document& document,
                           PreparedKeys* keys, const WriteScope::RetryReference& retry) {
    auto collection = scope.collection(ns);
    ANGELIA_TRY(scope.touch_collection(*collection));
    if (query::has_empty_timestamp(document)) {
        document = query::fill_empty_timestamps(document, [&] { return scope.stamp(); });
        keys = nullptr;
    }
    KeysOfDocument own;
    if (!keys || keys->index_generation != collection->index_generation) {
        ANGELIA_TRY_ASSIGN(own, keys_of_document(*collection, document));
    }
    const KeysOfDocument& all = own.empty() ? keys->keys : own;

    for (std::size_t i = 0; i < all.size(); ++i)
        for (const auto& key : all[i].keys)
            ANGELIA_TRY(
                check_unique(scope, *collection, *collection->indexes[i], document, key, 0));

    const auto record = scope.allocate_record(collection);
    scope.put_record(collection, record, document.bytes(), true);
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (const auto& key : all[i].keys)
            scope.put_index_entry(*collection->indexes[i], key, record);
        if (all[i].multikey && !collection->indexes[i]->multikey)
            scope.mark_multikey(collection, i);
    }
    scope.count(collection, 1, static_cast<std::int64_t>(document.size_bytes()));
    scope.log(OpKind::Insert, *collection, document.view()["_id"], document, retry, {});
    return {};
}

Result<void> replace_record(WriteScope& scope, const Namespace& ns, storage::RecordId record,
                            bson::DocumentView before, bson::Document& after,
                            const query::UpdateDescription* description,
                            const WriteScope::RetryReference& retry) {
    auto collection = scope.collection(ns);
    ANGELIA_TRY(scope.touch_collection(*collection));
    ANGELIA_TRY(scope.touch_record(*collection, record));
    if (!description && query::has_empty_timestamp(after))
        after = query::fill_empty_timestamps(after, [&] { return scope.stamp(); });
    for (std::size_t i = 0; i < collection->indexes.size(); ++i) {
        const Index& index = *collection->indexes[i];
        if (same_indexed_fields(index, before, after)) continue;
        ANGELIA_TRY_ASSIGN(auto old_keys, keys_in_index(index, before));
        ANGELIA_TRY_ASSIGN(auto new_keys, keys_in_index(index, after));
        std::vector<std::string> gone, added;
        std::set_difference(old_keys.keys.begin(), old_keys.keys.end(), new_keys.keys.begin(),
                            new_keys.keys.end(), std::back_inserter(gone));
        std::set_difference(new_keys.keys.begin(), new_keys.keys.end(), old_keys.keys.begin(),
                            old_keys.keys.end(), std::back_inserter(added));
        for (const auto& key : added)
            ANGELIA_TRY(check_unique(scope, *collection, index, after, key, record));
        for (const auto& key : gone) {
            if (index.spec.unique) ANGELIA_TRY(scope.touch_unique(index, key));
            scope.erase_index_entry(index, key, record);
        }
        for (const auto& key : added) scope.put_index_entry(index, key, record);
        if (new_keys.multikey && !index.multikey) scope.mark_multikey(collection, i);
    }
    scope.put_record(collection, record, after.bytes(), false);
    scope.count(collection, 0,
                static_cast<std::int64_t>(after.size_bytes()) -
                    static_cast<std::int64_t>(before.size_bytes()));
    WriteScope::Images images;
    if (collection->keeps_images) images.before = before;
    if (!description) {
        scope.log(OpKind::Replace, *collection, after.view()["_id"], after, retry, images);
        return {};
    }
    if (collection->keeps_images) images.after = after;
    scope.log(OpKind::Update, *collection, after.view()["_id"],
              describe_update(*description, before, after), retry, images);
    return {};
}

Result<void> remove_record(WriteScope& scope, const Namespace& ns, storage::RecordId record,
                           bson::DocumentView before, const WriteScope::RetryReference& retry) {
    auto collection = scope.collection(ns);
    ANGELIA_TRY(scope.touch_collection(*collection));
    ANGELIA_TRY(scope.touch_record(*collection, record));
    ANGELIA_TRY_ASSIGN(auto all, keys_of_document(*collection, before));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Index& index = *collection->indexes[i];
        for (const auto& key : all[i].keys) {
            if (index.spec.unique) ANGELIA_TRY(scope.touch_unique(index, key));
            scope.erase_index_entry(index, key, record);
        }
    }
    scope.erase_record(collection, record);
    scope.count(collection, -1, -static_cast<std::int64_t>(before.size_bytes()));
    WriteScope::Images images;
    if (collection->keeps_images) images.before = before;
    scope.log(OpKind::Delete, *collection, before["_id"], bson::DocumentView(), retry, images);
    return {};
}

}  // namespace angelia::engine
