// What a node does with a message it sees: one pure function for stream events and polls alike.
#pragma once

#include "delivery/envelope.h"

#include <string_view>

namespace angelia::delivery {

enum class Action : std::uint8_t {
    Handle,  ///< run the listeners, then mark
    Claim,   ///< exclusive: try to become the one
    Answer,  ///< hand it to the caller that waits
    Skip,
};

enum class SkipReason : std::uint8_t {
    None,
    InProgress,  ///< this node is at it
    OwnMessage,
    NotAddressed,  ///< for others
    Done,          ///< exclusive and marked
    MarkedByUs,
    LateAnswer,  ///< to a request of ours that nobody waits for any more
    NoListener,  ///< stays as it is: a listener may come
    Paused,
    Duplicate,  ///< handled or given up here before
    Expired,
    Leased,  ///< somebody else is at it, or it waits for its next attempt
};

std::string_view skip_reason_name(SkipReason reason);

/// What the node knows when it sees the message.
struct NodeState {
    std::string_view self;
    std::int64_t now_millis = 0;  ///< server time, estimated
    bool in_progress = false;
    bool waited_for = false;    ///< a caller waits for an answer to message.in_answer_to
    bool asked_before = false;  ///< message.in_answer_to is a request of ours
    bool listening = false;     ///< a listener on the topic
    bool paused = false;
    bool seen =
        false;  ///< in the memory of duplicates: broadcasts handled here, anything given up here
    bool age_by_timestamp =
        false;  ///< Morphium's rule: timestamp + ttl against now, instead of delete_at
};

struct Decision {
    Action action = Action::Skip;
    SkipReason reason = SkipReason::None;
    bool operator==(const Decision&) const = default;
};

Decision decide(const Envelope& envelope, const NodeState& state);

/// Timing out and past its end. A document without an end of life never expires by itself.
bool expired(const Message& message, std::int64_t now_millis, bool age_by_timestamp);

}  // namespace angelia::delivery
