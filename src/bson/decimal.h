// decimal128 as a number: conversions and exact comparison. The only door to the decimal library.
#pragma once

#include <angelia/bson/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace angelia::bson {

std::optional<std::int64_t> decimal_to_int64(
    Decimal128 value);                       ///< only when integral and in range
double decimal_to_double(Decimal128 value);  ///< nearest double
Decimal128 decimal_from_int64(std::int64_t value);
Decimal128 decimal_from_double(double value);  ///< exact where 34 digits suffice, else rounded
/// As MongoDB widens a double before arithmetic: rounded to 15 significant digits (0.1 becomes
/// 0.100000000000000).
Decimal128 decimal_from_double_15_digits(double value);
Decimal128 decimal_add(Decimal128 a, Decimal128 b);  ///< ties to even, as all arithmetic here
Decimal128 decimal_multiply(Decimal128 a, Decimal128 b);
/// Reads the string form of the BSON decimal128 specification; nothing when it is malformed, out of
/// range or would have to be rounded.
std::optional<Decimal128> decimal_from_string(std::string_view text);
std::string decimal_to_string(Decimal128 value);  ///< specification's string form
bool decimal_is_nan(Decimal128 value);
/// <0, 0, >0; NaN below everything and equal to itself.
int decimal_compare(Decimal128 a, Decimal128 b);
/// Exact comparison of a decimal with a binary double.
int decimal_compare_double(Decimal128 a, double b);

}  // namespace angelia::bson
