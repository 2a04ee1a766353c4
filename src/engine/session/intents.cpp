#include "engine/session/intents.h"

#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine {

namespace {
// Marks the one error that stays inside; MongoDB knows no such label.
constexpr const char* kBlockedLabel = "BlockedByTransaction";
}  // namespace

std::string record_intent(storage::CollectionId collection, storage::RecordId record) {
    return "r" + storage::record_key(collection, record);
}
std::string unique_intent(storage::IndexId index, std::string_view encoded) {
    return "u" + storage::unique_entry(index, encoded);
}
std::string collection_intent(storage::CollectionId collection) {
    return "c" + storage::record_prefix(collection);
}
std::string namespace_intent(const Namespace& ns) { return "n" + ns.full(); }

Error blocked_error(std::string key) {
    Error error(ErrorCode::WriteConflict, std::move(key));
    error.labels.emplace_back(kBlockedLabel);
    return error;
}

std::optional<std::string> blocked_on(const Error& error) {
    if (error.code != ErrorCode::WriteConflict || !error.has_label(kBlockedLabel))
        return std::nullopt;
    return error.message;
}

bool IntentTable::free_for(const std::string& key, WaiterId waiter) const {
    auto it = entries_.find(key);
    if (it == entries_.end()) return true;
    const Entry& entry = it->second;
    if (!entry.holders.empty()) return false;
    return entry.queue.empty() || (waiter != 0 && entry.queue.front() == waiter);
}

bool IntentTable::take(TransactionId holder, const std::string& key) {
    Entry& entry = entries_[key];
    const bool own = entry.holders.size() == 1 && entry.holders.front() == holder;
    if (own) return true;
    if (!entry.holders.empty() || !entry.queue.empty()) return false;
    entry.holders.push_back(holder);
    update_size();
    return true;
}

bool IntentTable::take_shared(TransactionId holder, const std::string& key) {
    Entry& entry = entries_[key];
    if (std::find(entry.holders.begin(), entry.holders.end(), holder) != entry.holders.end())
        return true;
    if (!entry.queue.empty()) return false;
    entry.holders.push_back(holder);
    update_size();
    return true;
}

void IntentTable::release(TransactionId holder, const std::vector<std::string>& keys) {
    for (const auto& key : keys) {
        auto it = entries_.find(key);
        if (it == entries_.end()) continue;
        std::erase(it->second.holders, holder);
        if (!it->second.holders.empty()) continue;
        if (it->second.queue.empty())
            entries_.erase(it);
        else
            wake_first(it->second);
    }
    update_size();
}

void IntentTable::wake_first(Entry& entry) { nudge(entry.queue.front()); }

Result<WaiterId> IntentTable::park(WaiterId waiter, const std::string& key,
                                   std::function<void()> resume) {
    if (closed_) return Error(ErrorCode::ShutdownInProgress, "the engine is shutting down");
    if (free_for(key, waiter)) return WaiterId{0};
    if (waiter == 0) {
        if (waiters_.size() >= kParkedMax)
            return Error(ErrorCode::TemporarilyUnavailable,
                         fmt::format("{} writes wait for transactions already; no more are allowed",
                                     kParkedMax));
        waiter = ++last_waiter_;
    }
    Waiter& parked = waiters_[waiter];
    if (parked.key != key) {
        if (!parked.key.empty()) leave_queue(waiter, parked.key);
        entries_[key].queue.push_back(waiter);
        parked.key = key;
    }
    parked.resume = std::move(resume);
    parked_.store(waiters_.size(), std::memory_order_relaxed);
    update_size();
    return waiter;
}

void IntentTable::nudge(WaiterId waiter) {
    auto it = waiters_.find(waiter);
    if (it == waiters_.end() || !it->second.resume) return;
    auto resume = std::move(it->second.resume);
    it->second.resume = nullptr;
    run_later_->post(std::move(resume));
}

bool IntentTable::leave(WaiterId waiter) {
    auto it = waiters_.find(waiter);
    if (it == waiters_.end()) return false;
    const std::string key = std::move(it->second.key);
    leave_queue(waiter, key);
    waiters_.erase(waiter);
    parked_.store(waiters_.size(), std::memory_order_relaxed);
    update_size();
    return true;
}

void IntentTable::leave_queue(WaiterId waiter, const std::string& key) {
    auto it = entries_.find(key);
    if (it == entries_.end()) return;
    Entry& entry = it->second;
    std::erase(entry.queue, waiter);
    if (!entry.holders.empty()) return;
    if (entry.queue.empty())
        entries_.erase(it);
    else
        wake_first(entry);
}

void IntentTable::shut_down() {
    closed_ = true;
    for (auto& [id, waiter] : waiters_) {
        if (!waiter.resume) continue;
        run_later_->post(std::move(waiter.resume));
        waiter.resume = nullptr;
    }
}

}  // namespace angelia::engine
