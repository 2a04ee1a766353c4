#include "engine/storage/oplog_log.h"

#include "engine/storage/byte_order.h"
#include "engine/storage/reader.h"

#include <rocksdb/convenience.h>

#include <algorithm>

namespace angelia::engine::storage {
namespace {

OplogPosition position_of(const OplogEntry& entry) { return {entry.time(), entry.sub()}; }
OplogPosition position_of_key(std::string_view key) {
    return {bson::Timestamp::from_uint64(load_big<std::uint64_t>(key.data())),
            load_big<std::uint32_t>(key.data() + 8)};
}
bson::Timestamp following(bson::Timestamp time) {
    return bson::Timestamp::from_uint64(time.as_uint64() + 1);
}

std::string encode_marker(OplogPosition trimmed, bson::Timestamp oldest) {
    auto text = oplog_key(trimmed.time, trimmed.sub);
    append_big(text, oldest.as_uint64());
    return text;
}

constexpr std::size_t kKeyBytes = 12;
constexpr std::uint64_t kSegmentBytesMin = 4096;

}  // namespace

OplogLog::OplogLog(DatabasePtr database, std::uint64_t bytes_max, std::size_t tail_bytes_max)
    : database_(std::move(database)), bytes_max_(bytes_max), tail_bytes_max_(tail_bytes_max) {}

std::string OplogLog::fresh_marker(bson::Timestamp created) {
    return encode_marker({{}, 0}, created);
}
std::string OplogLog::Cut::marker() const { return encode_marker(trimmed, oldest); }

Result<void> OplogLog::load() {
    const DatabaseReader reader(database_);
    std::string marker;
    ANGELIA_TRY_ASSIGN(const bool found, reader.get(Family::Meta, kMarkerKey, marker));
    if (!found || marker.size() != kKeyBytes + 8)
        return Error(ErrorCode::InternalError, "the oplog's trim marker is missing or damaged");
    const auto rows = reader.iterate(Family::Oplog, {}, {});
    rows->seek_to_last();
    ANGELIA_TRY(rows->status());

    std::vector<rocksdb::LiveFileMetaData> files;
    database_->db->GetLiveFilesMetaData(&files);

    std::unique_lock lock(tail_mutex_);
    trimmed_ = position_of_key(marker);
    oldest_ = bson::Timestamp::from_uint64(load_big<std::uint64_t>(marker.data() + kKeyBytes));
    newest_ = rows->valid() && rows->key().size() == kKeyBytes
                  ? std::max(trimmed_, position_of_key(rows->key()))
                  : trimmed_;
    tail_after_ = newest_;
    // The files are the best account of sizes there is after a start: keys ascend, so each holds a
    // stretch of time.
    for (const auto& file : files) {
        if (file.column_family_name != "oplog" || file.largestkey.size() < 8) continue;
        segments_.push_back(
            {bson::Timestamp::from_uint64(load_big<std::uint64_t>(file.largestkey.data())),
             file.size});
        bytes_ += file.size;
    }
    std::sort(segments_.begin(), segments_.end(),
              [](const Segment& a, const Segment& b) { return a.last < b.last; });
    return {};
}

bson::Timestamp OplogLog::newest() const {
    std::shared_lock lock(tail_mutex_);
    return newest_.time;
}

bson::Timestamp OplogLog::oldest() const {
    std::shared_lock lock(tail_mutex_);
    return oldest_;
}

std::uint64_t OplogLog::bytes() const {
    std::shared_lock lock(tail_mutex_);
    return bytes_;
}

void OplogLog::add(std::uint64_t sequence, const std::vector<OplogEntryPtr>& entries) {
    std::lock_guard lock(pending_mutex_);
    for (const auto& entry : entries) pending_.push_back({sequence, entry});
}

void OplogLog::publish(std::uint64_t sequence) {
    Oplog::Entries fresh;
    {
        std::lock_guard lock(pending_mutex_);
        while (!pending_.empty() && pending_.front().sequence <= sequence) {
            fresh.push_back(std::move(pending_.front().entry));
            pending_.pop_front();
        }
    }
    if (fresh.empty()) return;
    Oplog::Entries evicted;  // freed after the lock
    std::unique_lock lock(tail_mutex_);
    for (auto& entry : fresh) {
        newest_ = position_of(*entry);
        tail_bytes_ += entry->bytes()->size();
        account(entry->time(), entry->bytes()->size() + kKeyBytes);
        untold_.push_back(entry);
        tail_.push_back(std::move(entry));
    }
    while (tail_bytes_ > tail_bytes_max_ && !tail_.empty()) {
        tail_bytes_ -= tail_.front()->bytes()->size();
        tail_after_ = position_of(*tail_.front());
        evicted.push_back(std::move(tail_.front()));
        tail_.pop_front();
    }
    lock.unlock();
}

void OplogLog::account(bson::Timestamp time, std::uint64_t bytes) {
    const auto segment_bytes = std::max(bytes_max_ / 32, kSegmentBytesMin);
    if (segments_.empty() ||
        (segments_.back().bytes >= segment_bytes && segments_.back().last != time))
        segments_.push_back({time, 0});
    segments_.back().last = time;
    segments_.back().bytes += bytes;
    bytes_ += bytes;
}

Error OplogLog::history_lost() {
    return {ErrorCode::ChangeStreamHistoryLost,
            "Resume of change stream was not possible, as the resume point may no longer be in the "
            "oplog."};
}

Result<Oplog::Entries> OplogLog::read(OplogPosition after, std::size_t limit,
                                      std::size_t bytes_max) const {
    OplogPosition upto;
    {
        std::shared_lock lock(tail_mutex_);
        if (after < trimmed_) return history_lost();
        if (after >= newest_) return Oplog::Entries();
        if (after >= tail_after_) {
            auto at = std::upper_bound(tail_.begin(), tail_.end(), after,
                                       [](OplogPosition a, const OplogEntryPtr& entry) {
                                           return a < position_of(*entry);
                                       });
            Oplog::Entries entries;
            std::size_t bytes = 0;
            for (; at != tail_.end() && entries.size() < limit; ++at) {
                bytes += (*at)->bytes()->size();
                if (bytes > bytes_max && !entries.empty()) break;
                entries.push_back(*at);
            }
            return entries;
        }
        upto = newest_;
    }
    return read_store(after, upto, limit, bytes_max);
}

Result<Oplog::Entries> OplogLog::read_store(OplogPosition after, OplogPosition upto,
                                            std::size_t limit, std::size_t bytes_max) const {
    const auto lower =
        oplog_key(after.time, after.sub) + '\0';  // the first possible key behind `after`
    const auto upper = oplog_key(upto.time, upto.sub) + '\0';
    const auto rows = DatabaseReader(database_).iterate(Family::Oplog, lower, upper);
    rows->seek_to_first();
    {
        // The iterator holds its rows from here on, and a trim announces itself before it deletes:
        // if nothing behind `after` is announced now, nothing behind it was missing when the
        // iterator was made.
        std::shared_lock lock(tail_mutex_);
        if (after < trimmed_) return history_lost();
    }
    Oplog::Entries entries;
    std::size_t bytes = 0;
    for (; rows->valid() && entries.size() < limit; rows->next()) {
        bytes += rows->value().size();
        if (bytes > bytes_max && !entries.empty()) break;
        const auto position = position_of_key(rows->key());
        ANGELIA_TRY_ASSIGN(auto entry,
                           OplogEntry::decode(position.time, position.sub,
                                              std::make_shared<const std::string>(rows->value())));
        entries.push_back(std::make_shared<const OplogEntry>(std::move(entry)));
    }
    ANGELIA_TRY(rows->status());
    return entries;
}

void OplogLog::tell_listeners() {
    Oplog::Entries entries;
    {
        std::unique_lock lock(tail_mutex_);
        entries.swap(untold_);
    }
    if (entries.empty()) return;
    std::unique_lock lock(listeners_mutex_);
    const auto slots = listeners_;
    for (const auto& slot : slots) {
        const auto same = [&](const ListenerSlot& other) { return other.id == slot.id; };
        if (std::none_of(listeners_.begin(), listeners_.end(), same))
            continue;  // removed by an earlier one
        running_ = slot.id;
        running_thread_ = std::this_thread::get_id();
        lock.unlock();
        (*slot.call)(entries);
        lock.lock();
        running_.reset();
        listener_done_.notify_all();
    }
}

Oplog::ListenerId OplogLog::add_listener(Oplog::Listener listener) {
    std::lock_guard lock(listeners_mutex_);
    const auto id = Oplog::ListenerId{next_listener_++};
    listeners_.push_back({id, std::make_shared<const Oplog::Listener>(std::move(listener))});
    return id;
}

void OplogLog::remove_listener(Oplog::ListenerId id) {
    std::unique_lock lock(listeners_mutex_);
    listeners_.erase(std::remove_if(listeners_.begin(), listeners_.end(),
                                    [&](const ListenerSlot& slot) { return slot.id == id; }),
                     listeners_.end());
    // A listener may remove itself.
    listener_done_.wait(
        lock, [&] { return running_ != id || running_thread_ == std::this_thread::get_id(); });
}

Result<std::optional<OplogLog::Cut>> OplogLog::cut_before(bson::Timestamp time) const {
    OplogPosition newest;
    OplogPosition trimmed;
    {
        std::shared_lock lock(tail_mutex_);
        newest = newest_;
        trimmed = trimmed_;
    }
    const auto bound = std::min(time, following(newest.time));
    const auto rows = DatabaseReader(database_).iterate(Family::Oplog, {}, {});
    rows->seek_before(oplog_key(bound, 0));
    ANGELIA_TRY(rows->status());
    if (!rows->valid() || position_of_key(rows->key()) <= trimmed) return std::optional<Cut>();
    Cut cut{position_of_key(rows->key()), bound};
    rows->next();
    ANGELIA_TRY(rows->status());
    if (rows->valid() && position_of_key(rows->key()) <= newest)
        cut.oldest = position_of_key(rows->key()).time;
    return std::optional<Cut>(cut);
}

bson::Timestamp OplogLog::due_cut() const {
    std::shared_lock lock(tail_mutex_);
    auto left = bytes_;
    bson::Timestamp cut;
    for (std::size_t i = 0; i + 1 < segments_.size() && left > bytes_max_; ++i) {
        left -= segments_[i].bytes;
        cut = following(segments_[i].last);
    }
    return cut;
}

void OplogLog::adopt(const Cut& cut) {
    std::vector<OplogEntryPtr> dropped;  // freed after the lock
    std::unique_lock lock(tail_mutex_);
    trimmed_ = std::max(trimmed_, cut.trimmed);
    oldest_ = std::max(oldest_, cut.oldest);
    tail_after_ = std::max(tail_after_, trimmed_);
    while (!tail_.empty() && position_of(*tail_.front()) <= trimmed_) {
        tail_bytes_ -= tail_.front()->bytes()->size();
        dropped.push_back(std::move(tail_.front()));
        tail_.pop_front();
    }
    while (!segments_.empty() && segments_.front().last <= trimmed_.time) {
        bytes_ -= segments_.front().bytes;
        segments_.pop_front();
    }
    lock.unlock();
}

Result<void> OplogLog::release_files(const Cut& cut) {
    const auto end = oplog_key(cut.trimmed.time, cut.trimmed.sub) + '\0';
    const rocksdb::Slice end_slice(end);
    if (auto s = rocksdb::DeleteFilesInRange(database_->db.get(), database_->family(Family::Oplog),
                                             nullptr, &end_slice, false);
        !s.ok()) {
        return to_error(s, "dropping trimmed oplog files");
    }
    return {};
}

}  // namespace angelia::engine::storage
