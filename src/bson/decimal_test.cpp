#include "bson/decimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace angelia::bson {
namespace {

Decimal128 dec(std::string_view text) {
    const auto d = decimal_from_string(text);
    EXPECT_TRUE(d.has_value()) << text;
    return d.value_or(Decimal128{});
}

std::string round_trip(std::string_view text) { return decimal_to_string(dec(text)); }

TEST(Decimal, PrintsTheSpecificationsForm) {
    EXPECT_EQ(round_trip("0"), "0");
    EXPECT_EQ(round_trip("-0"), "-0");
    EXPECT_EQ(round_trip("0.0"), "0.0");
    EXPECT_EQ(round_trip("1.50"), "1.50");
    EXPECT_EQ(round_trip("-12.345"), "-12.345");
    EXPECT_EQ(round_trip("0.000001"), "0.000001");
    EXPECT_EQ(round_trip("0.0000001"), "1E-7");
    EXPECT_EQ(round_trip("0.00000012"), "1.2E-7");
    EXPECT_EQ(round_trip("1E3"), "1E+3");
    EXPECT_EQ(round_trip("12e+1"), "1.2E+2");
    EXPECT_EQ(round_trip(".5"), "0.5");
    EXPECT_EQ(round_trip("5."), "5");
    EXPECT_EQ(round_trip("00012"), "12");
    EXPECT_EQ(round_trip("9999999999999999999999999999999999E6111"),
              "9.999999999999999999999999999999999E+6144");
    EXPECT_EQ(round_trip("1E-6176"), "1E-6176");
    EXPECT_EQ(round_trip("nAn"), "NaN");
    EXPECT_EQ(round_trip("inf"), "Infinity");
    EXPECT_EQ(round_trip("-Infinity"), "-Infinity");
}

TEST(Decimal, MovesZerosToStayInRange) {
    EXPECT_EQ(round_trip("1E6112"), "1.0E+6112");
    EXPECT_EQ(round_trip("1E6144"), "1.000000000000000000000000000000000E+6144");
    EXPECT_EQ(round_trip("10E-6177"), "1E-6176");
    EXPECT_EQ(round_trip("0E7000"), "0E+6111");
    EXPECT_EQ(round_trip("0E-7000"), "0E-6176");
    EXPECT_EQ(round_trip("100000000000000000000000000000000000"),
              "1.000000000000000000000000000000000E+35");
}

TEST(Decimal, RefusesWhatIsMalformedOrWouldRound) {
    for (const char* text : {"",         "-",
                             "+",        ".",
                             "E1",       "1E",
                             "1E+",      "1e1.5",
                             "1x",       " 1",
                             "1 ",       "--1",
                             "1..2",     "1.2.3",
                             "0x1",      "infinit",
                             "NaN1",     "12345678901234567890123456789012345",
                             "1E6145",   "1E-6177",
                             "11E-6177", "1E99999999999999999999999"}) {
        EXPECT_FALSE(decimal_from_string(text).has_value()) << text;
    }
}

TEST(Decimal, EncodesAsTheSpecificationDoes) {
    EXPECT_EQ(dec("1"), (Decimal128{1, 0x3040000000000000}));
    EXPECT_EQ(dec("-1.5"), (Decimal128{15, 0xB03E000000000000}));
    EXPECT_EQ(dec("NaN"), (Decimal128{0, 0x7C00000000000000}));
    EXPECT_EQ(dec("-Infinity"), (Decimal128{0, 0xF800000000000000}));
    EXPECT_EQ(dec("9999999999999999999999999999999999"),
              (Decimal128{0x378D8E63FFFFFFFF, 0x3041ED09BEAD87C0}));
}

TEST(Decimal, ReadsNonCanonicalSignificandsAsZero) {
    EXPECT_EQ(decimal_to_string({0, 0x6C10000000000000}), "0");
    EXPECT_EQ(decimal_to_string({0x378D8E6400000000, 0x3041ED09BEAD87C0}), "0");
    EXPECT_EQ(decimal_compare({0, 0x6C10000000000000}, dec("0")), 0);
}

TEST(Decimal, ConvertsIntegersOnlyWhenExact) {
    EXPECT_EQ(decimal_to_int64(dec("12E2")), 1200);
    EXPECT_EQ(decimal_to_int64(dec("1.0")), 1);
    EXPECT_EQ(decimal_to_int64(dec("1.5")), std::nullopt);
    EXPECT_EQ(decimal_to_int64(dec("NaN")), std::nullopt);
    EXPECT_EQ(decimal_to_int64(dec("Infinity")), std::nullopt);
    EXPECT_EQ(decimal_to_int64(dec("9223372036854775807")), INT64_MAX);
    EXPECT_EQ(decimal_to_int64(dec("9223372036854775808")), std::nullopt);
    EXPECT_EQ(decimal_to_int64(dec("-9223372036854775808")), INT64_MIN);
    EXPECT_EQ(decimal_to_string(decimal_from_int64(INT64_MIN)), "-9223372036854775808");
    EXPECT_EQ(decimal_to_string(decimal_from_int64(INT64_MAX)), "9223372036854775807");
}

TEST(Decimal, ConvertsDoublesToTheNearest) {
    EXPECT_EQ(decimal_to_double(dec("0.1")), 0.1);
    EXPECT_EQ(decimal_to_double(dec("1E400")), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(decimal_to_double(dec("NaN"))));
    EXPECT_EQ(decimal_to_string(decimal_from_double(1.5)), "1.5");
    EXPECT_EQ(decimal_to_string(decimal_from_double(0.1)), "0.1000000000000000055511151231257827");
    EXPECT_EQ(decimal_to_string(decimal_from_double(-0.0)), "-0");
    EXPECT_EQ(decimal_to_string(decimal_from_double(std::nan(""))), "NaN");
    EXPECT_EQ(decimal_to_string(decimal_from_double(-std::numeric_limits<double>::infinity())),
              "-Infinity");
    EXPECT_EQ(decimal_to_string(decimal_from_double_15_digits(0.1)), "0.100000000000000");
    EXPECT_EQ(decimal_to_string(decimal_from_double_15_digits(0)), "0");
}

TEST(Decimal, AddsAndMultiplies) {
    EXPECT_EQ(decimal_to_string(decimal_add(dec("0.1"), dec("0.20"))), "0.30");
    EXPECT_EQ(decimal_to_string(decimal_add(dec("Infinity"), dec("-Infinity"))), "NaN");
    EXPECT_EQ(decimal_to_string(decimal_multiply(dec("1.5"), dec("-2"))), "-3.0");
}

TEST(Decimal, ComparesByNumberAcrossExponents) {
    EXPECT_EQ(decimal_compare(dec("1"), dec("1.000")), 0);
    EXPECT_EQ(decimal_compare(dec("-0"), dec("0E5")), 0);
    EXPECT_LT(decimal_compare(dec("1"), dec("1.0000001")), 0);
    EXPECT_LT(decimal_compare(dec("NaN"), dec("-Infinity")), 0);
    EXPECT_EQ(decimal_compare(dec("NaN"), {5, 0x7E00000000000000}), 0);
}

TEST(Decimal, ComparesWithDoublesExactly) {
    EXPECT_LT(decimal_compare_double(dec("0.1"), 0.1),
              0);  // the double is a little more than a tenth
    EXPECT_GT(decimal_compare_double(dec("-0.1"), -0.1), 0);
    EXPECT_LT(decimal_compare_double(dec("0.1000000000000000055511151231257827"), 0.1), 0);
    EXPECT_GT(decimal_compare_double(dec("0.1000000000000000055511151231257828"), 0.1), 0);
    EXPECT_EQ(decimal_compare_double(dec("0.50"), 0.5), 0);
    EXPECT_EQ(decimal_compare_double(dec("0"), -0.0), 0);
    EXPECT_LT(decimal_compare_double(dec("1E-6176"), std::numeric_limits<double>::denorm_min()), 0);
    EXPECT_GT(decimal_compare_double(dec("1E400"), std::numeric_limits<double>::max()), 0);
    EXPECT_EQ(decimal_compare_double(dec("Infinity"), std::numeric_limits<double>::infinity()), 0);
    EXPECT_GT(decimal_compare_double(dec("-Infinity"), std::nan("")), 0);
    EXPECT_EQ(decimal_compare_double(dec("NaN"), std::nan("")), 0);
}

}  // namespace
}  // namespace angelia::bson
