// Which seeds a random test plays: from 1 on, more with ANGELIA_LONG, and only that of
// ANGELIA_TEST_SEED when it is set.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace angelia::test {

inline std::vector<std::uint64_t> seeds(int ordinary, int long_run) {
    if (const char* one = std::getenv("ANGELIA_TEST_SEED"); one != nullptr)
        return {std::strtoull(one, nullptr, 10)};
    std::vector<std::uint64_t> out;
    const int count = std::getenv("ANGELIA_LONG") != nullptr ? long_run : ordinary;
    for (int i = 1; i <= count; ++i) out.push_back(static_cast<std::uint64_t>(i));
    return out;
}

}  // namespace angelia::test
