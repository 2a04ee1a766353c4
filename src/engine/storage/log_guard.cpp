#include "engine/storage/log_guard.h"

#include <algorithm>
#include <atomic>

namespace angelia::engine::storage {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

/// One log file. RocksDB appends from one thread at a time and may sync from another meanwhile.
class GuardedLog final : public rocksdb::FSWritableFileOwnerWrapper {
  public:
    GuardedLog(std::unique_ptr<rocksdb::FSWritableFile> file, LogGuard& guard)
        : FSWritableFileOwnerWrapper(std::move(file)), guard_(guard) {}
    ~GuardedLog() override { guard_.forget(*this); }

    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    IODebugContext* debug) override {
        return written([&] { return target()->Append(data, options, debug); });
    }
    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    const rocksdb::DataVerificationInfo& verification,
                    IODebugContext* debug) override {
        return written([&] { return target()->Append(data, options, verification, debug); });
    }
    IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
        return written([&] { return target()->Flush(options, debug); });
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
        return synced([&] { return target()->Sync(options, debug); });
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
        return synced([&] { return target()->Fsync(options, debug); });
    }
    IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
        guard_.forget(*this);
        if (auto s = target()->Close(options, debug); !s.ok() && unsettled()) guard_.remember(s);
        return IOStatus::OK();
    }

    bool unsettled() const { return synced_.load() < written_.load(); }
    void settle() { synced_ = written_.load(); }
    /// For the guard, which keeps the file from being closed meanwhile.
    IOStatus sync_now() {
        return covering([&] { return target()->Sync(IOOptions(), nullptr); });
    }

  private:
    template <class Call>
    IOStatus written(Call call) {
        if (!guard_.settle_before(this)) return IOStatus::OK();
        ++written_;  // before the call: a part of what fails may be there
        if (auto s = call(); !s.ok()) guard_.remember(s);
        return IOStatus::OK();
    }
    template <class Call>
    IOStatus synced(Call call) {
        if (!guard_.failure().ok()) return IOStatus::OK();
        if (auto s = covering(call); !s.ok()) guard_.remember(s);
        return IOStatus::OK();
    }
    template <class Call>
    IOStatus covering(Call call) {
        const auto covered = written_.load();
        if (auto s = call(); !s.ok()) return s;
        auto before = synced_.load();
        while (before < covered && !synced_.compare_exchange_weak(before, covered)) {
        }
        return IOStatus::OK();
    }

    LogGuard& guard_;
    std::atomic<std::uint64_t> written_{0};  ///< calls that changed the file
    std::atomic<std::uint64_t> synced_{0};   ///< how many of them the device has
};

namespace {

bool is_log_file(const std::string& path) {
    return path.size() > 4 && path.compare(path.size() - 4, 4, ".log") == 0;
}

}  // namespace

IOStatus LogGuard::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                   std::unique_ptr<rocksdb::FSWritableFile>* result,
                                   IODebugContext* debug) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    if (auto s = target()->NewWritableFile(path, options, &file, debug); !s.ok()) return s;
    if (!is_log_file(path)) {
        *result = std::move(file);
        return IOStatus::OK();
    }
    auto log = std::make_unique<GuardedLog>(std::move(file), *this);
    {
        std::lock_guard lock(mutex_);
        logs_.push_back(log.get());
    }
    *result = std::move(log);
    return IOStatus::OK();
}

IOStatus LogGuard::failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
}

void LogGuard::repaired() {
    std::lock_guard lock(mutex_);
    failure_ = IOStatus::OK();
    for (auto* log : logs_) log->settle();
}

void LogGuard::remember(const IOStatus& failure) {
    std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = failure;
}

bool LogGuard::settle_before(const GuardedLog* log) {
    std::lock_guard lock(mutex_);
    if (!failure_.ok()) return false;
    for (auto* older : logs_) {
        if (older == log || older == logs_.back()) break;
        if (!older->unsettled()) continue;
        // Once for each switch of memtables, and RocksDB was about to do the same.
        if (auto s = older->sync_now(); !s.ok()) {
            failure_ = s;
            return false;
        }
    }
    return true;
}

void LogGuard::forget(const GuardedLog& log) {
    std::lock_guard lock(mutex_);
    logs_.erase(std::remove(logs_.begin(), logs_.end(), &log), logs_.end());
}

}  // namespace angelia::engine::storage
