#include <angelia/bson/compare.h>

#include "bson/decimal.h"
#include "bson/test_documents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace angelia::bson {
namespace {

using test::one;

Decimal128 decimal(std::string_view text) { return decimal_from_string(text).value(); }
ValueView value_of(const Document& d) { return d.view()["v"]; }

/// One group per place in the order, lowest first; the members of a group are equal.
std::vector<std::vector<Document>> ordered_groups() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr std::int64_t kTwo53 = std::int64_t{1} << 53;
    std::vector<std::vector<Document>> groups;
    const auto group = [&groups](auto... members) {
        groups.emplace_back();
        (groups.back().push_back(std::move(members)), ...);
    };
    group(one(MinKey{}));
    group(one(Undefined{}));
    group(one(Null{}));
    group(one(std::nan("")), one(-std::nan("")), one(decimal("NaN")));
    group(one(-kInfinity), one(decimal("-Infinity")));
    group(one(decimal("-1E6000")));
    group(one(std::numeric_limits<double>::lowest()));
    group(one(std::numeric_limits<std::int64_t>::min()), one(-9223372036854775808.0),
          one(decimal("-9223372036854775808")));
    group(one(std::numeric_limits<std::int64_t>::min() + 1));
    group(one(-1.5), one(decimal("-1.50")));
    group(one(std::int32_t{-1}), one(std::int64_t{-1}), one(-1.0), one(decimal("-1")));
    group(one(decimal("-1E-6176")));
    group(one(std::int32_t{0}), one(std::int64_t{0}), one(0.0), one(-0.0), one(decimal("0")),
          one(decimal("-0E3")));
    group(one(decimal("1E-6176")));
    group(one(std::numeric_limits<double>::denorm_min()));
    group(one(decimal("0.1")));
    group(one(0.1));  // the double is a little more than a tenth
    group(one(std::int32_t{1}), one(1.0), one(decimal("1.000")));
    group(one(kTwo53), one(9007199254740992.0), one(decimal("9007199254740992")));
    group(one(kTwo53 + 1), one(decimal("9007199254740993")));
    group(one(kTwo53 + 2), one(9007199254740994.0));
    group(one(std::numeric_limits<std::int64_t>::max()), one(decimal("9223372036854775807")));
    group(one(9223372036854775808.0), one(decimal("9223372036854775808")));
    group(one(std::numeric_limits<double>::max()));
    group(one(decimal("1E6000")));
    group(one(kInfinity), one(decimal("Infinity")));
    group(one(""), test::symbol(""));
    group(one("A"));
    group(one("a"), test::symbol("a"));
    group(one(std::string_view("a\0", 2)));
    group(one("ab"));
    group(one("\xC3\xA4"));
    group(one(Document{}));
    group(one(make("z", Null{})));
    group(one(make("a", std::int32_t{1})), one(make("a", 1.0)));
    group(one(make("a", std::int32_t{1}, "b", std::int32_t{0})));
    group(one(make("a", std::int32_t{2})));
    group(one(make("b", std::int32_t{0})));
    group(one(make("a", "x")));  // the type of the value counts before the name
    group(one(make("a", Document{})));
    group(one(array()));
    group(one(array(std::int32_t{1})), one(array(1.0)));
    group(one(array(std::int32_t{1}, std::int32_t{0})));
    group(one(array(std::int32_t{2})));
    group(one(array(array())));
    group(one(BinaryView{5, ""}));
    group(one(BinaryView{0, "b"}));
    group(one(BinaryView{0, "\xFF"}));
    group(one(BinaryView{0x80, "a"}));
    group(one(BinaryView{0, "aa"}));
    group(one(test::object_id(0)));
    group(one(test::object_id(0x7F)));
    group(one(test::object_id(0xFF)));
    group(one(false));
    group(one(true));
    group(one(Date{std::numeric_limits<std::int64_t>::min()}));
    group(one(Date{-1}));
    group(one(Date{0}));
    group(one(Date{std::numeric_limits<std::int64_t>::max()}));
    group(one(Timestamp{0, 0}));
    group(one(Timestamp{1, 2}));
    group(one(Timestamp{1, 0xFFFFFFFF}));
    group(one(Timestamp{0xFFFFFFFF, 0}));
    group(one(RegexView{"a", ""}));
    group(one(RegexView{"a", "i"}));
    group(one(RegexView{"ab", ""}));
    group(test::db_pointer("b", test::object_id(1)));
    group(test::db_pointer("b", test::object_id(2)));
    group(test::db_pointer("aa", test::object_id(0)));
    group(test::javascript("a()"));
    group(test::javascript("b()"));
    group(test::code_with_scope("a()", Document{}));
    group(test::code_with_scope("a()", make("x", std::int32_t{1})));
    group(test::code_with_scope("b()", Document{}));
    group(one(MaxKey{}));
    return groups;
}

