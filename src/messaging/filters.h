// What this node asks the server for: poll filters and stream pipelines, as data. Pure.
#pragma once

#include "messaging/context.h"
#include "messaging/registry.h"

namespace angelia::messaging {

struct PollTerms {
    std::vector<std::string> topics;             ///< listened and not paused
    std::vector<bson::ObjectId> waited_answers;  ///< requests that somebody waits for
    std::vector<bson::ObjectId> in_progress;
    std::vector<bson::Value> malformed;
    std::int64_t now_millis = 0;  ///< server time
};

/// Exclusive messages that nobody has: unmarked, no live lease, not expired.
bson::Document exclusive_poll_filter(const Context& context, const PollTerms& terms);
/// Everything else that this node has not marked yet.
bson::Document broadcast_poll_filter(const Context& context, const PollTerms& terms);
bson::Document poll_sort();

/// Stages behind $changeStream of the main collection, as an array's document.
bson::Document main_stream_stages(const Context& context, const std::vector<std::string>& topics);
bson::Document lock_stream_stages();

}  // namespace angelia::messaging
