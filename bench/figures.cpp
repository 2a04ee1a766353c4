#include "figures.h"

#include <algorithm>
#include <random>
#include <thread>

namespace angelia::bench {

Quantiles quantiles(std::vector<double> s) {
    if (s.empty()) return {};
    std::sort(s.begin(), s.end());
    return {s[s.size() / 2], s[s.size() * 99 / 100]};
}

double median(std::vector<double> v) {
    if (v.empty()) return 0;
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

Quantiles median(const std::vector<Quantiles>& repetitions) {
    std::vector<double> p50, p99;
    for (const auto& q : repetitions) {
        p50.push_back(q.p50_us);
        p99.push_back(q.p99_us);
    }
    return {median(p50), median(p99)};
}

void Pace::wait_for(std::size_t call) const {
    if (per_second_ <= 0) return;
    const std::chrono::duration<double> offset(static_cast<double>(call) / per_second_);
    std::this_thread::sleep_until(
        start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(offset));
}

std::string payload(std::size_t bytes, unsigned seed) {
    static constexpr const char* words[] = {"order ",    "customer ", "invoice ", "warehouse ",
                                            "shipment ", "payment ",  "created ", "amount "};
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < bytes) {
        if (random() % 2 == 0) {
            text += words[random() % 8];
        } else {
            for (int i = 0; i < 8; ++i) text += static_cast<char>('a' + random() % 26);
        }
    }
    text.resize(bytes);
    return text;
}

}  // namespace angelia::bench
