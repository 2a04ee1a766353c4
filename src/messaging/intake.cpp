#include "messaging/intake.h"

#include <algorithm>

namespace angelia::messaging {

using delivery::Action;
using delivery::SkipReason;

void Intake::Queue::push(WorkPtr work) {
    bytes += work->bytes;
    items.insert(std::move(work));
}

WorkPtr Intake::Queue::pop() {
    if (items.empty()) return nullptr;
    WorkPtr first = *items.begin();
    items.erase(items.begin());
    bytes -= first->bytes;
    return first;
}

/// What one call of offer() found, acted on after the lock.
struct Intake::Taken {
    std::size_t ready = 0;
    std::size_t candidates = 0;
    std::size_t count = 0;
    std::vector<WorkPtr> answers;
    std::vector<WorkPtr> late_answers;
    std::vector<WorkPtr> expired;
    std::vector<std::string> pulled;
};

std::size_t Intake::offer(const std::vector<bson::DocumentView>& documents, Source source) {
    if (context_.stopping || documents.empty()) return 0;
    std::vector<std::pair<delivery::Envelope, std::size_t>> decoded;
    decoded.reserve(documents.size());
    for (const auto& document : documents) {
        auto envelope = delivery::decode(document);
        if (envelope) {
            decoded.emplace_back(std::move(envelope).value(), document.size_bytes());
        } else {
            remember_malformed(document, envelope.error().message);
        }
    }
    const auto subscriptions = registry_.read();
    const auto now = context_.server_millis();
    const auto steady = context_.clock.steady_now();
    Taken taken;
    {
        MutexLock lock(mutex_);
        for (auto& [envelope, bytes] : decoded)
            sort_in(std::move(envelope), bytes, source, *subscriptions, now, steady, taken);
    }
    for (auto& work : taken.answers) {
        // The caller is woken first; until the mark is written the id stays in progress, so nobody
        // hears the answer twice. (The move leaves what the mark needs: the id and the flags.)
        if (answers_.dispatch(std::move(work->envelope.message))) {
            context_.metrics.add(Counter::answers_received);
        } else {
            context_.metrics.add(Counter::duplicates);
        }
        hooks_.answer_taken(std::move(work));
    }
    for (auto& work : taken.late_answers) hooks_.answer_taken(std::move(work));
    for (const auto& topic : taken.pulled) hooks_.pull_ready(topic);
    if (!taken.expired.empty()) hooks_.expired(std::move(taken.expired));
    if (taken.ready != 0) hooks_.work_ready();
    if (taken.candidates != 0) hooks_.claims_ready();
    return taken.count;
}

void Intake::sort_in(delivery::Envelope envelope, std::size_t bytes, Source source,
                     const Subscriptions& subscriptions, std::int64_t now, SteadyTime steady,
                     Taken& taken) {
    const Message& m = envelope.message;
    delivery::NodeState state;
    state.self = context_.self;
    state.now_millis = now;
    state.in_progress = in_progress_.count(m.id) != 0;
    if (m.in_answer_to) {
        state.waited_for = answers_.waiting_for(*m.in_answer_to);
        state.asked_before = answers_.asked(*m.in_answer_to);
    }
    state.listening = subscriptions.listening(m.topic);
    state.paused = subscriptions.paused.count(m.topic) != 0;
    state.seen = seen_.contains(m.id);
    state.age_by_timestamp = context_.morphium;
    auto decision = delivery::decide(envelope, state);

    const auto work = [&]() ANGELIA_REQUIRES(mutex_) {
        auto w = std::make_shared<Work>();
        w->rank = {m.priority, m.timestamp, arrivals_++};
        w->source = source;
        w->bytes = bytes;
        w->envelope = std::move(envelope);
        return w;
    };
    const bson::ObjectId id = m.id;
    context_.decisions.add(context_.clock.system_now(), id, decision);
    switch (decision.action) {
        case Action::Answer:
            in_progress_.insert(id);
            ++taken.count;
            taken.answers.push_back(work());
            return;
        case Action::Handle:
            if (ready_.full()) break;
            in_progress_.insert(id);
            seen_.insert(id, steady);
            ++taken.count;
            ++taken.ready;
            ready_.push(work());
            return;
        case Action::Claim:
            if (candidates_.full()) break;
            in_progress_.insert(id);
            ++taken.count;
            ++taken.candidates;
            candidates_.push(work());
            return;
        case Action::Skip:
            if (decision.reason == SkipReason::Duplicate ||
                decision.reason == SkipReason::InProgress) {
                context_.metrics.add(Counter::duplicates);
            } else if (decision.reason == SkipReason::Expired) {
                if (expired_.insert(id, steady)) context_.count_expired(m.topic);
                if (source == Source::Poll) taken.expired.push_back(work());
            } else if (decision.reason == SkipReason::LateAnswer) {
                // It was for us and we are through with it: the mark keeps polls from finding it
                // again.
                if (envelope.addressed) {
                    in_progress_.insert(id);
                    taken.late_answers.push_back(work());
                }
            } else if (decision.reason == SkipReason::NoListener && m.exclusive &&
                       subscriptions.pulled.count(m.topic) != 0) {
                taken.pulled.push_back(m.topic);
            }
            return;
    }
    overflow_ = true;
    context_.metrics.add(Counter::overflow);
}

void Intake::remember_malformed(bson::DocumentView document, const std::string& reason) {
    constexpr std::size_t kRememberedMax =
        100;  // they are named in polls, so that they cannot fill the window
    bson::Value id(document.find("_id"));
    MutexLock lock(mutex_);
    const bool known = std::any_of(malformed_.begin(), malformed_.end(), [&](const bson::Value& v) {
        return v.view().identical(id.view());
    });
    if (known) return;
    if (malformed_.size() < kRememberedMax) {
        malformed_.push_back(std::move(id));
    } else {
        malformed_[malformed_next_++ % kRememberedMax] = std::move(id);
    }
    lock.unlock();
    context_.count_malformed(reason);
    context_.log(LogLevel::Warning,
                 "a document in " + context_.main.full() + " is not a message: " + reason);
}

WorkPtr Intake::take_ready() {
    MutexLock lock(mutex_);
    return ready_.pop();
}

std::size_t Intake::ready_count() const {
    MutexLock lock(mutex_);
    return ready_.items.size();
}

void Intake::add_ready(std::vector<WorkPtr> claimed) {
    {
        MutexLock lock(mutex_);
        for (auto& work : claimed) ready_.push(std::move(work));
    }
    hooks_.work_ready();
}

void Intake::offer_again(WorkPtr work) {
    {
        MutexLock lock(mutex_);
        in_progress_.insert(work->id());
        ready_.push(std::move(work));
    }
    hooks_.work_ready();
}

std::vector<WorkPtr> Intake::take_candidates(std::size_t count_max) {
    std::vector<WorkPtr> out;
    MutexLock lock(mutex_);
    while (out.size() < count_max) {
        auto work = candidates_.pop();
        if (!work) break;
        out.push_back(std::move(work));
    }
    return out;
}

std::size_t Intake::candidate_count() const {
    MutexLock lock(mutex_);
    return candidates_.items.size();
}

void Intake::done(const bson::ObjectId& id) {
    MutexLock lock(mutex_);
    in_progress_.erase(id);
}

void Intake::forget(const bson::ObjectId& id) {
    MutexLock lock(mutex_);
    in_progress_.erase(id);
    seen_.erase(id);
}

void Intake::give_up(const bson::ObjectId& id) {
    const auto now = context_.clock.steady_now();
    MutexLock lock(mutex_);
    in_progress_.erase(id);
    seen_.insert(id, now);
}

std::vector<bson::ObjectId> Intake::in_progress_ids(std::size_t count_max) const {
    MutexLock lock(mutex_);
    std::vector<bson::ObjectId> out;
    for (const auto& id : in_progress_) {
        if (out.size() >= count_max) break;
        out.push_back(id);
    }
    return out;
}

std::size_t Intake::in_progress_count() const {
    MutexLock lock(mutex_);
    return in_progress_.size();
}

std::vector<bson::Value> Intake::malformed_ids() const {
    MutexLock lock(mutex_);
    return malformed_;
}

bool Intake::take_overflow() {
    MutexLock lock(mutex_);
    if (!overflow_) return false;
    // Only when there is room again; half full leaves some for the stream.
    if (ready_.items.size() > Context::kWaitingMax / 2 ||
        candidates_.items.size() > Context::kWaitingMax / 2)
        return false;
    if (ready_.bytes > Context::kWaitingBytesMax / 2 ||
        candidates_.bytes > Context::kWaitingBytesMax / 2)
        return false;
    overflow_ = false;
    return true;
}

std::vector<WorkPtr> Intake::drain() {
    std::vector<WorkPtr> out;
    MutexLock lock(mutex_);
    while (auto work = ready_.pop()) out.push_back(std::move(work));
    while (auto work = candidates_.pop()) {
        in_progress_.erase(work->id());
    }
    return out;
}

void Intake::trim() {
    const auto now = context_.clock.steady_now();
    MutexLock lock(mutex_);
    seen_.trim(now);
    expired_.trim(now);
}

}  // namespace angelia::messaging
