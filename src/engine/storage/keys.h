// Key layouts of the four families. Numbers are big endian, so that byte order is number order.
// Page: docs/formats/storage.md.
#pragma once

#include <angelia/bson/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace angelia::engine::storage {

using CollectionId = std::uint32_t;
using RecordId = std::uint64_t;
using IndexId = std::uint32_t;

std::string record_prefix(CollectionId collection);  ///< all records of a collection
std::string record_key(CollectionId collection, RecordId record);
RecordId record_id_of(std::string_view record_key);
CollectionId collection_id_of(std::string_view record_key);

std::string index_prefix(IndexId index);
IndexId index_id_of(std::string_view index_entry);  ///< of either kind
/// Plain index entry: prefix + encoded key + record id, empty value.
std::string index_entry(IndexId index, std::string_view encoded_key, RecordId record);
/// Unique index entry: prefix + encoded key, value = record id.
std::string unique_entry(IndexId index, std::string_view encoded_key);
std::string encode_record_id(RecordId record);
RecordId decode_record_id(std::string_view value);
/// Record id at the end of a plain index entry.
RecordId record_id_of_entry(std::string_view index_entry);

/// Smallest key greater than every key that starts with `prefix`; empty when there is none.
std::string prefix_end(std::string_view prefix);

/// Record value: version byte, commit time (8), BSON. The commit time lets a transaction see that a
/// document changed after its snapshot.
inline constexpr std::size_t kRecordHeaderBytes = 9;
std::string record_value(bson::Timestamp commit_time, std::string_view document);
/// The eight bytes of the commit time, behind the version byte.
std::string encode_record_time(bson::Timestamp commit_time);
bson::Timestamp record_time(std::string_view record_value);
std::string_view record_document(std::string_view record_value);

}  // namespace angelia::engine::storage
