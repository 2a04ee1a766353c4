// Runs listeners on the handler executor, most urgent message first, and turns what they return
// into a settlement.
#pragma once

#include "messaging/settle.h"

namespace angelia::messaging {

/// Threads: safe.
class Runner {
  public:
    Runner(Context& context, Registry& registry, Intake& intake, Leases& leases, Settler& settler)
        : context_(context),
          registry_(registry),
          intake_(intake),
          leases_(leases),
          settler_(settler) {}
    void set_poll_hook(std::function<void(bool soon)> poll) { poll_ = std::move(poll); }

    /// There is work: makes sure that enough handler tasks run.
    void wake();
    /// On a free handler thread: `claim`, then what is ready by then. False: no thread is free.
    bool run_behind(std::function<void()> claim);
    std::size_t running_count() const;
    /// Waits until no handler runs; false when `deadline` passed first.
    bool wait_idle(std::chrono::steady_clock::time_point deadline);

  private:
    void run_some();
    void run(const WorkPtr& work);
    void settle(Settlement settlement);
    void run_listeners(const WorkPtr& work,
                       const std::vector<std::shared_ptr<const Listener>>& listeners);
    void add_answer(const WorkPtr& work, Reply reply, std::vector<Message>& answers);
    void broadcast_failed(const WorkPtr& work, bool threw);

    Context& context_;
    Registry& registry_;
    Intake& intake_;
    Leases& leases_;
    Settler& settler_;
    std::function<void(bool)> poll_;

    mutable Mutex mutex_;
    Condition idle_;
    std::size_t tasks_ ANGELIA_GUARDED_BY(mutex_) = 0;     // posted or running
    std::size_t claiming_ ANGELIA_GUARDED_BY(mutex_) = 0;  // of them: will look for work soon
};

}  // namespace angelia::messaging
