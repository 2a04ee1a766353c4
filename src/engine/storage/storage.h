// The durable floor of the engine: ordered bytes in four families, one apply section, one syncer,
// one durable watermark. Only this folder knows RocksDB.
//
// A write: begin_apply() enters the section; read what you need through it, put the changes and the
// oplog entries, commit(). commit() writes one batch without sync and leaves the section; the
// syncer makes it durable and then runs what was handed to on_durable(), in commit order. Nothing
// waits in a thread.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/log.h>
#include <angelia/base/result.h>
#include <angelia/bson/types.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace angelia::engine::storage {

enum class Durability {
    Strict,    ///< durable = synced to the device
    Periodic,  ///< durable = handed to the kernel; synced every `periodic_sync`
};

struct Options {
    // -- affect behaviour
    std::string path;     ///< data folder, made if absent; ignored when `memory`
    bool memory = false;  ///< no files, no log; durable = applied
    std::size_t memory_bytes_max = std::size_t{1} << 30;
    Durability durability = Durability::Strict;
    milliseconds periodic_sync{100};
    std::uint64_t oplog_bytes_max = std::uint64_t{1} << 30;
    std::size_t tail_bytes_max = std::size_t{64} << 20;  ///< newest oplog entries kept in memory
    std::string endpoint_note;  ///< written to DIR/endpoint beside the pid; shown to who finds the
                                ///< folder locked
    const Clock* clock = &real_clock();
    LogFunction log = null_log();
    milliseconds resume_retry{1000};  ///< after a full disk or a full memory store: how often to
                                      ///< see whether writes can go on
    // -- for tests
    void* environment = nullptr;  ///< a rocksdb::Env* to use instead of the default; not owned
};

enum class Family : std::uint8_t { Meta, Records, Indexes, Oplog };
inline constexpr int kFamilyCount = 4;

/// A moment of the store. Keeps old versions alive: hold it briefly. Threads: may be shared.
class Snapshot;
using SnapshotPtr = std::shared_ptr<const Snapshot>;

/// Walks keys of one family in order within [lower, upper). Not thread-safe. Check status() when
/// valid() turned false.
class Iterator {
  public:
    virtual ~Iterator() = default;
    virtual void seek(std::string_view key) = 0;  ///< first key >= `key`
    virtual void seek_to_first() = 0;
    virtual void seek_to_last() = 0;
    virtual void seek_before(std::string_view key) = 0;  ///< last key < `key`
    virtual void next() = 0;
    virtual void prev() = 0;
    virtual bool valid() const = 0;
    virtual std::string_view key() const = 0;    ///< until the next move
    virtual std::string_view value() const = 0;  ///< until the next move
    virtual Result<void> status() const = 0;
};
using IteratorPtr = std::unique_ptr<Iterator>;

/// Reads the newest applied state, a snapshot, or (inside an apply section) that plus the section's
/// own changes.
class Reader {
  public:
    virtual ~Reader() = default;
    /// True and `value` filled when the key exists.
    virtual Result<bool> get(Family family, std::string_view key, std::string& value) const = 0;
    virtual IteratorPtr iterate(Family family, std::string_view lower,
                                std::string_view upper) const = 0;
};

/// Where a commit stands in commit order. Comparable; 0 = nothing.
struct CommitPosition {
    std::uint64_t sequence = 0;
    bson::Timestamp time;  ///< time of its last oplog entry (or of the newest entry before it)
    auto operator<=>(const CommitPosition& other) const { return sequence <=> other.sequence; }
    bool operator==(const CommitPosition& other) const { return sequence == other.sequence; }
};

/// A moment of the store: exactly what was there after the commit at `position`. Keeps old versions
/// alive: hold it briefly. Threads: may be shared.
struct View {
    SnapshotPtr snapshot;
    CommitPosition position;            ///< the last commit in it
    std::shared_ptr<const void> state;  ///< what was attached (ApplySection::attach) by then
};

/// The one serialised section. Keep it short: no parsing, no waiting, no user code inside. Leaves
/// on commit() or destruction (then nothing happened, except that handed-out timestamps are never
/// used again).
class ApplySection : public Reader {
  public:
    /// max(last + 1, wall clock); strictly increasing over the life of the store, also across
    /// crashes.
    virtual bson::Timestamp next_timestamp() = 0;
    virtual void put(Family family, std::string_view key, std::string_view value) = 0;
    virtual void erase(Family family, std::string_view key) = 0;
    /// In records and indexes `lower` is the prefix of a whole collection or index.
    virtual void erase_range(Family family, std::string_view lower, std::string_view upper) = 0;
    /// Adds an encoded oplog entry (changes/oplog.h) under (time, sub); `time` from
    /// next_timestamp(). In commit it also goes to the tail.
    virtual void append_oplog(bson::Timestamp time, std::uint32_t sub,
                              std::shared_ptr<const std::string> entry) = 0;
    /// From this commit on `state` is what views carry (instead of the one before). Dropped when
    /// the commit fails, and not undone by rollback_to().
    virtual void attach(std::shared_ptr<const void> state) = 0;
    /// Bytes put so far.
    virtual std::size_t bytes() const = 0;
    /// Forgets changes made after `mark`: a failed write in the middle of a list.
    virtual std::size_t mark() = 0;
    virtual void rollback_to(std::size_t mark) = 0;
    /// Writes the batch and leaves the section. Errors: OutOfDiskSpace, ShutdownInProgress,
    /// InternalError; then nothing was applied.
    virtual Result<CommitPosition> commit() = 0;
};

