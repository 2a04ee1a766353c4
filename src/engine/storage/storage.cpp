// Opening, closing, and what every thread asks the store.
#include "engine/storage/storage_impl.h"

#include "engine/storage/byte_order.h"
#include "engine/storage/endpoint.h"
#include "engine/storage/rocksdb_options.h"

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_manager.h>

#include <random>

namespace angelia::engine::storage {
namespace {

// Keys of ours in the meta family; the catalog has others. Page: docs/formats/storage.md.
constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kStoreIdKey = "storage/id";

constexpr std::int64_t kAdoptSecondsMax = 60;
constexpr std::int64_t kRefuseSeconds = 365LL * 24 * 3600;

std::int64_t wall_seconds(const Clock& clock) { return clock.system_millis() / 1000; }

std::array<std::uint8_t, 8> random_store_id() {
    std::array<std::uint8_t, 8> id{};
    std::random_device random;
    for (auto& byte : id) byte = static_cast<std::uint8_t>(random());
    return id;
}

}  // namespace

Result<std::unique_ptr<Storage>> Storage::open(Options options) {
    if (options.memory)
        options.oplog_bytes_max =
            std::min<std::uint64_t>(options.oplog_bytes_max, options.memory_bytes_max / 4);
    while (options.path.size() > 1 && options.path.back() == '/') options.path.pop_back();
    ANGELIA_TRY_ASSIGN(auto database, Database::open(options));
    auto storage = std::make_unique<StorageImpl>(std::move(options), std::move(database));
    ANGELIA_TRY(storage->start());
    return std::unique_ptr<Storage>(std::move(storage));
}

StorageImpl::StorageImpl(Options options, DatabasePtr database)
    : options_(std::move(options)),
      database_(std::move(database)),
      latest_(database_),
      oplog_(database_, options_.oplog_bytes_max, options_.tail_bytes_max),
      watermark_([this] { oplog_.tell_listeners(); }) {}

StorageImpl::~StorageImpl() {
    if (auto closed = close(); !closed)
        options_.log(LogLevel::Error, "closing the store failed: " + closed.error().to_string());
}

Result<void> StorageImpl::start() {
    ANGELIA_TRY(check_format());
    ANGELIA_TRY(oplog_.load());
    std::string mark;
    ANGELIA_TRY_ASSIGN(const bool marked, latest_.get(Family::Meta, kClockKey, mark));
    if (marked && mark.size() == 8) clock_mark_ = load_big<std::uint64_t>(mark.data());
    // A new store begins at the time it was made: drivers take the first operationTime they see for
    // a place in the oplog.
    const auto newest = std::max(oplog_.newest(), oplog_.oldest());
    clock_ = std::max(clock_mark_, newest.as_uint64());
    applied_ = published_ = {snapshot(), {0, newest}, nullptr};
    synced_ = applied_.position;
    watermark_.start_at(synced_);
    if (!options_.memory) ANGELIA_TRY(write_endpoint(options_.path, options_.endpoint_note));

    database_->background_errors->set_handler(
        [this](const rocksdb::Status& status) { background_error(status); });
    keeper_ = std::thread([this] { keep_loop(); });
    if (!options_.memory) syncer_ = std::thread([this] { sync_loop(); });
    std::lock_guard lock(close_mutex_);
    started_ = true;
    return {};
}

Result<void> StorageImpl::check_format() {
    std::string format;
    ANGELIA_TRY_ASSIGN(const bool found, latest_.get(Family::Meta, kFormatKey, format));
    if (!found) return make_new_store();
    if (format.size() != 8)
        return Error(ErrorCode::InternalError,
                     fmt::format("the format mark of '{}' is damaged", options_.path));
    const auto major = load_big<std::uint32_t>(format.data());
    const auto minor = load_big<std::uint32_t>(format.data() + 4);
    if (major > kFormatMajor) {
        return Error(ErrorCode::CannotMutateObject,
                     fmt::format("the data folder '{}' has format {}.{}, this program reads up to "
                                 "{}.x: open it with a newer version",
                                 options_.path, major, minor, kFormatMajor));
    }
    std::string id;
    ANGELIA_TRY_ASSIGN(const bool known, latest_.get(Family::Meta, kStoreIdKey, id));
    if (!known || id.size() != store_id_.size())
        return Error(ErrorCode::InternalError, "the store id is missing or damaged");
    std::copy_n(id.data(), id.size(), reinterpret_cast<char*>(store_id_.data()));
    return {};
}

Result<void> StorageImpl::make_new_store() {
    const auto rows = latest_.iterate(Family::Records, {}, {});
    rows->seek_to_first();
    if (rows->valid()) {
        return Error(
            ErrorCode::InternalError,
            fmt::format(
                "'{}' holds records but no format mark: it is not a store of ours, or damaged",
                options_.path));
    }
    store_id_ = random_store_id();
    std::string format;
    append_big(format, kFormatMajor);
    append_big(format, kFormatMinor);
    rocksdb::WriteBatch batch;
    auto* meta = database_->family(Family::Meta);
    (void)batch.Put(meta, slice(kFormatKey), format);
    (void)batch.Put(
        meta, slice(kStoreIdKey),
        rocksdb::Slice(reinterpret_cast<const char*>(store_id_.data()), store_id_.size()));
    const bson::Timestamp created{static_cast<std::uint32_t>(wall_seconds(*options_.clock)), 1};
    (void)batch.Put(meta, slice(OplogLog::kMarkerKey), OplogLog::fresh_marker(created));
    rocksdb::WriteOptions write;
    write.sync = !options_.memory;
    write.disableWAL = options_.memory;
    if (auto s = database_->db->Write(write, &batch); !s.ok())
        return to_error(s, "making the store");
    return {};
}

CommitPosition StorageImpl::applied() const {
    std::lock_guard lock(state_mutex_);
    return applied_.position;
}

View StorageImpl::newest() const {
    std::lock_guard lock(state_mutex_);
    return applied_;
}

View StorageImpl::published() const {
    std::lock_guard lock(view_mutex_);
    return published_;
}

void StorageImpl::attach_first(std::shared_ptr<const void> state) {
    {
        std::lock_guard lock(state_mutex_);
        applied_.state = state;
    }
    std::lock_guard lock(view_mutex_);
    published_.state = std::move(state);
}

bson::Timestamp StorageImpl::next_timestamp() {
    const auto wall =
        bson::Timestamp{static_cast<std::uint32_t>(wall_seconds(*options_.clock)), 1}.as_uint64();
    auto last = clock_.load();
    std::uint64_t next = 0;
    do {
        next = std::max(last + 1, wall);
    } while (
        !clock_.compare_exchange_weak(last, next));  // a client's time may be adopted meanwhile
    return bson::Timestamp::from_uint64(next);
}

Result<void> StorageImpl::adopt_cluster_time(bson::Timestamp time) {
    auto last = clock_.load();
    if (time.as_uint64() <= last) return {};
    const auto ahead = static_cast<std::int64_t>(time.seconds) - wall_seconds(*options_.clock);
    if (ahead > kRefuseSeconds) {
        return Error(ErrorCode::ClusterTimeFailsRateLimiter,
                     fmt::format("new cluster time {{ts: Timestamp({}, {})}} is {} s ahead of this "
                                 "node's wall clock; at most {} s are allowed",
                                 time.seconds, time.increment, ahead, kRefuseSeconds));
    }
    if (ahead > kAdoptSecondsMax) return {};
    while (time.as_uint64() > last && !clock_.compare_exchange_weak(last, time.as_uint64())) {
    }
    return {};
}

Statistics StorageImpl::statistics() const {
    Statistics s;
    {
        std::lock_guard lock(state_mutex_);
        s.commits = commits_;
        s.bytes_written = bytes_written_;
        s.apply_us_max = apply_us_max_;
        s.writable = !write_error_ && !closing_;
        if (write_error_) s.write_error = write_error_->message;
    }
    s.syncs = syncs_;
    s.resume_attempts = resume_attempts_;
    s.disk_bytes = database_->files->GetTotalSize();
    s.oplog_bytes = oplog_.bytes();
    return s;
}

Result<void> StorageImpl::set_endpoint_note(std::string note) {
    if (options_.memory) return {};
    return write_endpoint(options_.path, note);
}

Result<void> StorageImpl::compact(Family family, std::string_view lower, std::string_view upper) {
    if (database_->closed) return store_closed();
    {
        // It would flush memtables through a log that is known to be broken.
        std::lock_guard lock(state_mutex_);
        if (write_error_) return *write_error_;
    }
    const auto first = slice(lower);
    const auto last = slice(upper);
    rocksdb::CompactRangeOptions compact;
    compact.exclusive_manual_compaction = false;
    compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    const auto s = database_->db->CompactRange(compact, database_->family(family),
                                               lower.empty() ? nullptr : &first,
                                               upper.empty() ? nullptr : &last);
    if (!s.ok()) return to_error(s, "compacting");
    return {};
}

Result<void> StorageImpl::trim_oplog(bson::Timestamp before) {
    std::lock_guard one_at_a_time(trim_mutex_);
    ANGELIA_TRY_ASSIGN(const auto cut, oplog_.cut_before(before));
    if (!cut) return {};
    {
        auto section = begin_apply();
        section->put(Family::Meta, OplogLog::kMarkerKey, cut->marker());
        ANGELIA_TRY_ASSIGN(const auto position, section->commit());
        ANGELIA_TRY(watermark_.wait_for_mark(position));
    }
    oplog_.adopt(*cut);
    {
        auto section = begin_apply();
        section->erase_range(Family::Oplog, {},
                             oplog_key(cut->trimmed.time, cut->trimmed.sub) + '\0');
        ANGELIA_TRY(section->commit());
    }
    return oplog_.release_files(*cut);
}

Result<void> StorageImpl::close() {
    std::lock_guard one_at_a_time(close_mutex_);
    if (closed_) return {};
    closed_ = true;
    if (!started_) return {};  // a folder that was refused stays as it was
    {
        // The exact clock: the next start need not jump to the mark, which runs ahead.
        std::lock_guard section(apply_mutex_);
        std::string mark;
        append_big(mark, clock_.load());
        overlay_.clear();
        overlay_.put(Family::Meta, kClockKey, mark);
        clock_mark_ = ~std::uint64_t{0};
        (void)write(overlay_);  // without it the mark written before holds
        std::lock_guard lock(state_mutex_);
        closing_ = true;
    }
    {
        std::lock_guard lock(state_mutex_);
        stopping_ = true;
        syncer_wakes_.notify_all();
        keeper_wakes_.notify_all();
    }
    if (syncer_.joinable()) syncer_.join();
    if (keeper_.joinable()) keeper_.join();
    watermark_.notify();
    watermark_.fail(
        {ErrorCode::ShutdownInProgress, "the store was closed before the commit became durable"});
    watermark_.notify();

    bool broken = false;
    {
        std::lock_guard lock(state_mutex_);
        broken = write_error_.has_value();
    }
    Result<void> result;
    if (!options_.memory && !broken) {
        if (auto s = database_->flush(); !s.ok()) result = to_error(s, "flushing the store");
    }
    database_->closed.store(true, std::memory_order_release);
    rocksdb::CancelAllBackgroundWork(database_->db.get(), true);
    database_->background_errors->set_handler({});
    if (!options_.memory) remove_endpoint(options_.path);
    return result;
}

}  // namespace angelia::engine::storage
