// How far commits are durable, and who waits for that. Internal to this folder.
#pragma once

#include "engine/storage/storage.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace angelia::engine::storage {

/// raise() moves the mark; notify() then runs, on the calling thread and under no lock, the steps
/// of each advance: `first` (the oplog's listeners), the durable listener, the continuations in
/// commit order. When several threads notify, one of them does the work of all, so nothing ever
/// runs twice or out of order. Threads: safe.
class Watermark {
  public:
    using Done = std::function<void(Result<void>)>;
    using Listener = std::function<void(CommitPosition)>;

    explicit Watermark(std::function<void()> first) : first_(std::move(first)) {}

    /// Where a store stands when it is opened; nobody is told.
    void start_at(CommitPosition position);

    CommitPosition durable() const;
    /// Ignored when `to` is not ahead.
    void raise(CommitPosition to);
    void notify();

    void set_listener(Listener listener);
    /// Runs `done` with the advance that covers `position`; at once, on this thread, when that has
    /// been; with the error at once while the mark cannot move.
    void when(CommitPosition position, Done done);
    Result<void> wait(CommitPosition position);
    /// As wait(), but learns of the advance before anybody was notified; for the thread that may
    /// have to notify() itself.
    Result<void> wait_for_mark(CommitPosition position);

    /// The mark cannot move: who waits gets the error (on the next notify()), who comes too.
    void fail(Error error);
    void recover();

  private:
    struct Waiter {
        CommitPosition position;
        Done done;
    };

    mutable std::mutex mutex_;  // everything below
    CommitPosition durable_;
    CommitPosition notified_;
    bool notifying_ = false;
    std::optional<Error> failure_;
    std::condition_variable moved_;  ///< raise() and fail(); waited for by wait_for_mark() only
    std::deque<Waiter> waiters_;     ///< in commit order; one for each commit in flight
    Listener listener_;
    const std::function<void()> first_;
};

}  // namespace angelia::engine::storage
