// One message on its way through a node.
#pragma once

#include "delivery/envelope.h"
#include "delivery/retry.h"

#include <atomic>
#include <memory>

namespace angelia::messaging {

enum class Source : std::uint8_t { Stream, Poll };

struct Work {
    delivery::Envelope envelope;
    delivery::Rank rank;
    Source source = Source::Stream;
    std::size_t bytes = 0;
    bool claimed = false;            ///< exclusive: this node holds lock and, at least once, lease
    std::int32_t failures_here = 0;  ///< of a broadcast, on this node

    const bson::ObjectId& id() const { return envelope.message.id; }
    const Message& message() const { return envelope.message; }
};
using WorkPtr = std::shared_ptr<Work>;  // shared by the queue it waits in, the handler that runs it
                                        // and its settling

struct LowerRank {
    bool operator()(const WorkPtr& a, const WorkPtr& b) const { return a->rank < b->rank; }
};

}  // namespace angelia::messaging
