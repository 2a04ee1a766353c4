#include "engine/storage/keys.h"

#include "engine/storage/byte_order.h"

namespace angelia::engine::storage {

std::string record_prefix(CollectionId collection) {
    std::string key;
    append_big(key, collection);
    return key;
}

std::string record_key(CollectionId collection, RecordId record) {
    std::string key;
    key.reserve(12);
    append_big(key, collection);
    append_big(key, record);
    return key;
}

RecordId record_id_of(std::string_view record_key) { return load_big_at_end<RecordId>(record_key); }

CollectionId collection_id_of(std::string_view record_key) {
    ANGELIA_CHECK(record_key.size() >= sizeof(CollectionId));
    return load_big<CollectionId>(record_key.data());
}

IndexId index_id_of(std::string_view index_entry) {
    ANGELIA_CHECK(index_entry.size() >= sizeof(IndexId));
    return load_big<IndexId>(index_entry.data());
}

std::string index_prefix(IndexId index) {
    std::string key;
    append_big(key, index);
    return key;
}

std::string index_entry(IndexId index, std::string_view encoded_key, RecordId record) {
    std::string key;
    key.reserve(4 + encoded_key.size() + 8);
    append_big(key, index);
    key.append(encoded_key);
    append_big(key, record);
    return key;
}

std::string unique_entry(IndexId index, std::string_view encoded_key) {
    std::string key;
    key.reserve(4 + encoded_key.size());
    append_big(key, index);
    key.append(encoded_key);
    return key;
}

std::string encode_record_id(RecordId record) {
    std::string value;
    append_big(value, record);
    return value;
}

RecordId decode_record_id(std::string_view value) { return load_big_at_end<RecordId>(value); }
RecordId record_id_of_entry(std::string_view index_entry) {
    return load_big_at_end<RecordId>(index_entry);
}

std::string prefix_end(std::string_view prefix) {
    std::string end(prefix);
    while (!end.empty() && static_cast<std::uint8_t>(end.back()) == 0xFF) end.pop_back();
    if (!end.empty()) end.back() = static_cast<char>(static_cast<std::uint8_t>(end.back()) + 1);
    return end;
}

namespace {
constexpr char kRecordVersion = 1;
}

std::string record_value(bson::Timestamp commit_time, std::string_view document) {
    std::string value;
    value.reserve(kRecordHeaderBytes + document.size());
    value.push_back(kRecordVersion);
    append_big(value, commit_time.as_uint64());
    value.append(document);
    return value;
}

std::string encode_record_time(bson::Timestamp commit_time) {
    std::string bytes;
    append_big(bytes, commit_time.as_uint64());
    return bytes;
}

bson::Timestamp record_time(std::string_view record_value) {
    ANGELIA_CHECK(record_value.size() >= kRecordHeaderBytes);
    return bson::Timestamp::from_uint64(load_big<std::uint64_t>(record_value.data() + 1));
}

std::string_view record_document(std::string_view record_value) {
    ANGELIA_CHECK(record_value.size() >= kRecordHeaderBytes);
    return record_value.substr(kRecordHeaderBytes);
}

}  // namespace angelia::engine::storage
