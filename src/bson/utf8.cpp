// UTF-8 check: eight ASCII bytes at a time, the rest by the table of well-formed sequences (Unicode
// standard, table 3-7).
#include <angelia/bson/validate.h>

#include <cstring>

namespace angelia::bson {
namespace {

bool continues(std::uint8_t byte) { return (byte & 0xC0) == 0x80; }
bool between(std::uint8_t byte, std::uint8_t low, std::uint8_t high) {
    return byte >= low && byte <= high;
}

/// Length of the well-formed sequence at `at` whose first byte is not ASCII; 0 when it is
/// malformed.
std::size_t sequence_length(const std::uint8_t* at, std::size_t left) {
    const std::uint8_t lead = at[0];
    if (between(lead, 0xC2, 0xDF)) return left >= 2 && continues(at[1]) ? 2 : 0;
    if (between(lead, 0xE0, 0xEF)) {
        if (left < 3 || !continues(at[1]) || !continues(at[2])) return 0;
        const bool overlong = lead == 0xE0 && at[1] < 0xA0;
        const bool surrogate = lead == 0xED && at[1] > 0x9F;
        return overlong || surrogate ? 0 : 3;
    }
    if (between(lead, 0xF0, 0xF4)) {
        if (left < 4 || !continues(at[1]) || !continues(at[2]) || !continues(at[3])) return 0;
        const bool overlong = lead == 0xF0 && at[1] < 0x90;
        const bool too_high = lead == 0xF4 && at[1] > 0x8F;
        return overlong || too_high ? 0 : 4;
    }
    return 0;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
    const auto* at = reinterpret_cast<const std::uint8_t*>(text.data());
    std::size_t left = text.size();
    while (left > 0) {
        if (left >= 8) {
            std::uint64_t word;
            std::memcpy(&word, at, sizeof word);
            if ((word & 0x8080808080808080) == 0) {
                at += 8;
                left -= 8;
                continue;
            }
        }
        const std::size_t step = *at < 0x80 ? 1 : sequence_length(at, left);
        if (step == 0) return false;
        at += step;
        left -= step;
    }
    return true;
}

}  // namespace angelia::bson
