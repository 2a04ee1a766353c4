// The machine behind SerialExecutor (one thread) and ThreadPool (several): a queue, timers, and
// threads that sleep when there is nothing to do. A post costs a wake-up only when a thread sleeps.
#pragma once

#include "base/timer_queue.h"

#include <angelia/base/mutex.h>
#include <angelia/base/threads.h>

#include <deque>
#include <list>
#include <string>
#include <thread>
#include <vector>

namespace angelia::detail {

class WorkerSet {
  public:
    using Task = Executor::Task;
    using TimerId = Executor::TimerId;
    struct Options {
        std::string name;
        std::size_t threads_max = 1;
        std::size_t tasks_max = 0;
        milliseconds idle_time{0};
    };

    explicit WorkerSet(Options options);
    ~WorkerSet();
    WorkerSet(const WorkerSet&) = delete;
    WorkerSet& operator=(const WorkerSet&) = delete;

    Result<void> start();
    void post(Task task);
    bool try_post(Task& task);
    TimerId post_after(microseconds delay, Task task);
    bool cancel(TimerId timer);
    void stop(StopMode mode);
    bool on_own_thread() const noexcept;
    std::size_t tasks_waiting() const;
    std::size_t thread_count() const;

  private:
    using Threads = std::list<std::thread>;
    enum class Wake { Nobody, Idle, Timekeeper };

    bool full() const ANGELIA_REQUIRES(mutex_) {
        return options_.tasks_max != 0 && queue_.size() >= options_.tasks_max;
    }
    /// Puts the task in line and says who should be woken, after unlocking.
    Wake enqueue(Task task) ANGELIA_REQUIRES(mutex_);
    void wake(Wake who);
    bool spawn() ANGELIA_REQUIRES(mutex_);
    void run(Threads::iterator self);
    Task next_task(bool& timer_ran_last) ANGELIA_REQUIRES(mutex_);
    /// Called by a thread that is about to be busy: somebody else should watch the timers.
    void hand_over_timers() ANGELIA_REQUIRES(mutex_);
    /// Sleeps until there may be work. False when this thread should leave the pool.
    bool sleep() ANGELIA_REQUIRES(mutex_);

    const Options options_;

    mutable Mutex mutex_;
    Condition work_;        ///< idle threads wait here
    Condition timer_wake_;  ///< the one thread that watches the timers waits here
    Condition room_;        ///< posters wait here when the queue is full
    Condition stopped_wake_;
    std::deque<Task> queue_ ANGELIA_GUARDED_BY(mutex_);
    TimerQueue timers_ ANGELIA_GUARDED_BY(mutex_);
    Threads threads_ ANGELIA_GUARDED_BY(mutex_);
    Threads left_ ANGELIA_GUARDED_BY(mutex_);  ///< threads that left for idleness, to be joined
    std::size_t idle_ ANGELIA_GUARDED_BY(mutex_) = 0;
    bool timekeeper_ ANGELIA_GUARDED_BY(mutex_) = false;  ///< a thread waits on timer_wake_
    bool started_ ANGELIA_GUARDED_BY(mutex_) = false;
    bool stopping_ ANGELIA_GUARDED_BY(mutex_) = false;
    bool dropping_ ANGELIA_GUARDED_BY(mutex_) = false;
    bool joining_ ANGELIA_GUARDED_BY(mutex_) = false;
    bool stopped_ ANGELIA_GUARDED_BY(mutex_) = false;
};

}  // namespace angelia::detail
