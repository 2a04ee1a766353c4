// Work that may have to wait for a transaction: runs at once, is parked where an intent is in its
// way, runs again when its turn has come, and ends with its deadline at the latest. No thread
// waits.
#pragma once

#include "engine/core.h"

namespace angelia::engine {

/// Threads: safe.
class ParkedWork : public std::enable_shared_from_this<ParkedWork> {
  public:
    /// `attempt` does all or nothing and answers a blocked_error() (session/intents.h) when it must
    /// wait; `done` gets any other answer, once. With a deadline `timers` wakes it.
    ParkedWork(Core& core, Executor& timers, SteadyTime deadline,
               std::function<Result<void>(WaiterId)> attempt,
               std::function<void(Result<void>)> done)
        : core_(core),
          timers_(timers),
          deadline_(deadline),
          attempt_(std::move(attempt)),
          done_(std::move(done)) {}

    void run();
    /// For work whose first attempt was made already and was blocked on `key`.
    void run_after(std::string key);

  private:
    /// True: try again at once.
    bool park(std::string key);
    void finish(Result<void> result);

    Core& core_;
    Executor& timers_;
    const SteadyTime deadline_;
    const std::function<Result<void>(WaiterId)> attempt_;
    const std::function<void(Result<void>)> done_;
    // -- guarded by the apply mutex
    WaiterId waiter_ = 0;
    std::optional<Executor::TimerId> timer_;
};

}  // namespace angelia::engine
