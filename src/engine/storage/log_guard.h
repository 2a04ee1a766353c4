// Stands between RocksDB and its log files, so that a log that could not be written or synced is
// told to us and to nobody else.
//
// RocksDB takes a failure of a log for the end of that file. Builds with assertions (Debian's has
// them) end the process when a commit comes while the syncer meets a full disk, or when the syncer
// comes to a log whose sync failed in a flush before; others call it fatal when a memtable is
// switched at that moment. All of that is wrong for us: the memtables hold everything, and a flush
// of all of them repairs the store. So RocksDB never hears of it: the guard keeps the first failure
// and from then on drops what goes to any log, until the memtables were flushed.
//
// It also keeps the order of the logs: nothing goes into a log before the ones it follows are
// synced. Otherwise a power cut could take the end of a log and leave the beginning of the next.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <mutex>
#include <vector>

namespace angelia::engine::storage {

class GuardedLog;

/// Must outlive its files. Threads: safe.
class LogGuard final : public rocksdb::FileSystemWrapper {
  public:
    using rocksdb::FileSystemWrapper::FileSystemWrapper;
    const char* Name() const override { return "LogGuard"; }

    rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* debug) override;

    /// Syncs the logs that were left. Before RocksDB is asked to write the newest one, so that it
    /// need not be waited for inside: commits would wait, too.
    void settle() { (void)settle_before(nullptr); }
    /// Why logs lost something that is in no table yet; OK when none did. When it is OK after a
    /// sync of RocksDB's log that began after a commit, that commit is durable.
    rocksdb::IOStatus failure() const;
    /// All that was ever committed is in tables: logs are written again.
    void repaired();

  private:
    friend class GuardedLog;

    void remember(const rocksdb::IOStatus& failure);
    /// Syncs the logs before `log`, or before the newest; false when logs are not written any more.
    bool settle_before(const GuardedLog* log);
    void forget(const GuardedLog& log);

    mutable std::mutex mutex_;  // everything below
    rocksdb::IOStatus failure_;
    std::vector<GuardedLog*> logs_;  ///< open ones, oldest first
};

}  // namespace angelia::engine::storage
