#include "engine/collection/validate.h"

#include "engine/read_view.h"

#include "engine/collection/records.h"

#include <angelia/bson/compare.h>
#include <angelia/bson/json.h>
#include <angelia/bson/validate.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace angelia::engine {

namespace {

constexpr std::size_t kReportedErrorsMax = 50;
constexpr std::size_t kOplogReadEntries = 1000;
constexpr std::size_t kOplogReadBytes = std::size_t{4} << 20;

/// Collects what is wrong; the first ones by name, all by number.
class Findings {
  public:
    void add(std::string text) {
        if (texts_.size() < kReportedErrorsMax) texts_.push_back(std::move(text));
        ++total_;
    }
    std::size_t total() const { return total_; }
    const std::vector<std::string>& texts() const { return texts_; }

  private:
    std::vector<std::string> texts_;
    std::size_t total_ = 0;
};

class Validation {
  public:
    Validation(const Collection& collection, const storage::Reader& reader)
        : collection_(collection), reader_(reader) {
        entries_.resize(collection.indexes.size());
        index_valid_.assign(collection.indexes.size(), true);
    }

    Result<void> check_records() {
        const auto prefix = storage::record_prefix(collection_.id);
        auto it = reader_.iterate(storage::Family::Records, prefix, storage::prefix_end(prefix));
        for (it->seek_to_first(); it->valid(); it->next()) {
            const auto record = storage::record_id_of(it->key());
            ++records_;
            highest_record_ = record;
            const auto bytes = it->value().size() > storage::kRecordHeaderBytes
                                   ? storage::record_document(it->value())
                                   : std::string_view();
            auto document = bson::validate(bytes);
            if (!document || document->size_bytes() != bytes.size()) {
                ++invalid_documents_;
                damaged_.insert(record);
                findings_.add(fmt::format("record {} is no well-formed document", record));
                continue;
            }
            bytes_ += static_cast<std::int64_t>(bytes.size());
            ANGELIA_TRY(check_entries_of(record, *document));
        }
        return it->status();
    }

    Result<void> check_indexes() {
        for (std::size_t i = 0; i < collection_.indexes.size(); ++i) {
            const Index& index = *collection_.indexes[i];
            const auto prefix = storage::index_prefix(index.id);
            auto it =
                reader_.iterate(storage::Family::Indexes, prefix, storage::prefix_end(prefix));
            std::int64_t present = 0;
            for (it->seek_to_first(); it->valid(); it->next()) {
                ++present;
                ANGELIA_TRY(check_record_of(i, it->key(), it->value()));
            }
            ANGELIA_TRY(it->status());
            if (present != entries_[i])
                index_error(
                    i, fmt::format("index {} holds {} entries where the documents have {} keys",
                                   index.spec.name, present, entries_[i]));
            keys_.push_back(present);
        }
        return {};
    }

    Result<void> check_counters() {
        std::string bytes;
        ANGELIA_TRY_ASSIGN(bool found,
                           reader_.get(storage::Family::Meta, counter_key(collection_.id), bytes));
        const Counters counters = found ? decode_counters(bytes) : Counters{};
        if (counters.count != records_)
            findings_.add(fmt::format("the counter says {} documents, there are {}", counters.count,
                                      records_));
        if (counters.bytes != bytes_)
            findings_.add(
                fmt::format("the counter says {} bytes, there are {}", counters.bytes, bytes_));
        if (counters.next_record <= highest_record_)
            findings_.add(fmt::format("the next record id {} is not above the highest in use {}",
                                      counters.next_record, highest_record_));
        return {};
    }

