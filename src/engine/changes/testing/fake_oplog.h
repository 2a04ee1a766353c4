// For tests of change streams: an oplog in memory whose watermark the test moves, and short ways to
// write entries and read events.
#pragma once

#include "engine/changes/change_streams.h"
#include "engine/engine.h"

#include <angelia/base/mutex.h>
#include <angelia/bson/builder.h>
#include <angelia/bson/json.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace angelia::engine::changes::test {

/// Threads: safe.
class FakeOplog final : public Oplog {
  public:
    /// Adds an entry that is not durable yet. `same_commit`: under the time of the entry before it.
    OplogPosition append(const OplogFields& fields, bool same_commit = false) {
        MutexLock lock(mutex_);
        if (same_commit) {
            ++sub_;
        } else {
            time_ = bson::Timestamp::from_uint64(time_.as_uint64() + 1);
            sub_ = 0;
        }
        const auto bytes = OplogEntry::encode(fields);
        entries_.push_back(std::make_shared<const OplogEntry>(
            OplogEntry::decode(time_, sub_, bytes).value_or_throw()));
        return {time_, sub_};
    }
    /// Makes everything appended so far durable, and tells the listener unless a test holds it
    /// back.
    void advance(bool tell = true) {
        const MutexLock order(advance_mutex_);
        Entries fresh;
        Listener listener;
        {
            MutexLock lock(mutex_);
            untold_.insert(untold_.end(), entries_.begin() + static_cast<std::ptrdiff_t>(durable_),
                           entries_.end());
            durable_ = entries_.size();
            if (tell) {
                fresh.swap(untold_);
                listener = listener_;
            }
        }
        if (listener && !fresh.empty()) listener(fresh);
    }
    void set_time(bson::Timestamp time) {
        MutexLock lock(mutex_);
        time_ = time;
    }
    std::size_t read_count() const {
        MutexLock lock(mutex_);
        return read_count_;
    }
    /// Runs inside each read(), before it looks.
    std::function<void()> during_read;

    Result<Entries> read(OplogPosition after, std::size_t limit, std::size_t bytes_max) override {
        if (during_read) during_read();
        MutexLock lock(mutex_);
        ++read_count_;
        if (oldest_.as_uint64() > 0 &&
            after <
                OplogPosition{bson::Timestamp::from_uint64(oldest_.as_uint64() - 1), 0xFFFFFFFF}) {
            return Error(ErrorCode::ChangeStreamHistoryLost, "trimmed");
        }
        Entries out;
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < durable_ && out.size() < limit; ++i) {
            const auto& entry = entries_[i];
            if (OplogPosition{entry->time(), entry->sub()} <= after || entry->time() < oldest_)
                continue;
            bytes += entry->bytes()->size();
            if (!out.empty() && bytes > bytes_max) break;
            out.push_back(entry);
        }
        return out;
    }
    bson::Timestamp oldest() const override {
        MutexLock lock(mutex_);
        return oldest_;
    }
    bson::Timestamp newest_durable() const override {
        MutexLock lock(mutex_);
        return durable_ == 0 ? start_ : entries_[durable_ - 1]->time();
    }
    ListenerId add_listener(Listener listener) override {
        MutexLock lock(mutex_);
        listener_ = std::move(listener);
        return ListenerId{1};
    }
    void remove_listener(ListenerId) override {
        const MutexLock order(advance_mutex_);
        MutexLock lock(mutex_);
        listener_ = nullptr;
    }
    Result<void> trim() override { return {}; }
    Result<void> trim_before(bson::Timestamp time) override {
        MutexLock lock(mutex_);
        oldest_ = std::max(oldest_, time);
        return {};
    }

  private:
    Mutex advance_mutex_;  ///< before mutex_: one listener call at a time
    mutable Mutex mutex_;
    Listener listener_ ANGELIA_GUARDED_BY(mutex_);
    Entries entries_ ANGELIA_GUARDED_BY(mutex_);
    Entries untold_ ANGELIA_GUARDED_BY(mutex_);
    std::size_t durable_ ANGELIA_GUARDED_BY(mutex_) = 0;
    std::size_t read_count_ ANGELIA_GUARDED_BY(mutex_) = 0;
    bson::Timestamp start_ ANGELIA_GUARDED_BY(mutex_){1000, 0};
    bson::Timestamp time_ ANGELIA_GUARDED_BY(mutex_){1000, 0};
    std::uint32_t sub_ ANGELIA_GUARDED_BY(mutex_) = 0;
    bson::Timestamp oldest_ ANGELIA_GUARDED_BY(mutex_){0, 0};
};

inline constexpr std::array<std::uint8_t, 8> kTestStore = {1, 2, 3, 4, 5, 6, 7, 8};

/// Writes entries and, unless told otherwise, makes each durable at once. Namespaces are written
/// "db.coll".
class Feed {
  public:
    explicit Feed(FakeOplog& oplog) : oplog_(oplog) {}
    bool durable = true;
    bool same_commit = false;
    bson::Document before, after;  ///< images of the next entries; empty = not kept

