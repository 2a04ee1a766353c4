#include "delivery/decide.h"

namespace angelia::delivery {

std::string_view skip_reason_name(SkipReason reason) {
    switch (reason) {
        case SkipReason::None:
            return "none";
        case SkipReason::InProgress:
            return "in progress";
        case SkipReason::OwnMessage:
            return "own message";
        case SkipReason::NotAddressed:
            return "not addressed";
        case SkipReason::Done:
            return "done";
        case SkipReason::MarkedByUs:
            return "marked by us";
        case SkipReason::LateAnswer:
            return "late answer";
        case SkipReason::NoListener:
            return "no listener";
        case SkipReason::Paused:
            return "paused";
        case SkipReason::Duplicate:
            return "duplicate";
        case SkipReason::Expired:
            return "expired";
        case SkipReason::Leased:
            return "leased";
    }
    return "unknown";
}

bool expired(const Message& m, std::int64_t now_millis, bool age_by_timestamp) {
    if (!m.timing_out.value_or(false)) return false;
    if (age_by_timestamp && m.ttl) return m.timestamp + m.ttl->count() < now_millis;
    return m.delete_at && m.delete_at->millis <= now_millis;
}

Decision decide(const Envelope& e, const NodeState& s) {
    const Message& m = e.message;
    const auto skip = [](SkipReason reason) { return Decision{Action::Skip, reason}; };
    if (s.in_progress) return skip(SkipReason::InProgress);
    if (m.sender == s.self) return skip(SkipReason::OwnMessage);
    if (m.exclusive && e.marked()) return skip(SkipReason::Done);
    if (e.marked_by(s.self)) return skip(SkipReason::MarkedByUs);
    if (e.addressed && !e.addressed_to(s.self)) return skip(SkipReason::NotAddressed);
    if (m.in_answer_to && s.waited_for) return {Action::Answer, SkipReason::None};
    if (m.in_answer_to && s.asked_before) return skip(SkipReason::LateAnswer);
    if (!s.listening) return skip(SkipReason::NoListener);
    if (expired(m, s.now_millis, s.age_by_timestamp)) return skip(SkipReason::Expired);
    if (s.paused) return skip(SkipReason::Paused);
    if (s.seen) return skip(SkipReason::Duplicate);
    if (m.exclusive) {
        if (m.leased_until && m.leased_until->millis > s.now_millis)
            return skip(SkipReason::Leased);
        return {Action::Claim, SkipReason::None};
    }
    return {Action::Handle, SkipReason::None};
}

}  // namespace angelia::delivery
