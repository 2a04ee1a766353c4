// One document into, over or out of a collection, with all its index entries, its counters and its
// oplog entry.
#pragma once

#include "engine/collection/write_scope.h"

namespace angelia::engine {

/// The keys a document has in each index of a collection, same order as the indexes.
using KeysOfDocument = std::vector<query::IndexKeys>;

/// Errors: CannotIndexParallelArrays. Threads: safe.
Result<KeysOfDocument> keys_of_document(const Collection& collection, bson::DocumentView document);
/// Keys of one index; none when a partial filter leaves the document out.
Result<query::IndexKeys> keys_in_index(const Index& index, bson::DocumentView document);

/// A document as it is stored: `_id` first, generated when missing; checked.
/// Errors: BSONObjectTooLarge, InvalidIdField, DollarPrefixedFieldName, BadValue (several _id).
/// Threads: safe.
Result<bson::Document> prepare_insert(bson::Document document);

/// The bytes of a record value, or false when it is gone.
Result<bool> read_record(const storage::Reader& reader, storage::CollectionId collection,
                         storage::RecordId record, std::string& value);
/// The record with this `_id`, or nothing.
Result<std::optional<storage::RecordId>> find_record_by_id(const storage::Reader& reader,
                                                           const Collection& collection,
                                                           bson::ValueView id);

/// "E11000 ..." with keyPattern and keyValue, as MongoDB words it.
Error duplicate_key_error(const Collection& collection, const Index& index,
                          bson::DocumentView document, std::string_view encoded_key);

/// `{ a: 1, b: "x" }`: how MongoDB's messages show a document.
std::string to_message_text(bson::DocumentView document);

/// `keys` are used when they were built for the collection's present indexes, else built again.
struct PreparedKeys {
    std::uint64_t index_generation = 0;
    KeysOfDocument keys;
};

/// Errors of the three: DuplicateKey, CannotIndexParallelArrays, those of the reader. On an error
/// part of the change may stand in the section: roll back. `document` is changed when empty
/// Timestamps are filled.
Result<void> insert_record(WriteScope& scope, const Namespace& ns, bson::Document& document,
                           PreparedKeys* keys, const WriteScope::RetryReference& retry);
/// `description` is null for a replacement. Empty Timestamps of a replacement are filled.
Result<void> replace_record(WriteScope& scope, const Namespace& ns, storage::RecordId record,
                            bson::DocumentView before, bson::Document& after,
                            const query::UpdateDescription* description,
                            const WriteScope::RetryReference& retry);
Result<void> remove_record(WriteScope& scope, const Namespace& ns, storage::RecordId record,
                           bson::DocumentView before, const WriteScope::RetryReference& retry);

}  // namespace angelia::engine
