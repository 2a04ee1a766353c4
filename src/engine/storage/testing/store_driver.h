// Short forms for tests that drive a Storage: one write with its oplog entry, reading back,
// checking both against each other.
#pragma once

#include "engine/changes/oplog.h"
#include "engine/storage/keys.h"
#include "engine/storage/storage.h"

#include <map>

namespace angelia::engine::storage::testing {

inline std::shared_ptr<const std::string> insert_entry(CollectionId collection, std::int64_t id,
                                                       std::string_view text) {
    const auto document = bson::make("_id", id, "text", text);
    OplogFields fields;
    fields.kind = OpKind::Insert;
    fields.db = "test";
    fields.collection = "things";
    fields.collection_id = collection;
    fields.id = document["_id"];
    fields.payload = document;
    return OplogEntry::encode(fields);
}

struct Written {
    CommitPosition position;
    bson::Timestamp time;
};

/// Puts record `id` of collection 1 and its oplog entry in one commit; does not wait.
inline Result<Written> insert(Storage& storage, std::int64_t id, std::string_view text) {
    auto section = storage.begin_apply();
    const auto time = section->next_timestamp();
    section->put(Family::Records, record_key(1, static_cast<RecordId>(id)),
                 record_value(time, bson::make("_id", id, "text", text).bytes()));
    section->append_oplog(time, 0, insert_entry(1, id, text));
    ANGELIA_TRY_ASSIGN(const auto position, section->commit());
    return Written{position, time};
}

/// insert() and wait until it is durable.
inline Result<Written> insert_durably(Storage& storage, std::int64_t id, std::string_view text) {
    ANGELIA_TRY_ASSIGN(const auto written, insert(storage, id, text));
    ANGELIA_TRY(storage.wait_durable(written.position));
    return written;
}

/// Commit times of the records of collection 1 by record id.
inline std::map<std::int64_t, bson::Timestamp> records_in(const Reader& reader) {
    std::map<std::int64_t, bson::Timestamp> found;
    const auto rows =
        reader.iterate(Family::Records, record_prefix(1), prefix_end(record_prefix(1)));
    for (rows->seek_to_first(); rows->valid(); rows->next()) {
        found[static_cast<std::int64_t>(record_id_of(rows->key()))] = record_time(rows->value());
    }
    return found;
}
inline std::map<std::int64_t, bson::Timestamp> records(const Storage& storage) {
    return records_in(storage.latest());
}

/// Times of the inserts in the oplog by record id, from the beginning, read in steps of `step`.
inline Result<std::map<std::int64_t, bson::Timestamp>> oplog_inserts(Oplog& oplog,
                                                                     std::size_t step = 100) {
    std::map<std::int64_t, bson::Timestamp> found;
    OplogPosition after{{}, 0};
    for (;;) {
        ANGELIA_TRY_ASSIGN(const auto entries, oplog.read(after, step, std::size_t{1} << 20));
        if (entries.empty()) return found;
        for (const auto& entry : entries) {
            found[entry->id().as_int64()] = entry->time();
            after = {entry->time(), entry->sub()};
        }
    }
}

}  // namespace angelia::engine::storage::testing
