// When a failed attempt is tried again, and in which order waiting messages go. Pure: randomness
// comes in as an argument.
#pragma once

#include <angelia/base/clock.h>

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace angelia::delivery {

/// After the attempt-th failure (from 1): 1 s, doubling, at most 60 s.
constexpr std::chrono::milliseconds retry_delay(std::int32_t attempt) {
    const int doublings = std::clamp(attempt - 1, 0, 6);
    return std::min(std::chrono::milliseconds(1000LL << doublings),
                    std::chrono::milliseconds(60'000));
}

/// The waits between attempts. The last one holds for all further failures.
class RetrySchedule {
  public:
    /// Lengthens only, so that nobody is tried before its time: a delay of d becomes at most 1.1 d.
    static constexpr double kJitterMax = 0.1;

    /// 30, 60, 300, 900, 1800, then 3600 s: the table of the enterprise outbox.
    static RetrySchedule enterprise();
    static RetrySchedule fixed(milliseconds delay);
    /// `first`, times `factor` (at least 1) each time, at most `most`.
    static RetrySchedule exponential(milliseconds first, double factor, milliseconds most);
    /// At least one delay; none negative (such are taken as 0).
    static RetrySchedule of(std::vector<milliseconds> delays);

    /// The wait after a failure that had `failures_before` others before it (0 = the first one).
    /// `random`: 0 (inclusive) to 1 (exclusive).
    milliseconds delay(std::int32_t failures_before, double random) const;
    /// The same without jitter: nothing is due earlier.
    milliseconds shortest(std::int32_t failures_before) const;

  private:
    explicit RetrySchedule(std::vector<milliseconds> delays) : delays_(std::move(delays)) {}
    std::vector<milliseconds> delays_;
};

/// Lower goes first: priority, then age, then arrival.
struct Rank {
    std::int32_t priority = 0;
    std::int64_t timestamp = 0;
    std::uint64_t arrival = 0;
    auto operator<=>(const Rank&) const = default;
};

}  // namespace angelia::delivery
