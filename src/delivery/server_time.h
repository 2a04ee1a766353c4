// Server time, estimated from replies and the local monotonic clock.
#pragma once

#include <angelia/base/clock.h>

#include <cstdint>
#include <optional>

namespace angelia::delivery {

/// A value; not thread-safe. A local wall clock that jumps does not matter once one reply was seen.
class ServerTimeEstimate {
  public:
    /// A reply said `server_millis`; it took `round_trip` and arrived at `arrived`. A sample is
    /// kept unless the one we have is sharper: uncertainty is half the round trip, and grows with
    /// age for the drift of clocks.
    void add(std::int64_t server_millis, microseconds round_trip, SteadyTime arrived) {
        const auto half = round_trip / 2;
        if (at_ && half > uncertainty(arrived)) return;
        at_ = arrived;
        server_us_ = server_millis * 1000 + half.count();
        half_ = half;
    }
    bool known() const { return at_.has_value(); }
    /// Milliseconds since 1970 at `now`; `otherwise` before the first reply.
    std::int64_t at(SteadyTime now, std::int64_t otherwise) const {
        if (!at_) return otherwise;
        return (server_us_ + (now - *at_).count()) / 1000;
    }

  private:
    microseconds uncertainty(SteadyTime now) const {
        constexpr int kDriftPerMillion = 100;  // ordinary crystals stay below
        return half_ + (now - *at_) * kDriftPerMillion / 1'000'000;
    }
    std::optional<SteadyTime> at_;
    std::int64_t server_us_ = 0;
    microseconds half_{0};
};

}  // namespace angelia::delivery
