#include "messaging/claims.h"

#include <algorithm>

namespace angelia::messaging {

using bson::make;

store::ClaimRequest::Candidate claim_candidate(const Context& context, const delivery::Envelope& e,
                                               const ClaimTerms& terms) {
    const Message& m = e.message;
    store::ClaimRequest::Candidate c;
    bson::Builder condition;
    condition.add("_id", m.id);
    if (context.at_least_once) {
        const bson::Date until{terms.now_millis + terms.lease.count()};
        const std::int32_t attempt = m.attempt + 1;
        c.lock = make("_id", m.id, "delete_at", until, "lock_id", context.self, "attempt", attempt);
        // The exact old lease and attempt, not a comparison of times: whoever renews or claims in
        // between makes this fail.
        condition.add("processed_by.0", make("$exists", false));
        m.attempt == 0
            ? condition.add("attempt", make("$in", bson::array(bson::Null{}, std::int32_t{0})))
            : condition.add("attempt", m.attempt);
        m.leased_until ? condition.add("leased_until", *m.leased_until)
                       : condition.add("leased_until", bson::Null{});
        c.update = make("$set",
                        make("leased_by", context.self, "leased_until", until, "attempt", attempt));
    } else {
        const bson::Date until =
            m.timing_out.value_or(false) && m.delete_at
                ? *m.delete_at
                : bson::Date{terms.now_millis + milliseconds(kUnboundLockLife).count()};
        c.lock = make("_id", m.id, "delete_at", until, "lock_id", context.self);
        if (e.marks_are_null) {
            condition.add("processed_by", bson::Null{});
            c.update = make("$set", make("processed_by", bson::array(context.self)));
        } else {
            condition.add("processed_by", make("$size", std::int32_t{0}));
            c.update = make("$addToSet", make("processed_by", context.self));
        }
    }
    c.condition = condition.take();
    return c;
}

void apply_claim(const Context& context, const ClaimTerms& terms, delivery::Envelope& e) {
    Message& m = e.message;
    if (context.at_least_once) {
        m.leased_by = context.self;
        m.leased_until = bson::Date{terms.now_millis + terms.lease.count()};
        ++m.attempt;
    } else {
        m.processed_by.push_back(context.self);
        e.marks_are_null = false;
    }
}

std::optional<bson::Document> take_over_filter(bson::DocumentView lock, std::int64_t now_millis) {
    const auto until = lock["delete_at"].get_date();
    if (until && until->millis > now_millis) return std::nullopt;
    return bson::Document(lock);
}

void Claims::wake() {
    // Nothing to claim: a thread would be woken for nothing. Whoever adds a candidate wakes again.
    const std::size_t count = intake_.candidate_count();
    if (count == 0 || posted_.exchange(true)) return;
    if (count <= kFew && hooks_.on_handler([this] { pump(); })) return;
    context_.post(context_.run.lane, [this] { pump(); });
}

void Claims::pump() {
    posted_ = false;
    {
        MutexLock lock(mutex_);
        again_ = claiming_;
        if (claiming_) return;  // whoever claims goes on
        claiming_ = true;
    }
    bool more = claim_some();
    {
        MutexLock lock(mutex_);
        claiming_ = false;
        more = more || again_;
        again_ = false;
        idle_.notify_all();
    }
    if (more) wake();
}

bool Claims::wait_idle(std::chrono::steady_clock::time_point deadline) {
    MutexLock lock(mutex_);
    while (claiming_) {
        if (!idle_.wait_until(mutex_, deadline)) return !claiming_;
    }
    return true;
}

/// True when there is more to do at once.
bool Claims::claim_some() {
    if (context_.stopping) return false;
    const std::size_t room = leases_.room();
    if (room == 0) return false;
    auto works = intake_.take_candidates(room);
    if (works.empty()) return false;
    send(std::move(works), nullptr);
    hooks_.claimed();
    return intake_.candidate_count() != 0;
}

void Claims::send(std::vector<WorkPtr> works,
                  const std::unordered_map<bson::ObjectId, bson::Document>* take_over) {
    const ClaimTerms terms{context_.server_millis(), context_.options.lease};
    const auto claimed_at = context_.clock.steady_now();
    store::ClaimRequest request;
    request.locks = context_.locks;
    request.documents = context_.main;
    request.return_documents = false;
    request.candidates.reserve(works.size());
    for (const auto& work : works) {
        auto candidate = claim_candidate(context_, work->envelope, terms);
        if (take_over) {
            if (auto old = take_over->find(work->id()); old != take_over->end())
                candidate.take_over = old->second.copy();
        }
        request.candidates.push_back(std::move(candidate));
    }
    auto result = context_.store.claim(std::move(request), Context::majority());
    if (!result || result->entries.size() != works.size()) {
        context_.metrics.add(Counter::claim_errors);
        context_.log(LogLevel::Warning,
                     "messages could not be claimed: " +
                         (result ? std::string("incomplete answer") : result.error().to_string()));
        for (const auto& work : works) intake_.forget(work->id());
        hooks_.poll(false);
        return;
    }
    std::vector<WorkPtr> won, locked;
    for (std::size_t i = 0; i < works.size(); ++i) {
        auto& work = works[i];
        switch (result->entries[i].outcome) {
            case store::ClaimResult::Outcome::Claimed:
                if (work->message().leased_until || take_over)
                    context_.metrics.add(Counter::take_overs);
                apply_claim(context_, terms, work->envelope);
                work->claimed = true;
                won.push_back(std::move(work));
                break;
            case store::ClaimResult::Outcome::Locked:
                locked.push_back(std::move(work));
                break;
            case store::ClaimResult::Outcome::Changed:
                context_.metrics.add(Counter::claims_changed);
                intake_.done(work->id());
                break;
        }
    }
    if (!won.empty()) {
        context_.metrics.add(Counter::claims_won, static_cast<std::int64_t>(won.size()));
        leases_.add(won, claimed_at);
        intake_.add_ready(std::move(won));
    }
    if (locked.empty()) return;
    // Fresh from a stream: the winner has just taken it. From a poll, or with a lease that ran out:
    // perhaps nobody has it any more.
    std::vector<WorkPtr> look;
    for (auto& work : locked) {
        if (!take_over && (work->source == Source::Poll || work->message().leased_until)) {
            look.push_back(std::move(work));
            continue;
        }
        context_.metrics.add(Counter::claims_locked);
        remember_lost(work->id(), terms.now_millis + terms.lease.count());
        intake_.done(work->id());
    }
    if (!look.empty()) try_take_over(std::move(look));
}

void Claims::try_take_over(std::vector<WorkPtr> locked) {
    bson::Builder ids;
    ids.open("_id").open_array("$in");
    for (const auto& work : locked) ids.push(work->id());
    ids.close().close();
    auto locks = context_.store.find({context_.locks, ids.take(), {}, {}, 0, 0}, {});
    if (!locks) {
        context_.metrics.add(Counter::claim_errors);
        for (const auto& work : locked) intake_.forget(work->id());
        hooks_.poll(false);
        return;
    }
    const auto now = context_.server_millis();
    std::unordered_map<bson::ObjectId, bson::Document> over;
    std::unordered_map<bson::ObjectId, std::int64_t> held;
    for (const auto& lock : *locks) {
        const auto id = lock["_id"].get_object_id();
        if (!id) continue;
        if (auto filter = take_over_filter(lock, now)) {
            over.emplace(*id, std::move(*filter));
        } else {
            held.emplace(*id, lock["delete_at"].as_date().millis);
        }
    }
    std::vector<WorkPtr> again;
    for (auto& work : locked) {
        const auto live = held.find(work->id());
        if (live != held.end()) {
            context_.metrics.add(Counter::claims_locked);
            remember_lost(work->id(), live->second);
            intake_.done(work->id());
        } else {
            again.push_back(std::move(work));  // over, or released meanwhile
        }
    }
    if (!again.empty()) send(std::move(again), &over);
}

void Claims::remember_lost(const bson::ObjectId& id, std::int64_t until_millis) {
    MutexLock lock(mutex_);
    if (!lost_.insert_or_assign(id, until_millis).second) return;
    lost_order_.push_back(id);
    if (lost_order_.size() > kLostMax) {
        lost_.erase(lost_order_.front());
        lost_order_.pop_front();
    }
}

bool Claims::was_lost_and_is_over(const bson::ObjectId& id) {
    const auto now = context_.server_millis();
    MutexLock lock(mutex_);
    auto found = lost_.find(id);
    if (found == lost_.end()) return false;
    const bool over = found->second <= now;
    lost_.erase(found);
    return over;
}

}  // namespace angelia::messaging
