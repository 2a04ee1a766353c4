// Progress of long work on stderr: a bar on a terminal, a line every few seconds elsewhere.
#pragma once

#include <angelia/base/clock.h>

#include <cstdint>
#include <string>

namespace angelia::cli {

/// Not thread-safe. `total` 0: unknown, then only count and rate are shown.
class Progress {
  public:
    Progress(std::string what, std::uint64_t total, const Clock& clock = real_clock());
    ~Progress();  ///< ends the line
    void update(std::uint64_t done, std::uint64_t bytes_done = 0, std::uint64_t bytes_total = 0);

  private:
    std::string what_;
    std::uint64_t total_;
    const Clock& clock_;
    bool terminal_;
    SteadyTime start_;
    SteadyTime next_;
    bool shown_ = false;
};

/// "[#####.....]  1234 of 5000  812/s  5 s left"; without a total "1234  812/s".
std::string progress_line(std::uint64_t done, std::uint64_t total, double fraction,
                          microseconds elapsed);

}  // namespace angelia::cli
