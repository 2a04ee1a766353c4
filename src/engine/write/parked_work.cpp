#include "engine/write/parked_work.h"

#include "engine/write/target_search.h"

namespace angelia::engine {

void ParkedWork::run() {
    for (;;) {
        if (auto in_time = check_deadline(core_, deadline_); !in_time)
            return finish(std::move(in_time));
        auto result = attempt_(waiter_);
        auto key = result ? std::nullopt : blocked_on(result.error());
        if (!key) return finish(std::move(result));
        if (!park(std::move(*key))) return;
    }
}

void ParkedWork::run_after(std::string key) {
    if (park(std::move(key))) run();
}

bool ParkedWork::park(std::string key) {
    if (auto in_time = check_deadline(core_, deadline_); !in_time) {
        finish(std::move(in_time));
        return false;
    }
    auto self = shared_from_this();
    std::unique_lock lock(core_.apply_mutex);
    if (waiter_ == 0) ++core_.counters.parked;
    // From the moment it is parked another thread may run it, so the timer comes first.
    if (deadline_ != SteadyTime::max() && !timer_) {
        const auto rest = std::chrono::ceil<microseconds>(deadline_ - core_.clock().steady_now());
        timer_ = timers_.post_after(std::max(rest, microseconds{0}), [self] {
            std::lock_guard inner(self->core_.apply_mutex);
            self->timer_.reset();  // should it park once more, it needs another one
            self->core_.intents.nudge(self->waiter_);
        });
    }
    auto parked = core_.intents.park(waiter_, key, [self] { self->run(); });
    if (parked) {
        if (*parked != 0) waiter_ = *parked;
        return *parked == 0;
    }
    lock.unlock();
    finish(std::move(parked).error());
    return false;
}

void ParkedWork::finish(Result<void> result) {
    {
        std::lock_guard lock(core_.apply_mutex);
        if (timer_) (void)timers_.cancel(*timer_);
        timer_.reset();
        if (waiter_ != 0) core_.intents.leave(waiter_);
    }
    done_(std::move(result));
}

}  // namespace angelia::engine
