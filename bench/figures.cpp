#include "figures.h"

#include <algorithm>
#include <random>

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
