// The syncer makes commits durable and advances the watermark; the keeper brings the store back
// after a full disk and trims.
#include "engine/storage/storage_impl.h"

#include <fmt/format.h>

namespace angelia::engine::storage {

using SyncClock = std::chrono::steady_clock;

rocksdb::Status StorageImpl::flush_log(bool sync) {
    if (sync) ++syncs_;
    database_->log_guard->settle();
    auto s = database_->db->FlushWAL(sync);
    if (s.ok()) s = database_->log_guard->failure();  // RocksDB does not hear of it
    return s;
}

void StorageImpl::sync_loop() {
    const bool periodic = options_.durability == Durability::Periodic;
    CommitPosition written;  // handed to the kernel; sequences of this run start at 1
    // periodic: the kernel has what the device has not
    constexpr auto kNotDue = SyncClock::time_point::max();
    auto sync_due = kNotDue;
    std::unique_lock lock(state_mutex_);
    for (;;) {
        const auto work = [&] { return !log_broken_ && applied_.position != written; };
        const bool sync_now =
            sync_due != kNotDue && !log_broken_ && (stopping_ || SyncClock::now() >= sync_due);
        if (!work() && !sync_now) {
            if (stopping_) return;
            syncer_sleeps_ = true;
            if (sync_due != kNotDue && !log_broken_) {
                syncer_wakes_.wait_until(lock, sync_due);
            } else {
                syncer_wakes_.wait(lock);
            }
            syncer_sleeps_ = false;
            continue;
        }
        View target = applied_;
        const auto position = target.position;
        const auto target_bytes = applied_bytes_;
        const bool sync = !periodic || sync_now;
        lock.unlock();
        // Everything applied before this call is in the log's buffer, so the watermark may follow
        // to `target`, not beyond.
        const auto s = flush_log(sync);
        if (s.ok())
            publish(target);
        else
            stop_writes(s, sync ? "syncing the log of" : "writing the log of", true);
        target = {};
        lock.lock();
        written = position;  // after a failure the keeper makes it durable, or nobody does
        if (!s.ok()) {
            sync_due = kNotDue;
            continue;
        }
        synced_bytes_ = std::max(synced_bytes_, target_bytes);
        if (sync) {
            synced_ = position;
            sync_due = kNotDue;
        } else if (sync_due == kNotDue) {
            sync_due = SyncClock::now() + options_.periodic_sync;
        }
    }
}

void StorageImpl::show(const View& target) {
    View before = target;  // let go after the lock
    std::lock_guard lock(view_mutex_);
    if (published_.position < target.position) std::swap(published_, before);
}

void StorageImpl::publish_quietly(const View& target) {
    std::lock_guard lock(publish_mutex_);
    show(target);  // first: who hears of a commit may read it
    oplog_.publish(target.position.sequence);
    watermark_.raise(target.position);
}

void StorageImpl::publish(const View& target) {
    publish_quietly(target);
    watermark_.notify();
    request_trim_if_due();
}

void StorageImpl::request_trim_if_due() {
    if (oplog_.due_cut() == bson::Timestamp{}) return;
    std::lock_guard lock(state_mutex_);
    if (trim_due_) return;
    trim_due_ = true;
    keeper_wakes_.notify_one();
}

void StorageImpl::stop_writes(const rocksdb::Status& status, std::string_view what,
                              bool log_broken) {
    const bool full = is_out_of_space(status);
    const bool echo = !full && is_echo(status);
    const bool fatal =
        (!full && !echo) || status.severity() >= rocksdb::Status::Severity::kFatalError;
    auto error = to_error(status, fmt::format("{} '{}' failed", what, options_.path));
    error.message += fatal ? "; writes are refused until the process is restarted"
                           : "; writes are refused until there is space again";
    if (!fatal)
        error.code = ErrorCode::OutOfDiskSpace;  // an echo says only that there was an error before
    {
        std::lock_guard lock(state_mutex_);
        needs_restart_ = needs_restart_ || fatal;
        // The first cause is the one to tell, unless it was only an echo or can be repaired and
        // this one cannot.
        const bool tells_more = !write_error_ || fatal || (full && write_error_is_echo_);
        if (tells_more) {
            write_error_ = error;
            write_error_is_echo_ = echo && !fatal;
        }
        if (log_broken && !log_broken_) {
            log_broken_ = true;
            failure_untold_ = true;
            error = *write_error_;
            watermark_.fail(error);  // before the keeper can see that there is something to tell
        } else {
            log_broken = false;
        }
        keeper_wakes_.notify_one();
        if (!tells_more && !log_broken) return;
    }
    options_.log(LogLevel::Error, error.message);
}

void StorageImpl::background_error(const rocksdb::Status& status) {
    if (status.severity() >= rocksdb::Status::Severity::kHardError)
        return stop_writes(status, "background work on", false);
    std::lock_guard lock(state_mutex_);
    resume_wanted_ = true;
    keeper_wakes_.notify_one();
}

void StorageImpl::keep_loop() {
    constexpr auto kNone = SyncClock::time_point::max();
    auto retry_at = kNone;
    std::unique_lock lock(state_mutex_);
    while (!stopping_) {
        if (failure_untold_) {
            failure_untold_ = false;
            lock.unlock();
            watermark_.notify();
            lock.lock();
            continue;
        }
        if (trim_due_ && !write_error_) {
            lock.unlock();
            if (auto trimmed = trim_oplog(oplog_.due_cut()); !trimmed) {
                options_.log(LogLevel::Warning,
                             "trimming the oplog failed: " + trimmed.error().to_string());
            }
            lock.lock();
            trim_due_ = false;
            continue;
        }
        const bool resume = (write_error_ && !needs_restart_) || resume_wanted_;
        if (!resume && !memory_full_) {
            retry_at = kNone;
            keeper_wakes_.wait(lock);
            continue;
        }
        if (retry_at == kNone) retry_at = SyncClock::now() + options_.resume_retry;
        if (SyncClock::now() < retry_at) {
            keeper_wakes_.wait_until(lock, retry_at);
            continue;
        }
        retry_at = kNone;
        const bool relieve = memory_full_;
        lock.unlock();
        if (resume) try_resume();
        if (relieve) relieve_memory();
        lock.lock();
    }
}

void StorageImpl::try_resume() {
    ++resume_attempts_;
    // Trying a flush on a full disk is best avoided: RocksDB comes out of that badly.
    if (!database_->has_room_to_flush()) return;
    auto s = database_->resume();
    if (!s.ok()) return give_up_if_fatal(s);
    bool repair_log = false;
    {
        std::lock_guard lock(state_mutex_);
        repair_log = !options_.memory && write_error_;
        if (write_error_ && writing_) return;  // it began before the error; next time
    }
    // All that was applied goes into tables in one step, whatever became of the log, and a new log
    // begins. RocksDB does not know that anything is wrong with it.
    s = database_->flush();
    if (s.ok() && repair_log) {
        database_->log_guard->repaired();
        s = flush_log(true);
    }
    if (!s.ok()) return give_up_if_fatal(s);
    std::unique_lock lock(state_mutex_);
    resume_wanted_ = false;
    if (!write_error_ || needs_restart_) return;
    const View target = applied_;  // nothing was applied since the writes stopped
    lock.unlock();
    watermark_.recover();
    publish(target);
    lock.lock();
    write_error_.reset();
    log_broken_ = false;
    synced_ = target.position;
    synced_bytes_ = applied_bytes_;
    syncer_wakes_.notify_one();
    lock.unlock();
    options_.log(LogLevel::Info, "writes go on");
}

void StorageImpl::give_up_if_fatal(const rocksdb::Status& status) {
    if (status.IsBusy() || ((is_out_of_space(status) || is_echo(status)) &&
                            status.severity() < rocksdb::Status::Severity::kFatalError))
        return;
    {
        std::lock_guard lock(state_mutex_);
        resume_wanted_ = false;
    }
    stop_writes(status, "bringing back", false);
}

void StorageImpl::relieve_memory() {
    // What was deleted frees memory only when tables are rewritten without it.
    (void)database_->flush();
    for (const auto family : {Family::Records, Family::Indexes, Family::Oplog})
        (void)compact(family, {}, {});
    const bool full = database_->bytes_held() > options_.memory_bytes_max;
    std::lock_guard lock(state_mutex_);
    memory_full_ = full;
}

}  // namespace angelia::engine::storage
