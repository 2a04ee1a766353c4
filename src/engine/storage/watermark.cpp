#include "engine/storage/watermark.h"

#include <algorithm>

namespace angelia::engine::storage {

CommitPosition Watermark::durable() const {
    std::lock_guard lock(mutex_);
    return durable_;
}

void Watermark::start_at(CommitPosition position) {
    std::lock_guard lock(mutex_);
    durable_ = notified_ = position;
}

void Watermark::raise(CommitPosition to) {
    std::lock_guard lock(mutex_);
    if (to > durable_) durable_ = to;
    moved_.notify_all();
}

void Watermark::set_listener(Listener listener) {
    std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
}

void Watermark::notify() {
    std::unique_lock lock(mutex_);
    if (notifying_) return;  // whoever is at it looks again before it leaves
    notifying_ = true;
    std::vector<Waiter> ready;
    for (;;) {
        const bool advanced = durable_ > notified_;
        const auto upto = durable_;
        auto listener = advanced ? listener_ : Listener();
        if (advanced) {
            lock.unlock();
            first_();
            if (listener) listener(upto);
            lock.lock();
            notified_ = upto;
        }
        while (!waiters_.empty() && waiters_.front().position <= notified_) {
            ready.push_back(std::move(waiters_.front()));
            waiters_.pop_front();
        }
        const auto covered = ready.size();
        const auto failure = failure_;
        if (failure) {
            // What is durable already is told so in the next round.
            while (!waiters_.empty() && waiters_.back().position > durable_) {
                ready.insert(ready.begin() + static_cast<std::ptrdiff_t>(covered),
                             std::move(waiters_.back()));
                waiters_.pop_back();
            }
        }
        if (ready.empty() && durable_ == notified_) break;
        lock.unlock();
        for (std::size_t i = 0; i < ready.size(); ++i)
            ready[i].done(i < covered ? Result<void>() : Result<void>(*failure));
        ready.clear();
        lock.lock();
    }
    notifying_ = false;
}

void Watermark::when(CommitPosition position, Done done) {
    std::optional<Error> failure;
    {
        std::lock_guard lock(mutex_);
        if (position > notified_) {
            if (!failure_ || position <= durable_) {
                const auto at = std::upper_bound(
                    waiters_.begin(), waiters_.end(), position,
                    [](CommitPosition p, const Waiter& waiter) { return p < waiter.position; });
                waiters_.insert(at, {position, std::move(done)});
                return;
            }
            failure = failure_;
        }
    }
    done(failure ? Result<void>(*std::move(failure)) : Result<void>());
}

Result<void> Watermark::wait(CommitPosition position) {
    {
        std::lock_guard lock(mutex_);
        if (position <= durable_) return {};
        if (failure_) return *failure_;
    }
    struct State {
        std::mutex mutex;
        std::condition_variable told;
        std::optional<Result<void>> result;
    } state;
    when(position, [&state](Result<void> result) {
        std::lock_guard lock(state.mutex);
        state.result = std::move(result);
        state.told.notify_one();  // under the lock: `state` may be gone right after it
    });
    std::unique_lock lock(state.mutex);
    state.told.wait(lock, [&] { return state.result.has_value(); });
    return *std::move(state.result);
}

Result<void> Watermark::wait_for_mark(CommitPosition position) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return durable_ >= position || failure_; });
    if (durable_ >= position) return {};
    return *failure_;
}

void Watermark::fail(Error error) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(error);
    moved_.notify_all();
}

void Watermark::recover() {
    std::lock_guard lock(mutex_);
    failure_.reset();
}

}  // namespace angelia::engine::storage