    /// The newest entry of each document within the oplog must agree with its record.
    Result<void> check_oplog(Oplog& oplog, bson::Timestamp until) {
        std::unordered_map<std::string, std::shared_ptr<const OplogEntry>> newest;
        const auto oldest = oplog.oldest();
        OplogPosition at{
            bson::Timestamp::from_uint64(oldest.as_uint64() == 0 ? 0 : oldest.as_uint64() - 1)};
        for (bool more = true; more;) {
            auto entries = oplog.read(at, kOplogReadEntries, kOplogReadBytes);
            if (!entries) {
                // Trimmed while we read: what is left is still a check.
                if (entries.error().code != ErrorCode::ChangeStreamHistoryLost)
                    return std::move(entries).error();
                if (oplog.oldest() <= at.time) return std::move(entries).error();
                at = {bson::Timestamp::from_uint64(oplog.oldest().as_uint64() - 1)};
                newest.clear();
                continue;
            }
            more = !entries->empty();
            for (const auto& entry : *entries) {
                if (entry->time() > until) {
                    more = false;
                    break;
                }
                at = {entry->time(), entry->sub()};
                ++oplog_entries_;
                if (entry->collection_id() != collection_.id || entry->kind() == OpKind::Command ||
                    entry->kind() == OpKind::Noop)
                    continue;
                std::string key;
                query::append_key(key, entry->id());
                newest[std::move(key)] = entry;
            }
        }
        for (const auto& [key, entry] : newest) ANGELIA_TRY(check_entry(*entry));
        return {};
    }

    bson::Document report() const {
        bson::Builder b;
        b.add("ns", collection_.ns.full())
            .add("nInvalidDocuments", invalid_documents_)
            .add("nNonCompliantDocuments", std::int64_t{0});
        b.add("nrecords", records_)
            .add("nIndexes", static_cast<std::int32_t>(collection_.indexes.size()));
        b.open("keysPerIndex");
        for (std::size_t i = 0; i < keys_.size(); ++i)
            b.add(collection_.indexes[i]->spec.name, keys_[i]);
        b.close().open("indexDetails");
        for (std::size_t i = 0; i < keys_.size(); ++i)
            b.open(collection_.indexes[i]->spec.name).add("valid", bool{index_valid_[i]}).close();
        b.close().add("oplogEntriesChecked", oplog_entries_);
        b.add("valid", findings_.total() == 0)
            .add("repaired", false)
            .open_array("warnings")
            .close()
            .open_array("errors");
        for (const auto& text : findings_.texts()) b.push(text);
        if (findings_.total() > findings_.texts().size())
            b.push(fmt::format("and {} more", findings_.total() - findings_.texts().size()));
        return b.close()
            .open_array("extraIndexEntries")
            .close()
            .open_array("missingIndexEntries")
            .close()
            .take();
    }

  private:
    void index_error(std::size_t i, std::string text) {
        index_valid_[i] = false;
        findings_.add(std::move(text));
    }

    Result<void> check_entries_of(storage::RecordId record, bson::DocumentView document) {
        for (std::size_t i = 0; i < collection_.indexes.size(); ++i) {
            const Index& index = *collection_.indexes[i];
            auto keys = keys_in_index(index, document);
            if (!keys) {
                index_error(i, fmt::format("record {} cannot be indexed by {}: {}", record,
                                           index.spec.name, keys.error().message));
                continue;
            }
            if (keys->multikey && !index.multikey)
                index_error(i, fmt::format("index {} lacks its multikey flag", index.spec.name));
            for (const auto& key : keys->keys) {
                ++entries_[i];
                std::string value;
                const auto entry = index.spec.unique ? storage::unique_entry(index.id, key)
                                                     : storage::index_entry(index.id, key, record);
                ANGELIA_TRY_ASSIGN(bool there, reader_.get(storage::Family::Indexes, entry, value));
                if (!there || (index.spec.unique && storage::decode_record_id(value) != record))
                    index_error(i, fmt::format("index {} has no entry for record {}",
                                               index.spec.name, record));
            }
        }
        return {};
    }

