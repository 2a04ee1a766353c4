// The publishing side of the demo: real messages at a steady rate, two broadcasts, two pieces of
// work and one request in five.
#pragma once

#include "cli/demo_input.h"
#include "cli/demo_records.h"

#include <angelia/base/clock.h>
#include <angelia/messaging/messaging.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace angelia::cli::demo {

struct Latencies {
    microseconds p50{0}, p99{0};
    std::size_t count = 0;
};

/// Threads: tick() and publish counters from one thread; answers come on callback threads.
class Publisher {
  public:
    Publisher(store::Store store, Messaging& node, const Input& input);
    /// Publishes the next `count` messages and records what was acknowledged.
    Result<void> publish(std::size_t count);
    /// Writes down the answers that came since the last call.
    Result<void> record_answers();

    std::uint64_t published() const { return published_; }
    std::uint64_t answered() const { return answered_.load(); }
    Latencies latencies() const;

  private:
    Result<void> publish_request(Message message);
    Message next(Kind kind);

    store::Store store_;
    Messaging& node_;
    const Input& input_;
    std::size_t at_ = 0;
    std::uint64_t published_ = 0;
    std::atomic<std::uint64_t> answered_{0};
    mutable std::mutex mutex_;
    std::vector<bson::ObjectId> new_answers_;  // guarded by mutex_
    std::vector<std::int64_t>
        latencies_us_;  // guarded by mutex_; bounded by the number of requests
};

}  // namespace angelia::cli::demo
