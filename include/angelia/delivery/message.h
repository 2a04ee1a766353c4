// A message as applications see it: the fields of the shared document format
// (docs/formats/messages.md), decoded.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::delivery {

inline constexpr std::int32_t kPriorityDefault = 1000;  // Morphium's default; lower is more urgent

/// A value; move it, or copy() it. An aggregate: `{.topic = "user.lookup", .value = "4711"}`.
/// What a publisher leaves out gets a default by kind: see `ttl`, `timing_out`,
/// `delete_after_processing`.
struct Message {
    std::string topic{};                        ///< 1 to 255 bytes UTF-8 without control characters
    std::optional<std::string> msg{};           ///< free text
    std::optional<std::string> value{};         ///< free text
    std::optional<bson::Document> map_value{};  ///< keyed payload; keys may contain dots
    std::optional<bson::Array> additional{};    ///< list of any values
    bool exclusive{false};                  ///< true: exactly one of all listening nodes handles it
    std::vector<std::string> recipients{};  ///< sender ids; empty: nobody in particular
    std::int32_t priority{kPriorityDefault};  ///< lower is more urgent
    std::optional<std::chrono::milliseconds>
        ttl{};  ///< life time; default 30 s where the message times out
    std::optional<bool>
        timing_out{};  ///< default: true, for exclusive messages only if `ttl` is given
    std::optional<bool>
        delete_after_processing{};  ///< default: true for exclusive messages, else false
    std::chrono::milliseconds delete_after_processing_time{
        0};                                        ///< how long to keep it before that deletion
    std::optional<bson::ObjectId> in_answer_to{};  ///< id of the request that this message answers

    // Filled when it is sent; a publisher may choose `id` to make a retry harmless.
    bson::ObjectId id{};  ///< all zero: a new one
    std::string sender{};
    std::string sender_host{};
    std::int64_t timestamp{0};                ///< milliseconds since 1970, when it was sent
    std::optional<bson::Date> delete_at{};    ///< end of life, server time
    std::vector<std::string> processed_by{};  ///< sender ids that handled it

    // Delivery state of exclusive messages (at least once); readers of other makes ignore these
    // fields.
    std::string leased_by{};
    std::optional<bson::Date> leased_until{};
    std::int32_t attempt{0};  ///< which delivery this is, from 1; 0 where it is not counted
    std::optional<std::string> last_error{};  ///< why the previous attempt failed

    bool is_answer() const { return in_answer_to.has_value(); }
    Message copy() const;
};

/// 1 to 255 bytes UTF-8 without control characters. Errors: BadValue.
Result<void> check_topic(std::string_view topic);

}  // namespace angelia::delivery
