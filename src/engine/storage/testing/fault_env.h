// A disk that can fail: for tests of what survives. It stands between RocksDB and the real folder,
// lets every write through so that reads see it, and remembers what was never synced.
//
//     FaultEnvironment disk(seed);
//     options.environment = disk.environment();
//     ... write ...
//     disk.power_cut();        // from here on the running store can do nothing
//     storage.reset();
//     disk.power_on();         // the folder is now what a machine would find after the cut
//     ... open again ...
#pragma once

#include <cstdint>
#include <memory>

namespace angelia::engine::storage::testing {

class FaultFileSystem;

/// Threads: safe. Must outlive every store that uses it.
class FaultEnvironment {
  public:
    explicit FaultEnvironment(std::uint64_t seed = 1);
    ~FaultEnvironment();
    FaultEnvironment(const FaultEnvironment&) = delete;
    FaultEnvironment& operator=(const FaultEnvironment&) = delete;

    /// A rocksdb::Env*, for storage::Options::environment.
    void* environment() const;

    /// What of the unsynced bytes and folder entries a machine finds after a cut.
    enum class Survivors {
        Nothing,       ///< none: exactly what was synced
        RandomPrefix,  ///< of each file and folder a random part, in order; the end of a file may
                       ///< read as zeros
    };
    /// Every write, sync and change of a folder fails from now on.
    void power_cut();
    /// Call when no store is open. Undoes what did not survive; the disk works again.
    void power_on(Survivors survivors = Survivors::Nothing);

    /// The disk takes `bytes` more, then answers "no space" (after writing what fits), until
    /// free_disk(). Deleting gives back.
    void fill_disk_after(std::uint64_t bytes);
    void free_disk();

    /// The next sync of a log file fails with an I/O error that is not about space.
    void fail_next_log_sync();
    /// Syncs of log files wait until release_log_syncs(); returns at once. For tests of what
    /// happens meanwhile.
    void hold_log_syncs();
    void release_log_syncs();

    std::uint64_t log_syncs() const;
    std::uint64_t unsynced_bytes() const;

  private:
    std::shared_ptr<FaultFileSystem> files_;
    struct Environment;
    std::unique_ptr<Environment> environment_;
};

}  // namespace angelia::engine::storage::testing
