// Counters of a node: one table, read by status() and by whoever exports them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace angelia::messaging {

// name, what it counts (docs/messaging.md repeats the table)
#define ANGELIA_MESSAGING_COUNTERS(X)                                                            \
    X(published, "messages stored by publish and request")                                       \
    X(events, "stream events seen")                                                              \
    X(polls, "looks at the collection")                                                          \
    X(poll_found, "messages that polls found")                                                   \
    X(rescued, "messages found by a poll although streams were live")                            \
    X(handled, "messages whose listeners finished normally")                                     \
    X(failed, "messages that a listener rejected or threw on")                                   \
    X(retries, "broadcasts offered again to the same node after a rejection")                    \
    X(answers_sent, "answers stored")                                                            \
    X(answers_received, "answers handed to a waiting caller")                                    \
    X(answers_dropped, "answers of listeners to messages that are answers themselves")           \
    X(claims_won, "exclusive messages claimed")                                                  \
    X(claims_locked, "claims that somebody else had")                                            \
    X(claims_changed, "claims of a message that had changed or gone")                            \
    X(take_overs,                                                                                \
      "claims of a message that had a holder before: crashed, asleep past its lease, or failed") \
    X(leases_renewed, "lease renewals")                                                          \
    X(lease_lost, "messages skipped or stopped because their lease was lost")                    \
    X(stale_outcomes, "outcomes of a stale holder, which changed nothing")                       \
    X(released, "claimed messages given back unhandled")                                         \
    X(marks, "marks written")                                                                    \
    X(deleted, "messages deleted after processing")                                              \
    X(expired, "messages that expired before this node could handle them")                       \
    X(malformed, "documents that could not be read")                                             \
    X(overflow, "messages left to the poll because a local queue was full")                      \
    X(duplicates, "events or poll results suppressed as duplicates")                             \
    X(streams_started, "streams that (re)started")                                               \
    X(stream_gaps, "stream starts that may have missed events")                                  \
    X(stream_errors, "stream errors")                                                            \
    X(stream_rebuilds, "streams rebuilt because topics changed")                                 \
    X(poll_errors, "polls that failed")                                                          \
    X(claim_errors, "claim calls that failed")                                                   \
    X(settle_errors, "settling calls that failed")                                               \
    X(settle_given_up, "outcomes that could not be written")                                     \
    X(renew_errors, "renewal calls that failed")                                                 \
    X(heartbeat_errors, "heartbeats that failed")                                                \
    X(index_errors, "index creations that failed")

enum class Counter : std::uint8_t {
#define ANGELIA_MESSAGING_COUNTER_ENUM(name, text) name,
    ANGELIA_MESSAGING_COUNTERS(ANGELIA_MESSAGING_COUNTER_ENUM)
#undef ANGELIA_MESSAGING_COUNTER_ENUM
        Count
};

/// Threads: safe.
class Metrics {
  public:
    void add(Counter counter, std::int64_t n = 1) {
        values_[static_cast<std::size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
    }
    std::int64_t get(Counter counter) const {
        return values_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
    }
    std::map<std::string, std::int64_t> snapshot() const {
        std::map<std::string, std::int64_t> out;
#define ANGELIA_MESSAGING_COUNTER_ROW(name, text) out.emplace(#name, get(Counter::name));
        ANGELIA_MESSAGING_COUNTERS(ANGELIA_MESSAGING_COUNTER_ROW)
#undef ANGELIA_MESSAGING_COUNTER_ROW
        return out;
    }

  private:
    std::array<std::atomic<std::int64_t>, static_cast<std::size_t>(Counter::Count)> values_{};
};

}  // namespace angelia::messaging
