// decimal128: string form written here (small, and strict as the BSON specification asks),
// arithmetic and conversion from and to double by Intel's decimal floating-point library.
#include "bson/decimal.h"

#include <bid_conf.h>
#include <bid_functions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace angelia::bson {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr int kDigitsMax = 34;
constexpr int kExponentMax = 6111;
constexpr int kExponentMin = -6176;
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kInfinityHigh = 0x7800000000000000;
constexpr std::uint64_t kNanHigh = 0x7C00000000000000;
constexpr Decimal128 kNan{0, kNanHigh};

enum class DecimalKind { Finite, Infinity, Nan };

struct DecimalParts {
    DecimalKind kind = DecimalKind::Finite;
    bool negative = false;
    int exponent = 0;
    Uint128 significand = 0;
};

Uint128 power_of_ten(int n) {
    Uint128 p = 1;
    for (int i = 0; i < n; ++i) p *= 10;
    return p;
}

DecimalParts unpack(Decimal128 d) {
    DecimalParts parts;
    parts.negative = (d.high & kSignBit) != 0;
    if ((d.high & kNanHigh) == kNanHigh) {
        parts.kind = DecimalKind::Nan;
    } else if ((d.high & kInfinityHigh) == kInfinityHigh) {
        parts.kind = DecimalKind::Infinity;
    } else if ((d.high & 0x6000000000000000) == 0x6000000000000000) {
        // The second form's significand always exceeds 34 digits: such encodings are non-canonical
        // zeros.
        parts.exponent = static_cast<int>((d.high >> 47) & 0x3FFF) + kExponentMin;
    } else {
        parts.exponent = static_cast<int>((d.high >> 49) & 0x3FFF) + kExponentMin;
        parts.significand = (Uint128{d.high & 0x0001FFFFFFFFFFFF} << 64) | d.low;
        if (parts.significand >= power_of_ten(kDigitsMax)) parts.significand = 0;
    }
    return parts;
}

Decimal128 pack(bool negative, int exponent, Uint128 significand) {
    const auto biased = static_cast<std::uint64_t>(exponent - kExponentMin);
    return {
        static_cast<std::uint64_t>(significand),
        (negative ? kSignBit : 0) | (biased << 49) | static_cast<std::uint64_t>(significand >> 64)};
}

BID_UINT128 to_bid(Decimal128 d) {
    BID_UINT128 b;
    b.w[0] = d.low;
    b.w[1] = d.high;
    return b;
}

Decimal128 from_bid(const BID_UINT128& b) { return {b.w[0], b.w[1]}; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
    return text.size() == lower.size() &&
           std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
               return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
           });
}

/// Digits as text without leading zeros ("0" for none) and the exponent of the last one.
struct Scanned {
    std::string digits;
    std::int64_t exponent = 0;
};

std::optional<Scanned> scan_number(std::string_view text) {
    Scanned out;
    std::size_t i = 0;
    bool any_digit = false;
    std::int64_t fraction_digits = 0;
    for (bool after_point = false; i < text.size(); ++i) {
        if (text[i] == '.' && !after_point) {
            after_point = true;
            continue;
        }
        if (!is_digit(text[i])) break;
        any_digit = true;
        if (after_point) ++fraction_digits;
        if (text[i] != '0' || !out.digits.empty()) out.digits.push_back(text[i]);
    }
    if (!any_digit) return std::nullopt;
    if (out.digits.empty()) out.digits = "0";
    if (i < text.size()) {
        if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
        ++i;
        bool negative = false;
        if (i < text.size() && (text[i] == '+' || text[i] == '-')) negative = text[i++] == '-';
        if (i == text.size()) return std::nullopt;
        std::int64_t exponent = 0;
        for (; i < text.size(); ++i) {
            if (!is_digit(text[i])) return std::nullopt;
            exponent = std::min<std::int64_t>(exponent * 10 + (text[i] - '0'),
                                              1'000'000'000'000);  // saturates far out of range
        }
        out.exponent = negative ? -exponent : exponent;
    }
    out.exponent -= fraction_digits;
    return out;
}

}  // namespace

std::optional<Decimal128> decimal_from_string(std::string_view text) {
    bool negative = false;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    if (equals_ignoring_case(text, "nan")) return kNan;
    if (equals_ignoring_case(text, "inf") || equals_ignoring_case(text, "infinity")) {
        return Decimal128{0, kInfinityHigh | (negative ? kSignBit : 0)};
    }
    auto number = scan_number(text);
    if (!number) return std::nullopt;
    auto& [digits, exponent] = *number;
    if (digits == "0") {
        return pack(
            negative,
            static_cast<int>(std::clamp<std::int64_t>(exponent, kExponentMin, kExponentMax)), 0);
    }
    // Only zeros may go: dropping anything else would round.
    while ((digits.size() > kDigitsMax || exponent < kExponentMin) && digits.back() == '0') {
        digits.pop_back();
        ++exponent;
    }
    if (digits.size() > kDigitsMax || exponent < kExponentMin) return std::nullopt;
    while (exponent > kExponentMax && digits.size() < kDigitsMax) {
        digits.push_back('0');
        --exponent;
    }
    if (exponent > kExponentMax) return std::nullopt;
    Uint128 significand = 0;
    for (const char c : digits) significand = significand * 10 + static_cast<unsigned>(c - '0');
    return pack(negative, static_cast<int>(exponent), significand);
}

