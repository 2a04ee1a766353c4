// What a measurement gives and how the table of rows asks for it.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/result.h>

#include <functional>
#include <string>
#include <vector>

namespace angelia::bench {

struct Quantiles {
    double p50_us = 0, p99_us = 0;
};
Quantiles quantiles(std::vector<double> samples_us);
double median(std::vector<double> values);
/// Element-wise median of several repetitions.
Quantiles median(const std::vector<Quantiles>& repetitions);

/// About half compressible text of `bytes` bytes; the same for the same seed.
std::string payload(std::size_t bytes, unsigned seed);

/// Starts each of a row of calls at its moment: `per_second` of them, or at once when that is 0.
/// Floors and rows use the same one.
class Pace {
  public:
    explicit Pace(double per_second) : per_second_(per_second) {}
    void wait_for(std::size_t call) const;

  private:
    double per_second_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// One line of the report.
struct Row {
    std::string what;
    std::string measured;  ///< with unit
    std::string floor;     ///< what it is compared with
    double ratio = 0;      ///< measured / floor, or rate / goal
    std::string goal;      ///< text of the goal
    bool met = true;
    std::vector<std::pair<std::string, double>> numbers;  ///< for the JSON file
};

struct Floors {
    Quantiles hops4_paced;  ///< 100/s
    Quantiles hops4_back_to_back;
    Quantiles hops2_back_to_back;  ///< client -> server -> client
    double sync_us = 0;            ///< p50 of fdatasync after a 2 KB append
};

inline constexpr int kRepetitions = 3;
inline constexpr std::size_t kPayloadBytes = 2048;

}  // namespace angelia::bench
