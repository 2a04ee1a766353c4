// Stands between RocksDB and its log files, so that a log that could not be written is told where
// it counts: at the sync.
//
// RocksDB treats a failed append to its log as the end of that file: builds with assertions
// (Debian's has them) abort when a commit comes while the syncer meets a full disk, and others call
// it fatal when a memtable is switched at that moment. Both are wrong for us: the memtables hold
// everything, and a flush of all of them repairs the store. So a guarded log swallows what it
// cannot write, remembers why, and refuses to be synced.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <mutex>
#include <vector>

namespace angelia::engine::storage {

/// What became of one log file.
struct GuardedLogState {
    std::mutex mutex;
    rocksdb::IOStatus failure;  ///< the first; everything after it was dropped
    bool abandoned = false;     ///< what it was to hold is going into tables
};

/// Threads: safe.
class LogGuard final : public rocksdb::FileSystemWrapper {
  public:
    using rocksdb::FileSystemWrapper::FileSystemWrapper;
    const char* Name() const override { return "LogGuard"; }

    rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* debug) override;

    /// Why a log lost something that is in no table yet; OK when none did.
    rocksdb::IOStatus failure() const;
    /// Lets the broken logs be closed. Only when nothing is committed before all memtables were
    /// flushed; call again for each try.
    void abandon_broken();

  private:
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<GuardedLogState>>
        logs_;  ///< open ones, oldest first; the last is the one being written
};

}  // namespace angelia::engine::storage