std::string decimal_to_string(Decimal128 value) {
    const DecimalParts parts = unpack(value);
    if (parts.kind == DecimalKind::Nan) return "NaN";
    std::string out = parts.negative ? "-" : "";
    if (parts.kind == DecimalKind::Infinity) return out + "Infinity";

    std::string digits;
    for (Uint128 rest = parts.significand; rest != 0 || digits.empty(); rest /= 10) {
        digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
    }
    std::reverse(digits.begin(), digits.end());
    const int digit_count = static_cast<int>(digits.size());
    const int scientific_exponent = parts.exponent + digit_count - 1;
    if (parts.exponent > 0 || scientific_exponent < -6) {
        out += digits[0];
        if (digit_count > 1) out.append(".").append(digits, 1);
        out += scientific_exponent < 0 ? "E" : "E+";
        return out + std::to_string(scientific_exponent);
    }
    if (parts.exponent == 0) return out + digits;
    const int before_point = digit_count + parts.exponent;
    if (before_point > 0) {
        const auto split = static_cast<std::size_t>(before_point);
        return out.append(digits, 0, split).append(".").append(digits, split);
    }
    return out.append("0.").append(static_cast<std::size_t>(-before_point), '0').append(digits);
}

std::optional<std::int64_t> decimal_to_int64(Decimal128 value) {
    _IDEC_flags flags = 0;
    const std::int64_t v = bid128_to_int64_xint(to_bid(value), &flags);
    if (flags != 0) return std::nullopt;  // inexact, or invalid: NaN, infinite, out of range
    return v;
}

double decimal_to_double(Decimal128 value) {
    _IDEC_flags flags = 0;
    return bid128_to_binary64(to_bid(value), BID_ROUNDING_TO_NEAREST, &flags);
}

Decimal128 decimal_from_int64(std::int64_t value) {
    const bool negative = value < 0;
    const auto magnitude =
        negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
    return pack(negative, 0, magnitude);
}

Decimal128 decimal_from_double(double value) {
    if (std::isnan(value)) return kNan;
    _IDEC_flags flags = 0;
    return from_bid(binary64_to_bid128(value, BID_ROUNDING_TO_NEAREST, &flags));
}

Decimal128 decimal_from_double_15_digits(double value) {
    if (value == 0 || !std::isfinite(value)) return decimal_from_double(value);
    std::array<char, 40> text;
    const int size = std::snprintf(text.data(), text.size(), "%.14e", value);
    // The point is a comma in some locales.
    std::replace(text.begin(), text.begin() + size, ',', '.');
    return decimal_from_string({text.data(), static_cast<std::size_t>(size)}).value_or(kNan);
}

Decimal128 decimal_add(Decimal128 a, Decimal128 b) {
    _IDEC_flags flags = 0;
    return from_bid(bid128_add(to_bid(a), to_bid(b), BID_ROUNDING_TO_NEAREST, &flags));
}

Decimal128 decimal_multiply(Decimal128 a, Decimal128 b) {
    _IDEC_flags flags = 0;
    return from_bid(bid128_mul(to_bid(a), to_bid(b), BID_ROUNDING_TO_NEAREST, &flags));
}

bool decimal_is_nan(Decimal128 value) { return (value.high & kNanHigh) == kNanHigh; }

int decimal_compare(Decimal128 a, Decimal128 b) {
    const bool a_nan = decimal_is_nan(a);
    const bool b_nan = decimal_is_nan(b);
    if (a_nan || b_nan) return static_cast<int>(b_nan) - static_cast<int>(a_nan);
    _IDEC_flags flags = 0;
    if (bid128_quiet_less(to_bid(a), to_bid(b), &flags)) return -1;
    return bid128_quiet_greater(to_bid(a), to_bid(b), &flags) ? 1 : 0;
}

int decimal_compare_double(Decimal128 a, double b) {
    if (std::isnan(b)) return decimal_is_nan(a) ? 0 : 1;
    // Cut towards zero: when that loses something, all 34 digits are in use, so that no decimal
    // lies between the cut value and b, and comparing with the cut value decides everything but
    // equality.
    _IDEC_flags flags = 0;
    const Decimal128 cut = from_bid(binary64_to_bid128(b, BID_ROUNDING_TO_ZERO, &flags));
    const int order = decimal_compare(a, cut);
    if (order != 0 || (flags & BID_INEXACT_EXCEPTION) == 0) return order;
    return b > 0 ? -1 : 1;
}

}  // namespace angelia::bson
