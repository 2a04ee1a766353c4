// What happens after a handler: its answers are stored, its message is marked, deleted, or put
// back; locks are released. In batches: the thread that comes first writes what is there, later
// ones only add to the next batch.
#pragma once

#include "messaging/intake.h"
#include "messaging/leases.h"

#include <deque>

namespace angelia::messaging {

enum class Outcome : std::uint8_t {
    Done,    ///< handled
    Failed,  ///< rejected: offered again after a back-off (at least once) or at once (at most once)
    Release,  ///< not handled, nothing to hold against it: back at once, the attempt does not count
              ///< as failed
    AnswersOnly,  ///< a broadcast that will be tried again: its answers are stored, nothing else
};

struct Settlement {
    WorkPtr work;
    Outcome outcome = Outcome::Done;
    std::string reason{};            ///< of a failure
    std::vector<Message> answers{};  ///< completed, ready to be stored
    bool delete_anyway = false;      ///< Morphium's rule: an exception deletes as success does
    bool mark_only = false;          ///< a consumed answer: nothing but the mark is due
    int tries = 0;
};

/// Threads: safe.
class Settler {
  public:
    struct Hooks {
        std::function<void()> room;                  ///< claims may go on
        std::function<void(bool soon)> poll;         ///< messages became available again
        std::function<void(milliseconds)> retry_in;  ///< look again then
    };

    Settler(Context& context, Intake& intake, Leases& leases)
        : context_(context), intake_(intake), leases_(leases) {}
    void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }

    /// Writes it now on this thread, or leaves it to the thread that writes at the moment. For
    /// handler threads.
    void settle(Settlement settlement);
    /// Leaves it to the settle executor. For threads that do no I/O.
    void settle_later(Settlement settlement);
    /// Deletes messages that a poll found expired; on the calling thread.
    void delete_expired(const std::vector<WorkPtr>& works);

    /// Waits until nothing is left to write; false when `deadline` passed first.
    bool wait_idle(std::chrono::steady_clock::time_point deadline);
    std::size_t waiting_count() const;

  private:
    using Batch = std::vector<Settlement>;
    static constexpr std::size_t kBatchMax = 1000;
    static constexpr int kTriesMax = 10;

    void drain_on_executor();
    bool idle() const ANGELIA_REQUIRES(mutex_) {
        return !writing_ && queue_.empty() && retrying_ == 0;
    }
    Batch take();
    void write(Batch batch);
    void store_answers(Batch& batch, Batch& again);
    void write_messages(Batch& batch, Batch& again);
    void release_locks(Batch& batch, Batch& again);
    void finish(Settlement& settlement);
    void try_again(Batch again);

    Context& context_;
    Intake& intake_;
    Leases& leases_;
    Hooks hooks_;

    mutable Mutex mutex_;
    Condition became_idle_;
    std::deque<Settlement> queue_ ANGELIA_GUARDED_BY(mutex_);
    bool writing_ ANGELIA_GUARDED_BY(mutex_) = false;
    std::size_t retrying_ ANGELIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace angelia::messaging
