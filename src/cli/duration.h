// Durations as people type them.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/result.h>

#include <string>
#include <string_view>

namespace angelia::cli {

/// "250ms", "5s", "2m", "1h", or a plain number of seconds ("5", "0.5"). Errors: FailedToParse.
Result<milliseconds> parse_duration(std::string_view text);

/// "1.2 ms", "35 s", "4 min": two or three significant digits.
std::string format_duration(microseconds duration);

}  // namespace angelia::cli