int sign(int v) { return (v > 0) - (v < 0); }

TEST(Compare, OrdersAllTypesAndValuesPairByPair) {
    const auto groups = ordered_groups();
    for (std::size_t i = 0; i < groups.size(); ++i) {
        for (std::size_t k = 0; k < groups.size(); ++k) {
            for (const auto& a : groups[i]) {
                for (const auto& b : groups[k]) {
                    EXPECT_EQ(sign(compare(value_of(a), value_of(b))),
                              sign(static_cast<int>(i) - static_cast<int>(k)))
                        << "group " << i << " with group " << k << ", "
                        << type_alias(value_of(a).type()) << " with "
                        << type_alias(value_of(b).type());
                }
            }
        }
    }
}

TEST(Compare, TreatsMissingAsNull) {
    const Document null = one(Null{});
    EXPECT_EQ(compare(ValueView{}, value_of(null)), 0);
    EXPECT_EQ(compare(ValueView{}, ValueView{}), 0);
    const Document zero = one(std::int32_t{0});
    EXPECT_LT(compare(ValueView{}, value_of(zero)), 0);
}

TEST(Compare, ComparesDocumentsAsValues) {
    EXPECT_EQ(compare(make("a", std::int32_t{1}), make("a", 1.0)), 0);
    EXPECT_NE(compare(make("a", true, "b", true), make("b", true, "a", true)), 0);
    EXPECT_LT(compare(make("a", true), make("a", true, "b", true)), 0);
}

/// Numbers of all four types around the places where representations part.
std::vector<Document> mixed_numbers() {
    std::vector<Document> numbers;
    for (const std::int64_t base : {std::int64_t{0}, std::int64_t{1} << 24, std::int64_t{1} << 31,
                                    std::int64_t{1} << 53, std::int64_t{1} << 62}) {
        for (std::int64_t offset = -3; offset <= 3; ++offset) {
            for (const std::int64_t v : {base + offset, -(base + offset)}) {
                numbers.push_back(one(v));
                numbers.push_back(one(static_cast<std::int32_t>(v)));
                numbers.push_back(one(static_cast<double>(v)));
                numbers.push_back(one(std::nextafter(static_cast<double>(v), 1e300)));
                numbers.push_back(one(decimal_from_int64(v)));
                numbers.push_back(one(decimal_add(decimal_from_int64(v), decimal("0.00000001"))));
            }
        }
    }
    numbers.push_back(one(std::nan("")));
    numbers.push_back(one(decimal("NaN")));
    numbers.push_back(one(-0.0));
    return numbers;
}

TEST(Compare, IsATotalOrderOnMixedNumbers) {
    const auto numbers = mixed_numbers();
    const std::size_t n = numbers.size();
    std::vector<int> order(n * n);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n; ++k)
            order[i * n + k] = sign(compare(value_of(numbers[i]), value_of(numbers[k])));
    }
    std::size_t broken = 0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n; ++k) {
            broken += order[i * n + k] != -order[k * n + i];
            for (std::size_t m = 0; m < n; ++m) {
                broken += order[i * n + k] <= 0 && order[k * n + m] <= 0 && order[i * n + m] > 0;
            }
        }
    }
    EXPECT_GT(n, 400U);
    EXPECT_EQ(broken, 0U);
}

}  // namespace
}  // namespace angelia::bson
