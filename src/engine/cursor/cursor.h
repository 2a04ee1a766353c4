// Open cursors: a source of documents (or a change stream) under a random id, used by one operation
// at a time.
#pragma once

#include "engine/changes/change_stream.h"
#include "engine/core.h"

#include <atomic>
#include <unordered_map>

namespace angelia::engine {

inline constexpr std::size_t kBatchReplyBytesMax = std::size_t{16}
                                                   << 20;  // MongoDB limit of a cursor reply
inline constexpr std::size_t kCursorsMax = 100'000;

/// Where a cursor's documents come from.
struct DocumentSource {
    std::function<Result<std::optional<bson::Document>>()> next;
    std::function<void()> pause;     ///< between batches
    std::function<bool()> finished;  ///< nothing more will come, known without looking
    std::function<void(SteadyTime)> set_deadline;
};

/// Who has checked it out uses it alone.
struct Cursor {
    std::int64_t id = 0;
    Namespace ns;
    std::string shown_ns;
    bson::Document lsid;
    std::optional<std::int64_t> txn_number;  ///< of the transaction that opened it
    std::optional<bson::Timestamp> at_cluster_time;
    bool no_timeout = false;
    DocumentSource source;
    std::optional<bson::Document> pending;  ///< read, but it did not fit the last batch
    std::shared_ptr<ChangeStream> stream;   ///< shared with its registry; null for plain cursors

    // -- guarded by the registry
    bool in_use = false;
    bool killed = false;
    std::function<void(Error)> on_kill;  ///< ends a waiting getMore
    SteadyTime last_used;
};
using CursorPtr = std::shared_ptr<Cursor>;  ///< shared by the registry and the operation under way

/// Takes documents from the source until the batch is full; `batch_size` < 0 = no limit but the
/// bytes. `exhausted`: the cursor is at its end. Errors: those of the source.
struct FilledBatch {
    std::vector<bson::Document> documents;
    bool exhausted = false;
};
Result<FilledBatch> fill_batch(Cursor& cursor, std::int64_t batch_size);

/// Threads: safe.
class CursorRegistry {
  public:
    explicit CursorRegistry(Core& core);

    /// Gives the cursor an id and keeps it. Errors: TemporarilyUnavailable (too many open cursors).
    Result<std::int64_t> add(CursorPtr cursor);
    /// Errors: CursorNotFound, Unauthorized (other namespace or session), CursorInUse.
    Result<CursorPtr> check_out(const GetMoreSpec& spec);
    /// Keeps it for the next call. False when it was killed meanwhile.
    bool check_in(const CursorPtr& cursor);
    void remove(const CursorPtr& cursor);
    /// While checked out: `on_kill` runs when somebody kills the cursor (at once if it is killed
    /// already); empty clears.
    void set_on_kill(const CursorPtr& cursor, std::function<void(Error)> on_kill);
    KilledCursors kill(const Namespace& ns, std::span<const std::int64_t> ids);
    /// Of all sessions that `chosen` picks; it runs under the registry's lock. Cursors without a
    /// session stay.
    void kill_sessions(const std::function<bool(bson::DocumentView lsid)>& chosen);
    /// Of a transaction that is over.
    void kill_transaction(const RetryKey& key);
    /// The session was used: its cursors without a timeout live on.
    void keep_session(bson::DocumentView lsid);
    /// Also cursors without a timeout, when their session was not used for kSessionIdle.
    void expire_idle();
    void close_all(const Error& reason);

    struct Counts {
        std::int64_t open = 0, opened = 0, timed_out = 0, killed = 0;
    };
    Counts counts() const;

  private:
    using Gone = std::vector<std::pair<CursorPtr, std::function<void(Error)>>>;
    static void end_killed(Gone gone);
    void kill_if(const std::function<bool(const Cursor&)>& chosen);

    bool expired(const Cursor& cursor, SteadyTime now) const;

    Core& core_;
    std::atomic<bool> any_kept_{false};
    mutable std::mutex mutex_;
    // guarded by mutex_
    std::unordered_map<std::string, SteadyTime>
        kept_sessions_;  ///< last use of those that own a cursor without a timeout, by lsid
    std::unordered_map<std::int64_t, CursorPtr> cursors_;
    std::int64_t opened_ = 0, timed_out_ = 0, killed_ = 0;
    bool closed_ = false;
    std::uint64_t random_state_;
};

}  // namespace angelia::engine
