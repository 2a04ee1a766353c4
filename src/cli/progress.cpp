#include "cli/progress.h"

#include "cli/common.h"
#include "cli/duration.h"
#include "cli/output.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::cli {

Progress::Progress(std::string what, std::uint64_t total, const Clock& clock)
    : what_(std::move(what)),
      total_(total),
      clock_(clock),
      terminal_(stderr_is_terminal()),
      start_(clock.steady_now()),
      next_(start_ + milliseconds(500)) {}

Progress::~Progress() {
    if (shown_ && terminal_) say("\r\033[K");
}

void Progress::update(std::uint64_t done, std::uint64_t bytes_done, std::uint64_t bytes_total) {
    const auto now = clock_.steady_now();
    if (now < next_) return;
    next_ = now + (terminal_ ? milliseconds(200) : milliseconds(5000));
    double fraction = -1;
    if (total_ > 0) fraction = static_cast<double>(done) / static_cast<double>(total_);
    if (total_ == 0 && bytes_total > 0)
        fraction = static_cast<double>(bytes_done) / static_cast<double>(bytes_total);
    const std::string line = what_ + "  " + progress_line(done, total_, fraction, now - start_);
    say("{}{}{}", terminal_ ? "\r" : "", line, terminal_ ? "\033[K" : "\n");
    shown_ = true;
}

std::string progress_line(std::uint64_t done, std::uint64_t total, double fraction,
                          microseconds elapsed) {
    const double seconds = std::max(1e-6, static_cast<double>(elapsed.count()) / 1e6);
    const std::string rate = fmt::format("{:.0f}/s", static_cast<double>(done) / seconds);
    if (fraction < 0) return fmt::format("{}  {}", done, rate);
    fraction = std::clamp(fraction, 0.0, 1.0);
    const auto filled = static_cast<std::size_t>(fraction * 20);
    std::string line =
        fmt::format("[{}{}]  {}", std::string(filled, '#'), std::string(20 - filled, '.'), done);
    if (total > 0) line += fmt::format(" of {}", total);
    line += "  " + rate;
    if (fraction > 0) {
        const double left = static_cast<double>(elapsed.count()) * (1 - fraction) / fraction;
        line += fmt::format("  {} left",
                            format_duration(microseconds(static_cast<std::int64_t>(left))));
    }
    return line;
}

}  // namespace angelia::cli
