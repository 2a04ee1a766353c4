// What happens after a handler: its answers are stored, its message is marked, deleted, or put
// back; locks are released. In batches: the thread that comes first writes what is there, later
// ones only add to the next batch. Nobody waits for a mark, so marks wait a moment for others.
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

class SettleBulk;

/// Two stages. Answers are stored at once. When they are, the outcome joins the marks, which are
/// written together: after Options::settle_delay, when many are there, with the next answers that
/// the settle executor stores, or at once if the message becomes available to others by it.
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

    /// Stores the answers now on this thread, or leaves them to the thread that stores at the
    /// moment. For handler threads.
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
    static constexpr std::size_t kMarksMany = 200;  ///< so many are written without delay
    static constexpr int kTriesMax = 10;

    bool idle() const ANGELIA_REQUIRES(mutex_) {
        return !storing_ && !marking_ && answers_.empty() && marks_.empty() && retrying_ == 0;
    }
    static Batch take(std::deque<Settlement>& from);

    // answers; who calls store_next() or store() holds `storing_`
    void store_on_executor();
    void store_next();
    void store(Batch& batch, Batch& riders, Batch& again);
    void stored(Batch batch, Batch again);
    // marks
    void add_mark(Settlement settlement) ANGELIA_REQUIRES(mutex_);
    bool mark_due() const ANGELIA_REQUIRES(mutex_);
    void write_if_due();
    void arm();
    void flush_on_executor();
    void flush();
    void write_marks(Batch& batch, Batch& again);
    void marked(Batch batch);
    void mark_refused(const Error& error);
    void count_marks(const SettleBulk& bulk, const store::BulkResult& done);
    void tell_availability(const Batch& batch);

    void finish(const Settlement& settlement);
    void try_again(Batch again);

    Context& context_;
    Intake& intake_;
    Leases& leases_;
    Hooks hooks_;

    mutable Mutex mutex_;
    Condition became_idle_;
    std::deque<Settlement> answers_ ANGELIA_GUARDED_BY(mutex_);  ///< to be stored
    std::deque<Settlement> marks_ ANGELIA_GUARDED_BY(mutex_);    ///< answers stored
    bool storing_ ANGELIA_GUARDED_BY(mutex_) = false;            ///< one thread stores answers
    bool marking_ ANGELIA_GUARDED_BY(mutex_) = false;            ///< one thread writes marks
    bool armed_ ANGELIA_GUARDED_BY(mutex_) = false;              ///< the delay runs
    bool flush_wanted_ ANGELIA_GUARDED_BY(mutex_) = false;  ///< what waits is not to wait longer
    std::size_t retrying_ ANGELIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace angelia::messaging
