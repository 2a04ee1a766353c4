#include <angelia/base/manual_executor.h>

#include "base/timer_queue.h"

#include <angelia/base/check.h>
#include <angelia/base/mutex.h>

#include <algorithm>
#include <deque>
#include <random>

namespace angelia {

struct ManualScheduler::State {
    struct Posted {
        std::uint64_t sequence;
        Executor::Task task;
    };
    struct Lane {
        std::deque<Posted> tasks;
        bool stopped = false;
    };
    explicit State(std::uint64_t seed) : drawn(seed != 0), random(seed) {}

    const bool drawn;
    Mutex mutex;
    std::mt19937_64 random ANGELIA_GUARDED_BY(mutex);
    std::map<std::uint64_t, Lane> lanes ANGELIA_GUARDED_BY(mutex);
    detail::TimerQueue timers ANGELIA_GUARDED_BY(mutex);
    std::uint64_t last_lane ANGELIA_GUARDED_BY(mutex) = 0;
    std::uint64_t last_sequence ANGELIA_GUARDED_BY(mutex) = 0;

    /// The task whose turn it is; empty when none is ready.
    Executor::Task next_posted() ANGELIA_REQUIRES(mutex) {
        std::vector<Lane*> ready;
        for (auto& [id, lane] : lanes) {
            if (!lane.tasks.empty()) ready.push_back(&lane);
        }
        if (ready.empty()) return {};
        Lane* lane =
            drawn ? ready[random() % ready.size()]
                  : *std::min_element(ready.begin(), ready.end(), [](const Lane* a, const Lane* b) {
                        return a->tasks.front().sequence < b->tasks.front().sequence;
                    });
        Executor::Task task = std::move(lane->tasks.front().task);
        lane->tasks.pop_front();
        return task;
    }
};

ManualScheduler::ManualScheduler(ManualClock& clock, std::uint64_t seed)
    : clock_(clock), state_(std::make_unique<State>(seed)) {}
ManualScheduler::~ManualScheduler() = default;

bool ManualScheduler::run_one() {
    Executor::Task task;
    {
        MutexLock lock(state_->mutex);
        auto& timers = state_->timers;
        if (!timers.empty() && timers.next_deadline() <= clock_.steady_now()) {
            task = timers.take_first();
        } else {
            task = state_->next_posted();
        }
    }
    if (!task) return false;
    task();
    return true;
}

std::size_t ManualScheduler::run_ready(std::size_t tasks_max) {
    std::size_t count = 0;
    while (run_one()) ANGELIA_CHECK(++count <= tasks_max);
    return count;
}

void ManualScheduler::advance(microseconds by) {
    const SteadyTime end = clock_.steady_now() + by;
    run_ready();
    for (SteadyTime next = next_timer(); next <= end; next = next_timer()) {
        clock_.advance(next - clock_.steady_now());
        run_ready();
    }
    // A task may have moved the clock itself.
    if (clock_.steady_now() < end) clock_.advance(end - clock_.steady_now());
}

SteadyTime ManualScheduler::next_timer() const {
    MutexLock lock(state_->mutex);
    return state_->timers.empty() ? SteadyTime::max() : state_->timers.next_deadline();
}

ManualExecutor::ManualExecutor(ManualScheduler& scheduler) : scheduler_(&scheduler) {
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    id_ = ++state.last_lane;
    state.lanes[id_];
}

ManualExecutor::ManualExecutor(ManualClock& clock)
    : own_(std::make_unique<ManualScheduler>(clock)), scheduler_(own_.get()) {
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    id_ = ++state.last_lane;
    state.lanes[id_];
}

ManualExecutor::~ManualExecutor() {
    stop();
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    state.lanes.erase(id_);
}

void ManualExecutor::post(Task task) {
    ANGELIA_CHECK(task);
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    auto& lane = state.lanes[id_];
    if (lane.stopped) {
        lock.unlock();  // the task dies outside: what it holds may call us
        return;
    }
    lane.tasks.push_back({++state.last_sequence, std::move(task)});
}

Executor::TimerId ManualExecutor::post_after(microseconds delay, Task task) {
    ANGELIA_CHECK(task);
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    if (state.lanes[id_].stopped) {
        lock.unlock();
        return TimerId{};
    }
    return state.timers.add(scheduler_->clock_.steady_now() + delay, std::move(task), id_);
}

bool ManualExecutor::cancel(TimerId timer) {
    Task task;  // dies after the lock
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    task = state.timers.take(timer);
    return static_cast<bool>(task);
}

void ManualExecutor::stop() {
    std::deque<ManualScheduler::State::Posted> dropped;
    std::vector<Task> dropped_timers;
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    auto& lane = state.lanes[id_];
    lane.stopped = true;
    dropped.swap(lane.tasks);
    dropped_timers = state.timers.take_all_of(id_);
}

std::size_t ManualExecutor::tasks_waiting() const {
    auto& state = *scheduler_->state_;
    MutexLock lock(state.mutex);
    return state.lanes[id_].tasks.size();
}

}  // namespace angelia
