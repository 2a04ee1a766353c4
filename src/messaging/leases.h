// The exclusive messages this node holds: how many more it may claim, how long each claim lasts,
// renewal.
#pragma once

#include "messaging/context.h"
#include "messaging/work.h"

#include <unordered_map>

namespace angelia::messaging {

/// Threads: safe.
class Leases {
  public:
    explicit Leases(Context& context) : context_(context) {}

    /// How many more messages may be claimed: free handler threads, and some in advance while
    /// handlers are quick. What waits here cannot be taken by a node that is idle, hence not more
    /// than is handled within a moment.
    std::size_t room() const;

    /// Claimed at `claimed_at` (before the claim was sent), lease until that plus Options::lease.
    void add(const std::vector<WorkPtr>& claimed, SteadyTime claimed_at);
    /// A handler is about to run: false when the lease was lost or has run out meanwhile.
    bool begin(const bson::ObjectId& id);
    /// The handler returned after `took`.
    void finished(const bson::ObjectId& id, microseconds took);
    /// Settled, or given up.
    void drop(const bson::ObjectId& id);

    /// Extends everything held; runs on the lane: a long poll must not delay it. Counts and marks
    /// what was lost.
    void renew();

    std::size_t held_count() const;
    /// Handlers' mean run time, for tests and status.
    std::optional<microseconds> mean_run_time() const;

  private:
    struct Held {
        std::int32_t attempt = 0;
        SteadyTime ends;
        bool lost = false;
        bool finished = false;
    };
    void mark_lost(const std::vector<std::pair<bson::ObjectId, std::int32_t>>& lost);

    Context& context_;
    mutable Mutex mutex_;
    std::unordered_map<bson::ObjectId, Held> held_ ANGELIA_GUARDED_BY(mutex_);
    std::size_t finished_ ANGELIA_GUARDED_BY(mutex_) =
        0;  // held and only waiting for their settling
    double mean_us_ ANGELIA_GUARDED_BY(mutex_) = -1;
};

}  // namespace angelia::messaging
