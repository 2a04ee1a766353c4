#include "messaging/pull.h"

#include "messaging/filters.h"
#include "messaging/settle_writes.h"

#include <algorithm>

namespace angelia::messaging {

Result<std::vector<Message>> Pull::receive(const std::string& topic, std::size_t count,
                                           milliseconds wait,
                                           const std::function<bool()>& covered) {
    ANGELIA_TRY(delivery::check_topic(topic));
    if (!context_.at_least_once)
        return {ErrorCode::IllegalOperation,
                "receive() needs leases; this node delivers at most once"};
    if (count < 1 || count > 10'000)
        return {ErrorCode::BadValue,
                "receive() of " + std::to_string(count) + " messages; allowed are 1 to 10000"};
    const auto deadline = std::chrono::steady_clock::now() + wait;
    if (wait > milliseconds(0)) registry_.add_pulled(topic);
    for (;;) {
        std::uint64_t seen;
        {
            MutexLock lock(mutex_);
            if (closed_) return {ErrorCode::ShutdownInProgress, "this node has stopped"};
            seen = wakes_;
        }
        ANGELIA_TRY_ASSIGN(auto messages, take(topic, count));
        const auto now = std::chrono::steady_clock::now();
        if (!messages.empty() || now >= deadline) return messages;
        const auto pause = covered() ? context_.fallback_poll : context_.options.poll_pause;
        const auto until = std::min<std::chrono::steady_clock::time_point>(deadline, now + pause);
        MutexLock lock(mutex_);
        bool in_time = true;
        while (!closed_ && wakes_ == seen && in_time) in_time = woken_.wait_until(mutex_, until);
    }
}

Result<std::vector<Message>> Pull::take(const std::string& topic, std::size_t count) {
    PollTerms terms;
    terms.topics = {topic};
    terms.now_millis = context_.server_millis();
    const store::FindRequest request{context_.main,
                                     exclusive_poll_filter(context_, terms),
                                     {},
                                     poll_sort(),
                                     0,
                                     static_cast<std::int64_t>(count)};
    ANGELIA_TRY_ASSIGN(const auto found, context_.store.find(request));
    std::vector<delivery::Envelope> envelopes;
    for (const auto& document : found) {
        auto envelope = delivery::decode(document);
        if (envelope) {
            envelopes.push_back(std::move(envelope).value());
        } else {
            context_.count_malformed(envelope.error().message);
        }
    }
    std::vector<Message> out;
    // Twice: a lock that stands although nobody has the message any more is taken over by its exact
    // values.
    std::vector<bson::Document> locks;
    for (int round = 0; round < 2 && !envelopes.empty(); ++round) {
        const ClaimTerms claim{context_.server_millis(), context_.options.lease};
        store::ClaimRequest wanted;
        wanted.locks = context_.locks;
        wanted.documents = context_.main;
        wanted.return_documents = false;
        for (const auto& e : envelopes) {
            wanted.candidates.push_back(claim_candidate(context_, e, claim));
            const auto lock = std::find_if(
                locks.begin(), locks.end(),
                [&](const bson::Document& l) { return l["_id"].get_object_id() == e.message.id; });
            if (lock != locks.end())
                wanted.candidates.back().take_over = take_over_filter(*lock, claim.now_millis);
        }
        ANGELIA_TRY_ASSIGN(const auto result,
                           context_.store.claim(std::move(wanted), Context::majority()));
        std::vector<delivery::Envelope> locked;
        bson::Builder ids;
        ids.open("_id").open_array("$in");
        for (std::size_t i = 0; i < envelopes.size() && i < result.entries.size(); ++i) {
            if (result.entries[i].outcome == store::ClaimResult::Outcome::Claimed) {
                context_.metrics.add(Counter::claims_won);
                if (round > 0 || envelopes[i].message.leased_until)
                    context_.metrics.add(Counter::take_overs);
                apply_claim(context_, claim, envelopes[i]);
                out.push_back(std::move(envelopes[i].message));
            } else if (result.entries[i].outcome == store::ClaimResult::Outcome::Locked) {
                context_.metrics.add(Counter::claims_locked);
                ids.push(envelopes[i].message.id);
                locked.push_back(std::move(envelopes[i]));
            } else {
                context_.metrics.add(Counter::claims_changed);
            }
        }
        ids.close().close();
        envelopes.clear();
        if (round > 0 || locked.empty()) break;
        ANGELIA_TRY_ASSIGN(locks, context_.store.find({context_.locks, ids.take(), {}, {}, 0, 0}));
        for (auto& e : locked) {
            const auto lock = std::find_if(
                locks.begin(), locks.end(),
                [&](const bson::Document& l) { return l["_id"].get_object_id() == e.message.id; });
            if (lock == locks.end() || take_over_filter(*lock, context_.server_millis()))
                envelopes.push_back(std::move(e));
        }
    }
    return out;
}

Result<void> Pull::check(const Message& m) const {
    if (m.leased_by != context_.self || m.attempt <= 0) {
        return {ErrorCode::BadValue, "message " + m.id.to_hex() + " was not received by this node"};
    }
    return {};
}

namespace {

Settlement pulled_settlement(const Message& m, Outcome outcome) {
    auto work = std::make_shared<Work>();
    work->envelope.message = m.copy();
    work->envelope.marks_are_null = false;
    work->claimed = true;
    return {.work = std::move(work), .outcome = outcome};
}

Error stale_epoch(const Message& m) {
    return {ErrorCode::StaleEpoch,
            "the lease on message " + m.id.to_hex() + " (attempt " + std::to_string(m.attempt) +
                ") was lost: the message is gone or somebody else has it; nothing was changed"};
}

}  // namespace

Result<void> Pull::acknowledge(const Message& m) {
    ANGELIA_TRY(check(m));
    const auto now = context_.server_millis();
    const auto settlement = pulled_settlement(m, Outcome::Done);
    auto writes = message_writes(context_, settlement, now);
    std::int64_t changed = 0;
    if (writes.remove) {
        std::vector<store::DeleteOp> ops;
        ops.push_back(std::move(*writes.remove));
        ANGELIA_TRY_ASSIGN(const auto result, context_.store.remove(context_.main, std::move(ops),
                                                                    true, Context::majority()));
        changed = result.deleted;
    } else {
        // The array may be null in documents of others; the claim kept everyone else away, so
        // replacing null is safe.
        store::UpdateOp repair;
        repair.filter = bson::make("_id", m.id, "leased_by", context_.self, "attempt", m.attempt,
                                   "processed_by", bson::Null{});
        repair.update = bson::make("$set", bson::make("processed_by", bson::Array()));
        std::vector<store::UpdateOp> ops;
        ops.push_back(std::move(repair));
        ops.push_back(std::move(writes.updates.at(0)));
        ANGELIA_TRY_ASSIGN(const auto result, context_.store.update(context_.main, std::move(ops),
                                                                    true, Context::majority()));
        changed = result.matched;
    }
    if (changed == 0) {
        context_.metrics.add(Counter::stale_outcomes);
        return stale_epoch(m);
    }
    context_.metrics.add(Counter::handled);
    auto lock = lock_writes(context_, settlement, now);
    std::vector<store::DeleteOp> ops;
    ops.push_back(std::move(*lock.remove));
    ANGELIA_TRY(context_.store.remove(context_.locks, std::move(ops), true, Context::majority()));
    return {};
}

Result<void> Pull::settle(const Message& m, store::UpdateOp update) {
    std::vector<store::UpdateOp> ops;
    ops.push_back(std::move(update));
    ANGELIA_TRY_ASSIGN(const auto result, context_.store.update(context_.main, std::move(ops), true,
                                                                Context::majority()));
    if (result.matched != 0) return {};
    context_.metrics.add(Counter::stale_outcomes);
    return stale_epoch(m);
}

Result<void> Pull::extend(const Message& m, milliseconds lease) {
    ANGELIA_TRY(check(m));
    if (lease < milliseconds(200) || lease > std::chrono::hours(12)) {
        return {ErrorCode::BadValue,
                "extend() by " + std::to_string(lease.count()) + " ms; allowed are 200 ms to 12 h"};
    }
    const bson::Date until{context_.server_millis() + lease.count()};
    store::UpdateOp lock, message;
    lock.filter = bson::make("_id", m.id, "lock_id", context_.self, "attempt", m.attempt);
    lock.update = bson::make("$set", bson::make("delete_at", until));
    message.filter = bson::make("_id", m.id, "leased_by", context_.self, "attempt", m.attempt);
    message.update = bson::make("$set", bson::make("leased_until", until));
    std::vector<store::UpdateOp> ops;
    ops.push_back(std::move(lock));
    ANGELIA_TRY(context_.store.update(context_.locks, std::move(ops), true, Context::majority()));
    return settle(m, std::move(message));
}

Result<void> Pull::reject(const Message& m, const std::string& reason) {
    ANGELIA_TRY(check(m));
    auto settlement = pulled_settlement(m, Outcome::Failed);
    settlement.reason = reason;
    const auto now = context_.server_millis();
    auto writes = message_writes(context_, settlement, now);
    ANGELIA_TRY(settle(m, std::move(writes.updates.at(0))));
    context_.metrics.add(Counter::failed);
    auto lock = lock_writes(context_, settlement, now);
    std::vector<store::UpdateOp> ops;
    ops.push_back(std::move(*lock.update));
    ANGELIA_TRY(context_.store.update(context_.locks, std::move(ops), true, Context::majority()));
    return {};
}

void Pull::wake(const std::string&) { wake_all(); }

void Pull::wake_all() {
    MutexLock lock(mutex_);
    ++wakes_;
    woken_.notify_all();
}

void Pull::shut_down() {
    MutexLock lock(mutex_);
    closed_ = true;
    woken_.notify_all();
}

}  // namespace angelia::messaging
