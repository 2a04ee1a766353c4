#include "engine/storage/log_guard.h"

#include <algorithm>

namespace angelia::engine::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class GuardedLog final : public rocksdb::FSWritableFileOwnerWrapper {
  public:
    GuardedLog(std::unique_ptr<rocksdb::FSWritableFile> file,
               std::shared_ptr<GuardedLogState> state)
        : FSWritableFileOwnerWrapper(std::move(file)), state_(std::move(state)) {}

    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    IODebugContext* debug) override {
        if (broken()) return IOStatus::OK();
        return swallow(target()->Append(data, options, debug));
    }
    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    const rocksdb::DataVerificationInfo& verification,
                    IODebugContext* debug) override {
        if (broken()) return IOStatus::OK();
        return swallow(target()->Append(data, options, verification, debug));
    }
    IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
        if (broken()) return IOStatus::OK();
        return swallow(target()->Flush(options, debug));
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
        return synced([&] { return target()->Sync(options, debug); });
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
        return synced([&] { return target()->Fsync(options, debug); });
    }

  private:
    bool broken() const {
        std::lock_guard lock(state_->mutex);
        return !state_->failure.ok();
    }
    IOStatus swallow(IOStatus s) {
        if (!s.ok()) remember(s);
        return IOStatus::OK();
    }
    void remember(const IOStatus& s) {
        std::lock_guard lock(state_->mutex);
        if (state_->failure.ok()) state_->failure = s;
    }
    template <class SyncCall>
    IOStatus synced(SyncCall call) {
        {
            std::lock_guard lock(state_->mutex);
            if (!state_->failure.ok()) return state_->abandoned ? IOStatus::OK() : state_->failure;
        }
        auto s = call();
        if (!s.ok()) remember(s);
        std::lock_guard lock(state_->mutex);
        // An append may have been lost while the device was at work.
        return s.ok() ? state_->failure : s;
    }

    std::shared_ptr<GuardedLogState> state_;
};

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
    auto state = std::make_shared<GuardedLogState>();
    {
        std::lock_guard lock(mutex_);
        logs_.erase(std::remove_if(logs_.begin(), logs_.end(),
                                   [](const auto& log) { return log.expired(); }),
                    logs_.end());
        logs_.push_back(state);
    }
    *result = std::make_unique<GuardedLog>(std::move(file), std::move(state));
    return IOStatus::OK();
}

IOStatus LogGuard::failure() const {
    std::lock_guard lock(mutex_);
    bool newest = true;
    for (auto log = logs_.rbegin(); log != logs_.rend(); ++log) {
        const auto state = log->lock();
        if (!state) continue;
        std::lock_guard state_lock(state->mutex);
        // An older one counts too until it is given up: a memtable switch may have put a new log in
        // front of it.
        if (!state->failure.ok() && (newest || !state->abandoned)) return state->failure;
        newest = false;
    }
    return IOStatus::OK();
}

void LogGuard::abandon_broken() {
    std::lock_guard lock(mutex_);
    for (const auto& log : logs_) {
        if (const auto state = log.lock()) {
            std::lock_guard state_lock(state->mutex);
            state->abandoned = !state->failure.ok();
        }
    }
}

}  // namespace angelia::engine::storage
