// When a failed attempt is tried again, and in which order waiting messages go.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>

namespace angelia::delivery {

/// After the attempt-th failure (from 1): 1 s, doubling, at most 60 s.
constexpr std::chrono::milliseconds retry_delay(std::int32_t attempt) {
    const int doublings = std::clamp(attempt - 1, 0, 6);
    return std::min(std::chrono::milliseconds(1000LL << doublings),
                    std::chrono::milliseconds(60'000));
}

/// Lower goes first: priority, then age, then arrival.
struct Rank {
    std::int32_t priority = 0;
    std::int64_t timestamp = 0;
    std::uint64_t arrival = 0;
    auto operator<=>(const Rank&) const = default;
};

}  // namespace angelia::delivery
