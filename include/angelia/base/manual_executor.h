// Executors without threads: a test or the simulator runs the tasks itself, on a ManualClock, the
// same way every time.
//
//     ManualClock clock;  ManualExecutor lane(clock);
//     lane.post_after(5s, …);  lane.advance(10s);        // the task has run, and saw the clock at
//     5 s
//
//     ManualScheduler scheduler(clock, seed);  ManualExecutor a(scheduler), b(scheduler);   //
//     several lanes, one time
#pragma once

#include <angelia/base/executor.h>

#include <cstddef>
#include <memory>

namespace angelia {

/// Runs the tasks of several ManualExecutors on the thread that calls run_ready() or advance().
/// Tasks of one executor keep their order. Without a seed tasks run in the order in which they were
/// posted; with one, the executor whose turn it is is drawn. Threads: posting is safe, running is
/// one thread's business.
class ManualScheduler {
  public:
    explicit ManualScheduler(ManualClock& clock, std::uint64_t seed = 0);
    ~ManualScheduler();
    ManualScheduler(const ManualScheduler&) = delete;
    ManualScheduler& operator=(const ManualScheduler&) = delete;

    /// Runs one task or due timer; false when there is none.
    bool run_one();
    /// Runs until nothing is ready, including what the tasks themselves post. Returns how many ran.
    /// More than `tasks_max` means that tasks keep posting tasks: aborts.
    std::size_t run_ready(std::size_t tasks_max = 10'000'000);
    /// Moves the clock to each timer in turn, runs it and all that becomes ready, and ends `by`
    /// later.
    void advance(microseconds by);
    /// When the next timer is due; SteadyTime::max() when there is none.
    SteadyTime next_timer() const;
    ManualClock& clock() noexcept { return clock_; }

  private:
    friend class ManualExecutor;
    struct State;
    ManualClock& clock_;
    std::unique_ptr<State> state_;
};

class ManualExecutor final : public Executor {
  public:
    explicit ManualExecutor(ManualClock& clock);          ///< with a scheduler of its own
    explicit ManualExecutor(ManualScheduler& scheduler);  ///< the scheduler must live longer
    ~ManualExecutor() override;                           ///< drops what waits
    ManualExecutor(const ManualExecutor&) = delete;
    ManualExecutor& operator=(const ManualExecutor&) = delete;

    void post(Task task) override;
    TimerId post_after(microseconds delay, Task task) override;
    bool cancel(TimerId timer) override;
    /// A crash: drops tasks and timers; later ones are dropped at once.
    void stop();

    std::size_t run_ready() { return scheduler_->run_ready(); }
    void advance(microseconds by) { scheduler_->advance(by); }
    std::size_t tasks_waiting() const;

  private:
    std::unique_ptr<ManualScheduler> own_;
    ManualScheduler* scheduler_;
    std::uint64_t id_;
};

}  // namespace angelia