/// Changes on top of a snapshot that only their owner sees, until it puts them into an apply
/// section itself: a transaction. Iterators see changes made while they are used. Not thread-safe.
class Workspace : public Reader {
  public:
    virtual void put(Family family, std::string_view key, std::string_view value) = 0;
    virtual void erase(Family family, std::string_view key) = 0;
    /// The snapshot without the changes.
    virtual const Reader& base() const = 0;
    virtual std::size_t bytes() const = 0;
    struct Change {
        Family family;
        std::string_view key;
        std::optional<std::string_view> value;  ///< nothing: erased
    };
    /// The last change of each key, in key order within each family.
    virtual void for_each(const std::function<void(const Change&)>& visit) const = 0;
};

struct Statistics {
    std::uint64_t commits = 0;
    std::uint64_t syncs = 0;
    std::uint64_t bytes_written = 0;
    std::uint64_t apply_us_max = 0;  ///< longest stay in the apply section
    std::uint64_t disk_bytes = 0;
    std::uint64_t oplog_bytes = 0;
    bool writable = true;
    std::string write_error;            ///< why writes are refused, if they are
    std::uint64_t resume_attempts = 0;  ///< how often the store tried to come back from that
};

/// One open data folder. Threads: safe.
class Storage {
  public:
    /// Errors: DBPathInUse (names the holder's pid and address), CannotMutateObject for a newer
    /// format version (names both versions), FileStreamFailed.
    static Result<std::unique_ptr<Storage>> open(Options options);
    virtual ~Storage() = default;

    virtual const Reader& latest() const = 0;
    virtual SnapshotPtr snapshot() const = 0;
    /// The newest moment that nothing can take away any more: what reads are to see. Moves with the
    /// watermark, before on_durable continuations run. In periodic mode a power cut may still take
    /// it, the end of the process not. No lock is waited for that a committer holds.
    virtual View published() const = 0;
    /// The newest applied moment, which a power cut may still take away: for evaluating writes.
    virtual View newest() const = 0;
    /// What views carry before the first attach(). Once, before the store is used.
    virtual void attach_first(std::shared_ptr<const void> state) = 0;
    virtual std::unique_ptr<Reader> at(SnapshotPtr snapshot) const = 0;

    virtual std::unique_ptr<Workspace> workspace(SnapshotPtr snapshot) const = 0;

    virtual std::unique_ptr<ApplySection> begin_apply() = 0;

    /// Runs `done` once the commit is durable in the sense of the mode, or with the error that
    /// stopped the syncer. In commit order, on the syncer's thread (in memory mode and when it is
    /// durable already: on the caller's, at once): keep it short, hand work on, never block in it
    /// (it may begin_apply() and commit()). Never called under a lock of ours. After an error the
    /// outcome of the commit is open: it may become durable later, when the store recovers.
    virtual void on_durable(CommitPosition position, std::function<void(Result<void>)> done) = 0;
    /// Blocks the caller until then. For in-process callers that want to wait.
    virtual Result<void> wait_durable(CommitPosition position) = 0;

    virtual CommitPosition applied() const = 0;
    virtual CommitPosition durable() const = 0;
    /// Called after every advance of the watermark (syncer's thread or, in memory mode, the
    /// committer's) before the on_durable continuations. One listener.
    virtual void set_durable_listener(std::function<void(CommitPosition)> listener) = 0;

    /// $clusterTime of a client: adopted when at most 60 s ahead of the wall clock, ignored beyond,
    /// ClusterTimeFailsRateLimiter beyond a year.
    virtual Result<void> adopt_cluster_time(bson::Timestamp time) = 0;

    virtual std::array<std::uint8_t, 8> store_id() const = 0;  ///< random, made with the store
    virtual Statistics statistics() const = 0;
    virtual bool memory() const = 0;
    virtual Durability durability() const = 0;
    /// Rewrites DIR/endpoint, e.g. once the server knows its port.
    virtual Result<void> set_endpoint_note(std::string note) = 0;
    /// Compacts a key range (tables dense in tombstones).
    virtual Result<void> compact(Family family, std::string_view lower, std::string_view upper) = 0;
    /// Finishes the last sync, flushes, closes. Later calls answer ShutdownInProgress. Pending
    /// on_durable functions run first.
    virtual Result<void> close() = 0;
};

}  // namespace angelia::engine::storage
