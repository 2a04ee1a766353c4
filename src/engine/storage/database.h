// One RocksDB with the families of this store: opening with our options, and the translation of its
// statuses. Internal to this folder.
#pragma once

#include "engine/storage/log_guard.h"
#include "engine/storage/storage.h"

#include <rocksdb/db.h>

#include <atomic>
#include <mutex>

namespace angelia::engine::storage {

/// How RocksDB's background work reaches the store. Threads: safe.
class BackgroundErrors {
  public:
    /// `handler` is called on any thread, also inside a commit: it may only set flags. On return of
    /// a call with an empty one the old handler is not running any more.
    void set_handler(std::function<void(const rocksdb::Status&)> handler) {
        std::lock_guard lock(mutex_);
        handler_ = std::move(handler);
    }
    void report(const rocksdb::Status& status) {
        std::lock_guard lock(mutex_);
        if (handler_) handler_(status);
    }

  private:
    std::mutex mutex_;
    std::function<void(const rocksdb::Status&)> handler_;
};

/// Shared by the store and its iterators and snapshots, so that none of them can outlive the files.
/// Threads: safe.
struct Database {
    // destroyed from bottom to top: handles, database, environment
    std::unique_ptr<rocksdb::Env> owned_environment;
    rocksdb::Env* environment = nullptr;
    std::shared_ptr<LogGuard> log_guard;  ///< nullptr for a memory store
    std::shared_ptr<BackgroundErrors> background_errors = std::make_shared<BackgroundErrors>();
    std::shared_ptr<rocksdb::SstFileManager> files;
    std::unique_ptr<rocksdb::DB> db;
    std::array<rocksdb::ColumnFamilyHandle*, kFamilyCount> families{};
    std::atomic<bool> closed{false};

    ~Database();
    rocksdb::ColumnFamilyHandle* family(Family f) const {
        return families[static_cast<std::size_t>(f)];
    }

    /// Makes the folder and the families as needed. Errors: as Storage::open, except those about
    /// the format.
    static Result<std::shared_ptr<Database>> open(const Options& options);
    /// Memtables of all families to files, in one step.
    rocksdb::Status flush();
    /// Ends RocksDB's own refusal after an error, and what it lost of flushes meanwhile.
    rocksdb::Status resume();
    /// False when a flush of all memtables would not find the space.
    bool has_room_to_flush() const;
    /// Bytes held by files and memtables.
    std::uint64_t bytes_held() const;

  private:
    rocksdb::Status nudged_until_done(const std::function<rocksdb::Status()>& step);
    void nudge_flushes();
};
using DatabasePtr = std::shared_ptr<Database>;

/// "what: status" with the fitting code: OutOfDiskSpace, ShutdownInProgress, else InternalError.
Error to_error(const rocksdb::Status& status, std::string_view what);
bool is_out_of_space(const rocksdb::Status& status);
/// RocksDB's answer from a file that failed before; says nothing about the cause.
bool is_echo(const rocksdb::Status& status);

inline rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view view(const rocksdb::Slice& s) { return {s.data(), s.size()}; }

}  // namespace angelia::engine::storage
