// Executors on real threads: a lane (one thread, in order) and a pool (several, side by side).
#pragma once

#include <angelia/base/executor.h>
#include <angelia/base/result.h>

#include <cstddef>
#include <memory>
#include <string>

namespace angelia {

enum class StopMode {
    Drain,  ///< run what waits, then end; timers are dropped
    Drop,   ///< finish only what runs now
};

namespace detail {
class WorkerSet;
}

struct SerialExecutorOptions {
    std::string name = "lane";  ///< of the thread, as debuggers show it; at most 15 bytes are kept
    std::size_t tasks_max = 0;  ///< waiting tasks; 0 = no bound
};

/// One thread that runs tasks in the order of post(), and timers when they are due. Life:
/// construct, start(), stop(). Tasks posted before start() wait for it; after stop() tasks are
/// destroyed without being run. Threads: safe.
class SerialExecutor final : public Executor {
  public:
    explicit SerialExecutor(SerialExecutorOptions options = {});
    ~SerialExecutor() override;  ///< stops with Drop; not on its own thread
    SerialExecutor(const SerialExecutor&) = delete;
    SerialExecutor& operator=(const SerialExecutor&) = delete;

    /// Errors: OperationFailed when no thread can be had; ShutdownInProgress after stop().
    Result<void> start();
    /// Waits for room when the bound is reached, except on the executor's own thread, which may
    /// pass the bound.
    void post(Task task) override;
    /// False, with `task` untouched, when the bound is reached or the executor has stopped.
    bool try_post(Task& task);
    TimerId post_after(microseconds delay, Task task) override;
    bool cancel(TimerId timer) override;
    /// Refuses new work and returns when the thread has ended. May be called again. Never from a
    /// task of this executor (checked).
    void stop(StopMode mode);
    bool on_own_thread() const noexcept;
    std::size_t tasks_waiting() const;

  private:
    std::unique_ptr<detail::WorkerSet> workers_;
};

struct ThreadPoolOptions {
    std::string name = "pool";
    std::size_t threads_max = 4;
    std::size_t tasks_max = 0;       ///< waiting tasks; 0 = no bound
    milliseconds idle_time{10'000};  ///< an idle thread leaves after this; the last one stays
};

/// At most `threads_max` threads, made when work needs them. Tasks start in the order of post() and
/// run side by side. Life, bounds and stopping as SerialExecutor. Threads: safe.
class ThreadPool final : public Executor {
  public:
    explicit ThreadPool(ThreadPoolOptions options = {});
    ~ThreadPool() override;
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    Result<void> start();
    void post(Task task) override;
    bool try_post(Task& task);
    TimerId post_after(microseconds delay, Task task) override;
    bool cancel(TimerId timer) override;
    void stop(StopMode mode);
    bool on_own_thread() const noexcept;
    std::size_t tasks_waiting() const;
    std::size_t thread_count() const;

  private:
    std::unique_ptr<detail::WorkerSet> workers_;
};

}  // namespace angelia
