// Message documents, both ways: one tolerant decoder for every path, one encoder with the exact
// types that other readers demand. The format is docs/formats/messages.md.
#pragma once

#include <angelia/base/result.h>
#include <angelia/delivery/message.h>

#include <string_view>

namespace angelia::delivery {

inline constexpr std::string_view kClassName =
    "de.caluga.morphium.messaging.Msg";  // what Java readers look for
inline constexpr std::size_t kTopicBytesMax = 255;
inline constexpr std::size_t kSenderBytesMax = 255;

/// A decoded message and what the document said beyond it.
struct Envelope {
    Message message;
    bool addressed = false;  ///< `recipients` is there and not null, perhaps empty
    bool marks_are_null =
        false;  ///< `processed_by` is null or missing: marks must create the array

    bool marked() const { return !message.processed_by.empty(); }
    bool marked_by(std::string_view id) const;
    bool addressed_to(std::string_view id) const;
};

/// Missing fields read as their documented defaults, numbers as any width. Indispensable: `_id` (an
/// ObjectId), `topic` or `name`, `sender`. Errors: BadValue, whose message is one of a fixed set of
/// short reasons (they are counted by it).
Result<Envelope> decode(bson::DocumentView document);

/// The document as it is stored; explicit nulls, int32 and int64 as Java needs them. `message` must
/// have gone through complete().
bson::Document encode(const Message& message);

struct SendDefaults {
    std::string_view sender{};
    std::string_view sender_host{};
    std::int64_t now_millis = 0;  ///< server time
    std::chrono::milliseconds default_ttl{30'000};
    bool exclusive_times_out = false;  ///< Morphium's rule
    bool exclusive_is_deleted = true;  ///< ours
};

/// Applies the defaults of sending, once and in order (absolute deadlines last), and checks what
/// the publisher gave. Errors: BadValue (what, what is allowed).
Result<void> complete(Message& message, const SendDefaults& defaults);

/// What check_topic() says of topics, for sender ids and recipients.
Result<void> check_sender(std::string_view id);

/// Answer to `request`: in_answer_to, recipient, topic, priority ten more urgent; the rest is the
/// answerer's.
Message answer_to(const Message& request);

}  // namespace angelia::delivery