    Result<void> check_record_of(std::size_t i, std::string_view key, std::string_view value) {
        const Index& index = *collection_.indexes[i];
        const auto record =
            index.spec.unique ? storage::decode_record_id(value) : storage::record_id_of_entry(key);
        std::string stored;
        ANGELIA_TRY_ASSIGN(bool there, read_record(reader_, collection_.id, record, stored));
        if (!there) {
            index_error(i, fmt::format("index {} points to record {}, which is not there",
                                       index.spec.name, record));
            return {};
        }
        if (damaged_.count(record) != 0) return {};  // reported already; its bytes cannot be read
        auto keys = keys_in_index(index, bson::DocumentView(storage::record_document(stored)));
        const auto entry_of = [&](const std::string& k) {
            return index.spec.unique ? storage::unique_entry(index.id, k)
                                     : storage::index_entry(index.id, k, record);
        };
        if (!keys || std::none_of(keys->keys.begin(), keys->keys.end(),
                                  [&](const auto& k) { return entry_of(k) == key; }))
            index_error(
                i, fmt::format("index {} has a key for record {} that the document does not have",
                               index.spec.name, record));
        return {};
    }

    Result<void> check_entry(const OplogEntry& entry) {
        auto wrong = [&](std::string_view what) {
            findings_.add(fmt::format("the newest oplog entry of _id {} ({}) {}",
                                      bson::to_json(entry.id()), static_cast<char>(entry.kind()),
                                      what));
        };
        ANGELIA_TRY_ASSIGN(auto record, find_record_by_id(reader_, collection_, entry.id()));
        if (entry.kind() == OpKind::Delete) {
            if (record) wrong("deletes it, but the document is there");
            return {};
        }
        std::string stored;
        bool there = false;
        if (record) {
            ANGELIA_TRY_ASSIGN(there, read_record(reader_, collection_.id, *record, stored));
        }
        if (!there) {
            wrong("says that it exists, but the document is not there");
            return {};
        }
        if (damaged_.count(*record) != 0) return {};
        const bson::DocumentView document(storage::record_document(stored));
        if (entry.kind() == OpKind::Insert || entry.kind() == OpKind::Replace) {
            if (!document.identical(entry.payload()))
                wrong("holds another document than the record");
            return {};
        }
        if (auto fields = entry.payload()["updatedFields"].get_document())
            for (const auto& field : *fields) {
                const auto value = document.find_path(field.key);
                const bool dotted = field.key.find('.') !=
                                    std::string_view::npos;  // a dot may also belong to a name
                if (value.is_missing() ? !dotted : !value.identical(field.value))
                    wrong(fmt::format("sets '{}' to another value than the record has", field.key));
            }
        if (auto removed = entry.payload()["removedFields"].get_array())
            for (const auto& path : *removed)
                if (!document.find_path(path.value.as_string()).is_missing())
                    wrong(
                        fmt::format("removes '{}', which the record has", path.value.as_string()));
        return {};
    }

    const Collection& collection_;
    const storage::Reader& reader_;
    Findings findings_;
    std::int64_t records_ = 0, bytes_ = 0, invalid_documents_ = 0, oplog_entries_ = 0;
    storage::RecordId highest_record_ = 0;
    std::vector<std::int64_t> entries_;  ///< keys the documents have, by index
    std::vector<std::int64_t> keys_;     ///< entries that are there, by index
    std::vector<bool> index_valid_;
    std::unordered_set<storage::RecordId> damaged_;
};

}  // namespace

Result<bson::Document> validate_collection(Core& core, const Namespace& ns) {
    ANGELIA_TRY(core.check_open());
    const auto view = current_view(core);
    const auto collection = view.find(ns);
    const auto reader = core.storage->at(view.snapshot);
    if (!collection)
        return Error(ErrorCode::NamespaceNotFound,
                     fmt::format("Collection '{}' does not exist to validate.", ns.full()));
    Validation validation(*collection, *reader);
    ANGELIA_TRY(validation.check_records());
    ANGELIA_TRY(validation.check_indexes());
    ANGELIA_TRY(validation.check_counters());
    ANGELIA_TRY(validation.check_oplog(*core.oplog, view.position.time));
    return validation.report();
}

}  // namespace angelia::engine
