#include "cli/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace angelia::cli {

Result<milliseconds> parse_duration(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    double factor = 0;
    if (unit == "ms") factor = 1;
    if (unit == "s" || unit.empty()) factor = 1000;
    if (unit == "m" || unit == "min") factor = 60'000;
    if (unit == "h") factor = 3'600'000;
    if (unit == "d") factor = 86'400'000;
    const double millis = number * factor;
    if (error != std::errc() || factor == 0 || !(millis >= 0 && millis <= 1e13)) {
        return {
            ErrorCode::FailedToParse,
            fmt::format("'{}' is no duration; write 250ms, 5s, 2m, 1h, 7d or a number of seconds",
                        text)};
    }
    return milliseconds(std::llround(millis));
}

std::string format_duration(microseconds duration) {
    const double us = static_cast<double>(duration.count());
    if (us < 1000) return fmt::format("{:.0f} us", us);
    if (us < 1e4) return fmt::format("{:.2f} ms", us / 1e3);
    if (us < 1e5) return fmt::format("{:.1f} ms", us / 1e3);
    if (us < 1e6) return fmt::format("{:.0f} ms", us / 1e3);
    if (us < 6e7) return fmt::format("{:.1f} s", us / 1e6);
    if (us < 3.6e9) return fmt::format("{:.1f} min", us / 6e7);
    return fmt::format("{:.1f} h", us / 3.6e9);
}

}  // namespace angelia::cli
