#include "messaging/leases.h"

#include <algorithm>

namespace angelia::messaging {

std::size_t Leases::room() const {
    // Work for so long may wait locally. Longer, and an idle node starves beside a busy one.
    constexpr double kAheadMicros = 50'000;
    MutexLock lock(mutex_);
    std::size_t target = context_.threads;
    if (mean_us_ >= 0) {
        const double ahead =
            static_cast<double>(context_.threads) * kAheadMicros / std::max(mean_us_, 1.0);
        target += static_cast<std::size_t>(std::min(ahead, 1.0e6));
    }
    target = std::min(target, context_.options.window);
    // Outcomes under way are bounded too, though they need no handler any more.
    const std::size_t active = held_.size() - finished_;
    const std::size_t settling_max = 10 * context_.options.window;
    if (active >= target || finished_ >= settling_max) return 0;
    return target - active;
}

void Leases::add(const std::vector<WorkPtr>& claimed, SteadyTime claimed_at) {
    MutexLock lock(mutex_);
    for (const auto& work : claimed) {
        Held held;
        held.attempt = work->message().attempt;
        held.ends = claimed_at + context_.options.lease;
        auto [at, is_new] = held_.insert_or_assign(work->id(), held);
        static_cast<void>(at);
        static_cast<void>(is_new);
    }
}

bool Leases::begin(const bson::ObjectId& id) {
    if (!context_.at_least_once) return true;  // the mark protects, not the time
    const auto now = context_.clock.steady_now();
    MutexLock lock(mutex_);
    auto found = held_.find(id);
    return found != held_.end() && !found->second.lost && now < found->second.ends;
}

void Leases::finished(const bson::ObjectId& id, microseconds took) {
    MutexLock lock(mutex_);
    const double us = static_cast<double>(took.count());
    constexpr double kWeight = 0.2;
    mean_us_ = mean_us_ < 0 ? us : mean_us_ * (1 - kWeight) + us * kWeight;
    auto found = held_.find(id);
    if (found == held_.end() || found->second.finished) return;
    found->second.finished = true;
    ++finished_;
}

void Leases::drop(const bson::ObjectId& id) {
    MutexLock lock(mutex_);
    auto found = held_.find(id);
    if (found == held_.end()) return;
    if (found->second.finished) --finished_;
    held_.erase(found);
}

void Leases::renew() {
    if (!context_.at_least_once) return;
    std::vector<std::pair<bson::ObjectId, std::int32_t>> held;
    {
        MutexLock lock(mutex_);
        for (const auto& [id, h] : held_) {
            if (!h.lost && !h.finished) held.emplace_back(id, h.attempt);
        }
    }
    if (held.empty()) return;
    const auto steady = context_.clock.steady_now();
    const bson::Date until{context_.server_millis() + context_.options.lease.count()};
    std::vector<store::UpdateOp> messages, locks;
    for (const auto& [id, attempt] : held) {
        store::UpdateOp message, lock;
        message.filter = bson::make("_id", id, "leased_by", context_.self, "attempt", attempt);
        message.update = bson::make("$set", bson::make("leased_until", until));
        lock.filter = bson::make("_id", id, "lock_id", context_.self, "attempt", attempt);
        lock.update = bson::make("$set", bson::make("delete_at", until));
        messages.push_back(std::move(message));
        locks.push_back(std::move(lock));
    }
    const auto timeout = std::max(milliseconds(100), context_.options.lease / 3);
    // The lock first: should we stop in between, it is the message's lease that says when others
    // may try.
    auto extended_locks =
        context_.store.update(context_.locks, std::move(locks), false, Context::majority(timeout));
    auto extended = context_.store.update(context_.main, std::move(messages), false,
                                          Context::majority(timeout));
    if (!extended_locks || !extended) {
        context_.metrics.add(Counter::renew_errors);
        context_.log(LogLevel::Warning,
                     "leases could not be renewed: " +
                         (extended ? extended_locks.error() : extended.error()).to_string());
        return;
    }
    std::vector<std::pair<bson::ObjectId, std::int32_t>> kept, lost;
    if (extended->matched == static_cast<std::int64_t>(held.size())) {
        kept = held;
    } else {
        bson::Builder ids;
        ids.open("_id").open_array("$in");
        for (const auto& [id, attempt] : held) ids.push(id);
        ids.close().close();
        ids.add("leased_by", context_.self);
        store::FindRequest ours{
            context_.main, ids.take(), bson::make("attempt", std::int32_t{1}), {}, 0, 0};
        auto found = context_.store.find(ours, {.timeout = timeout});
        if (!found) {
            context_.metrics.add(Counter::renew_errors);
            return;
        }
        for (const auto& h : held) {
            const bool still =
                std::any_of(found->begin(), found->end(), [&](const bson::Document& d) {
                    return d["_id"].get_object_id() == h.first &&
                           d["attempt"].to_int64() == h.second;
                });
            (still ? kept : lost).push_back(h);
        }
    }
    context_.metrics.add(Counter::leases_renewed, static_cast<std::int64_t>(kept.size()));
    {
        MutexLock lock(mutex_);
        for (const auto& [id, attempt] : kept) {
            auto h = held_.find(id);
            if (h != held_.end() && h->second.attempt == attempt)
                h->second.ends = steady + context_.options.lease;
        }
    }
    mark_lost(lost);
}

void Leases::mark_lost(const std::vector<std::pair<bson::ObjectId, std::int32_t>>& lost) {
    MutexLock lock(mutex_);
    for (const auto& [id, attempt] : lost) {
        auto h = held_.find(id);
        // Settled in the meantime is not lost.
        if (h != held_.end() && h->second.attempt == attempt && !h->second.finished)
            h->second.lost = true;
    }
}

std::size_t Leases::held_count() const {
    MutexLock lock(mutex_);
    return held_.size();
}

std::optional<microseconds> Leases::mean_run_time() const {
    MutexLock lock(mutex_);
    if (mean_us_ < 0) return std::nullopt;
    return microseconds(static_cast<std::int64_t>(mean_us_));
}

}  // namespace angelia::messaging
