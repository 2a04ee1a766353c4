#include "delivery/retry.h"

#include <angelia/base/check.h>

#include <cmath>

namespace angelia::delivery {

RetrySchedule RetrySchedule::enterprise() {
    using std::chrono::seconds;
    return of({seconds(30), seconds(60), seconds(300), seconds(900), seconds(1800), seconds(3600)});
}

RetrySchedule RetrySchedule::fixed(milliseconds delay) { return of({delay}); }

RetrySchedule RetrySchedule::exponential(milliseconds first, double factor, milliseconds most) {
    std::vector<milliseconds> delays;
    double next = static_cast<double>(std::max(first, milliseconds(1)).count());
    const double bound = static_cast<double>(most.count());
    // A factor of 1 or less never reaches the bound: it is a fixed delay then.
    while (next < bound && factor > 1) {
        delays.emplace_back(static_cast<milliseconds::rep>(std::llround(next)));
        next *= factor;
    }
    delays.push_back(factor > 1 ? most : std::min(first, most));
    return of(std::move(delays));
}

RetrySchedule RetrySchedule::of(std::vector<milliseconds> delays) {
    ANGELIA_CHECK(!delays.empty());
    for (auto& d : delays) d = std::max(d, milliseconds(0));
    return RetrySchedule(std::move(delays));
}

milliseconds RetrySchedule::shortest(std::int32_t failures_before) const {
    const auto last = static_cast<std::int32_t>(delays_.size()) - 1;
    return delays_[static_cast<std::size_t>(std::clamp(failures_before, 0, last))];
}

milliseconds RetrySchedule::delay(std::int32_t failures_before, double random) const {
    const auto base = shortest(failures_before);
    const double extra =
        static_cast<double>(base.count()) * kJitterMax * std::clamp(random, 0.0, 1.0);
    return base + milliseconds(static_cast<milliseconds::rep>(extra));
}

}  // namespace angelia::delivery
