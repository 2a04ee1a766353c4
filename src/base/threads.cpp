#include <angelia/base/threads.h>

#include "base/worker_set.h"

namespace angelia {

SerialExecutor::SerialExecutor(SerialExecutorOptions options)
    : workers_(std::make_unique<detail::WorkerSet>(detail::WorkerSet::Options{
          .name = std::move(options.name), .threads_max = 1, .tasks_max = options.tasks_max})) {}
SerialExecutor::~SerialExecutor() = default;
Result<void> SerialExecutor::start() { return workers_->start(); }
void SerialExecutor::post(Task task) { workers_->post(std::move(task)); }
bool SerialExecutor::try_post(Task& task) { return workers_->try_post(task); }
Executor::TimerId SerialExecutor::post_after(microseconds delay, Task task) {
    return workers_->post_after(delay, std::move(task));
}
bool SerialExecutor::cancel(TimerId timer) { return workers_->cancel(timer); }
void SerialExecutor::stop(StopMode mode) { workers_->stop(mode); }
bool SerialExecutor::on_own_thread() const noexcept { return workers_->on_own_thread(); }
std::size_t SerialExecutor::tasks_waiting() const { return workers_->tasks_waiting(); }

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : workers_(std::make_unique<detail::WorkerSet>(
          detail::WorkerSet::Options{.name = std::move(options.name),
                                     .threads_max = options.threads_max,
                                     .tasks_max = options.tasks_max,
                                     .idle_time = options.idle_time})) {}
ThreadPool::~ThreadPool() = default;
Result<void> ThreadPool::start() { return workers_->start(); }
void ThreadPool::post(Task task) { workers_->post(std::move(task)); }
bool ThreadPool::try_post(Task& task) { return workers_->try_post(task); }
Executor::TimerId ThreadPool::post_after(microseconds delay, Task task) {
    return workers_->post_after(delay, std::move(task));
}
bool ThreadPool::cancel(TimerId timer) { return workers_->cancel(timer); }
void ThreadPool::stop(StopMode mode) { workers_->stop(mode); }
bool ThreadPool::on_own_thread() const noexcept { return workers_->on_own_thread(); }
std::size_t ThreadPool::tasks_waiting() const { return workers_->tasks_waiting(); }
std::size_t ThreadPool::thread_count() const { return workers_->thread_count(); }

}  // namespace angelia
