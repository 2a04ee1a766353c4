#include "base/worker_set.h"

#include <angelia/base/check.h>

#include <pthread.h>

#include <system_error>

namespace angelia::detail {
namespace {

thread_local const void* current_worker_set = nullptr;

}  // namespace

WorkerSet::WorkerSet(Options options) : options_(std::move(options)) {
    ANGELIA_CHECK(options_.threads_max > 0);
}

WorkerSet::~WorkerSet() { stop(StopMode::Drop); }

Result<void> WorkerSet::start() {
    MutexLock lock(mutex_);
    if (stopping_)
        return {ErrorCode::ShutdownInProgress, "executor '" + options_.name + "' has been stopped"};
    if (started_) return {};
    if (!spawn())
        return {ErrorCode::OperationFailed, "cannot start a thread for '" + options_.name + "'"};
    started_ = true;
    return {};
}

void WorkerSet::post(Task task) {
    MutexLock lock(mutex_);
    while (full() && !stopping_ && !on_own_thread()) room_.wait(mutex_);
    if (stopping_) {
        lock.unlock();  // the task dies outside: what it holds may call us
        return;
    }
    const Wake who = enqueue(std::move(task));
    lock.unlock();
    wake(who);
}

bool WorkerSet::try_post(Task& task) {
    MutexLock lock(mutex_);
    if (stopping_ || full()) return false;
    const Wake who = enqueue(std::move(task));
    lock.unlock();
    wake(who);
    return true;
}

WorkerSet::Wake WorkerSet::enqueue(Task task) {
    ANGELIA_CHECK(task);
    queue_.push_back(std::move(task));
    // Sleepers that were woken for earlier tasks still count as sleepers, and those tasks still
    // count as waiting.
    if (queue_.size() <= idle_) return Wake::Idle;
    if (timekeeper_ && queue_.size() == idle_ + 1) return Wake::Timekeeper;
    if (started_ && threads_.size() < options_.threads_max)
        spawn();  // when it fails, the threads we have do the work
    return Wake::Nobody;
}

void WorkerSet::wake(Wake who) {
    switch (who) {
        case Wake::Nobody:
            return;
        case Wake::Idle:
            work_.notify_one();
            return;
        case Wake::Timekeeper:
            timer_wake_.notify_one();
            return;
    }
}

WorkerSet::TimerId WorkerSet::post_after(microseconds delay, Task task) {
    ANGELIA_CHECK(task);
    const SteadyTime deadline = real_clock().steady_now() + delay;
    MutexLock lock(mutex_);
    if (stopping_) {
        lock.unlock();
        return TimerId{};
    }
    const bool first = timers_.empty() || deadline < timers_.next_deadline();
    const TimerId id = timers_.add(deadline, std::move(task));
    Wake who = Wake::Nobody;
    if (timekeeper_) {
        if (first) who = Wake::Timekeeper;
    } else if (idle_ > 0) {
        who = Wake::Idle;
    } else if (started_ && threads_.size() < options_.threads_max) {
        spawn();
    }
    lock.unlock();
    wake(who);
    return id;
}

bool WorkerSet::cancel(TimerId timer) {
    Task task;  // dies after the lock
    MutexLock lock(mutex_);
    task = timers_.take(timer);
    return static_cast<bool>(task);
}

bool WorkerSet::spawn() {
    for (auto& thread : left_) thread.join();  // they hold no lock any more and are about to end
    left_.clear();
    const auto self = threads_.emplace(threads_.end());
    try {
        *self = std::thread([this, self] { run(self); });
    } catch (const std::system_error&) {
        threads_.erase(self);
        return false;
    }
    pthread_setname_np(self->native_handle(), options_.name.substr(0, 15).c_str());
    return true;
}

void WorkerSet::run(Threads::iterator self) {
    current_worker_set = this;
    bool timer_ran_last = false;
    MutexLock lock(mutex_);
    while (!dropping_) {
        if (Task task = next_task(timer_ran_last)) {
            hand_over_timers();
            lock.unlock();
            task();
            task = nullptr;
            lock.lock();
        } else if (stopping_) {
            return;
        } else if (!sleep()) {
            left_.splice(left_.end(), threads_, self);
            return;
        }
    }
}

WorkerSet::Task WorkerSet::next_task(bool& timer_ran_last) {
    // A timer is taken only when it runs, so that cancel() tells the truth; timers and posts take
    // turns when both are there.
    const bool posts_turn = timer_ran_last && !queue_.empty();
    if (!posts_turn && !timers_.empty() && timers_.next_deadline() <= real_clock().steady_now()) {
        timer_ran_last = true;
        return timers_.take_first();
    }
    if (queue_.empty()) return {};
    timer_ran_last = false;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    if (options_.tasks_max != 0) room_.notify_one();
    return task;
}

void WorkerSet::hand_over_timers() {
    if (timers_.empty() || timekeeper_ || stopping_) return;
    if (idle_ > 0) {
        work_.notify_one();
    } else if (threads_.size() < options_.threads_max) {
        spawn();
    }
}

bool WorkerSet::sleep() {
    if (!timers_.empty() && !timekeeper_) {
        timekeeper_ = true;
        timer_wake_.wait_until(mutex_, timers_.next_deadline());
        timekeeper_ = false;
        return true;
    }
    ++idle_;
    bool in_time = true;
    if (threads_.size() == 1) {
        work_.wait(mutex_);
    } else {
        in_time = work_.wait_until(mutex_, std::chrono::steady_clock::now() + options_.idle_time);
    }
    --idle_;
    const bool needed =
        !queue_.empty() || stopping_ || threads_.size() == 1 || (!timers_.empty() && !timekeeper_);
    return in_time || needed;
}

void WorkerSet::stop(StopMode mode) {
    ANGELIA_CHECK(!on_own_thread());
    std::deque<Task> dropped;
    TimerQueue dropped_timers;
    Threads to_join;
    {
        MutexLock lock(mutex_);
        stopping_ = true;
        std::swap(dropped_timers, timers_);
        if (mode == StopMode::Drop || !started_) {
            dropping_ = true;
            dropped.swap(queue_);
        }
        work_.notify_all();
        timer_wake_.notify_all();
        room_.notify_all();
        if (joining_) {
            while (!stopped_) stopped_wake_.wait(mutex_);
            return;
        }
        joining_ = true;
        to_join.splice(to_join.end(), threads_);
        to_join.splice(to_join.end(), left_);
    }
    for (auto& thread : to_join) thread.join();
    MutexLock lock(mutex_);
    stopped_ = true;
    stopped_wake_.notify_all();
}

bool WorkerSet::on_own_thread() const noexcept { return current_worker_set == this; }

std::size_t WorkerSet::tasks_waiting() const {
    MutexLock lock(mutex_);
    return queue_.size();
}

std::size_t WorkerSet::thread_count() const {
    MutexLock lock(mutex_);
    return threads_.size();
}

}  // namespace angelia::detail