    OplogPosition insert(std::string_view ns, std::int32_t id, const bson::Document& more = {}) {
        return write(OpKind::Insert, ns, bson::value(id),
                     bson::Builder().add("_id", id).add_all(more).take());
    }
    OplogPosition replace(std::string_view ns, std::int32_t id, const bson::Document& more = {}) {
        return write(OpKind::Replace, ns, bson::value(id),
                     bson::Builder().add("_id", id).add_all(more).take());
    }
    OplogPosition update(std::string_view ns, std::int32_t id, const bson::Document& updated,
                         const bson::Array& removed = {}) {
        return write(OpKind::Update, ns, bson::value(id),
                     bson::make("updatedFields", updated, "removedFields", removed,
                                "truncatedArrays", bson::Array()));
    }
    OplogPosition remove(std::string_view ns, std::int32_t id) {
        return write(OpKind::Delete, ns, bson::value(id), {});
    }
    OplogPosition drop(std::string_view ns) {
        return write(OpKind::Command, ns, {}, bson::make("drop", ns.substr(ns.find('.') + 1)));
    }
    OplogPosition rename(std::string_view from, std::string_view to) {
        const std::size_t dot = to.find('.');
        return write(OpKind::Command, from, {},
                     bson::make("renameCollection", from.substr(from.find('.') + 1), "to",
                                bson::make("db", to.substr(0, dot), "coll", to.substr(dot + 1))));
    }
    OplogPosition drop_database(std::string_view db) {
        return write(OpKind::Command, db, {}, bson::make("dropDatabase", std::int32_t{1}));
    }
    OplogPosition write(OpKind kind, std::string_view ns, const bson::Value& id,
                        const bson::Document& payload) {
        const std::size_t dot = ns.find('.');
        OplogFields fields;
        fields.kind = kind;
        fields.db = ns.substr(0, dot);
        if (dot != std::string_view::npos) fields.collection = ns.substr(dot + 1);
        fields.collection_id = 7;
        fields.uuid.fill(0xAB);
        fields.id = id.view();
        fields.payload = payload.view();
        fields.before_image = before.view();
        fields.after_image = after.view();
        fields.wall = bson::Date{1'700'000'000'000};
        const OplogPosition position = oplog_.append(fields, same_commit);
        if (durable) oplog_.advance();
        return position;
    }

  private:
    FakeOplog& oplog_;
};

/// The streams over a fake oplog. `documents`: what updateLookup finds, by _id.
struct World {
    FakeOplog oplog;
    Feed feed{oplog};
    std::map<std::int32_t, bson::Document> documents;
    ChangeStreams streams{
        oplog,
        {[this](const OplogEntry& entry) { return look_up(entry); }, [] { return kTestStore; }}};

    Result<std::shared_ptr<ChangeStream>> try_watch(std::string_view ns,
                                                    std::string_view options = "{}",
                                                    std::string_view stages = "[]") {
        WatchSpec spec;
        const std::size_t dot = ns.find('.');
        spec.scope = dot == std::string_view::npos ? WatchSpec::Scope::Database
                                                   : WatchSpec::Scope::Collection;
        spec.ns.db = ns.substr(0, dot);
        if (dot != std::string_view::npos) spec.ns.collection = ns.substr(dot + 1);
        spec.options = bson::from_json(options).value_or_throw();
        const auto wrapped =
            bson::from_json("{\"stages\": " + std::string(stages) + "}").value_or_throw();
        spec.stages = bson::Document(wrapped["stages"].as_document());
        return streams.open(spec);
    }
    std::shared_ptr<ChangeStream> watch(std::string_view ns, std::string_view options = "{}",
                                        std::string_view stages = "[]") {
        return try_watch(ns, options, stages).value_or_throw();
    }
    std::shared_ptr<ChangeStream> watch_from(std::string_view ns, std::string_view option,
                                             const bson::Document& token,
                                             std::string_view stages = "[]") {
        return watch(ns, bson::to_json(bson::make(option, token)), stages);
    }
    std::string refusal(std::string_view ns, std::string_view options,
                        std::string_view stages = "[]") {
        const auto stream = try_watch(ns, options, stages);
        return stream ? "opened" : bson::to_json(bson::make("error", stream.error().to_string()));
    }
    ErrorCode refusal_code(std::string_view ns, std::string_view options,
                           std::string_view stages = "[]") {
        const auto stream = try_watch(ns, options, stages);
        return stream ? ErrorCode::Ok : stream.error().code;
    }

  private:
    Result<std::optional<bson::Document>> look_up(const OplogEntry& entry) {
        const auto found = documents.find(entry.id().as_int32());
        return found == documents.end() ? std::optional<bson::Document>() : found->second.copy();
    }
};

inline constexpr std::size_t kNoLimit = 1'000'000'000;

inline ChangeStream::Batch poll(ChangeStream& stream, std::size_t events_max = kNoLimit,
                                std::size_t bytes_max = kNoLimit) {
    return stream.poll(events_max, bytes_max).value_or_throw();
}

/// "insert db.a 1": what most tests want to know about an event.
inline std::string line_of(bson::DocumentView event) {
    std::string line(event["operationType"].get_string().value_or("?"));
    const bson::ValueView db = event.find_path("ns.db");
    if (db) line += " " + std::string(db.as_string());
    const bson::ValueView collection = event.find_path("ns.coll");
    if (collection) line += "." + std::string(collection.as_string());
    const bson::ValueView id = event.find_path("documentKey._id");
    if (id) line += " " + bson::to_json(id);
    return line;
}

inline std::string text_of(const ChangeStream::Batch& batch) {
    std::string text;
    for (const auto& event : batch.events)
        text += (text.empty() ? "" : ", ") + line_of(event.view());
    if (batch.closed) text += text.empty() ? "closed" : ", closed";
    return text;
}
/// Everything the stream has now, as one line.
inline std::string text_of(ChangeStream& stream) { return text_of(poll(stream)); }

inline bson::Document token_of(bson::DocumentView event) {
    return bson::Document(event["_id"].as_document());
}
inline std::string hex_of(const bson::Document& token) {
    return std::string(token["_data"].as_string());
}

/// Counts wake-ups.
class Bell {
  public:
    void hang(ChangeStream& stream) {
        stream.wake_once([this] { ++rung_; });
    }
    int rung() const { return rung_; }

  private:
    std::atomic<int> rung_{0};
};

}  // namespace angelia::engine::changes::test
