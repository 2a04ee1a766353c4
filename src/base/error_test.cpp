#include <angelia/base/clock.h>
#include <angelia/base/result.h>
#include <angelia/base/strong_id.h>

#include <gtest/gtest.h>

#include <set>

namespace angelia {
namespace {

TEST(ErrorCodes, AreSpelledAsMongoDbSpellsThem) {
    EXPECT_EQ(error_code_name(ErrorCode::DuplicateKey), "DuplicateKey");
    EXPECT_EQ(error_code_name(static_cast<ErrorCode>(40324)), "Location40324");
    EXPECT_EQ(error_code_name(static_cast<ErrorCode>(1)), "InternalError");
    EXPECT_EQ(error_code_name(static_cast<ErrorCode>(99999)), "Location99999");
    EXPECT_EQ(Error(ErrorCode::BadValue, "what").to_string(), "BadValue (2): what");
}

TEST(ErrorCodes, NumbersStandOnce) {
    const std::int32_t numbers[] = {
#define ANGELIA_ERROR_CODE(name, number, retriable) number,
#include <angelia/base/error_codes.def>
#undef ANGELIA_ERROR_CODE
    };
    std::set<std::int32_t> seen;
    for (const auto number : numbers) EXPECT_TRUE(seen.insert(number).second) << number;
}

TEST(ErrorCodes, RetriableOnesAreThoseOfTheSpecification) {
    std::set<std::int32_t> retriable;
    for (std::int32_t number = 1; number < 20'000; ++number) {
        if (is_retriable(static_cast<ErrorCode>(number))) retriable.insert(number);
    }
    EXPECT_EQ(retriable, (std::set<std::int32_t>{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600,
                                                 11602, 13435, 13436}));
}

Result<int> half(int v) {
    if (v % 2 != 0) return {ErrorCode::BadValue, "odd"};
    return v / 2;
}

Result<int> quarter(int v) {
    ANGELIA_TRY_ASSIGN(const int h, half(v));
    return half(h);
}

Result<void> needs_even(int v) {
    ANGELIA_TRY(half(v));
    return {};
}

TEST(Result, CarriesValuesAndErrorsThroughTheMacros) {
    EXPECT_EQ(quarter(8).value(), 2);
    EXPECT_EQ(quarter(6).error().message, "odd");
    EXPECT_TRUE(needs_even(2));
    EXPECT_EQ(needs_even(3).error().code, ErrorCode::BadValue);
    EXPECT_EQ(half(3).value_or(-1), -1);
    EXPECT_THROW(static_cast<void>(half(3).value_or_throw()), Exception);
}

TEST(ResultDeathTest, ReadingTheWrongSideAborts) {
    EXPECT_DEATH(static_cast<void>(half(3).value()), "BadValue");
}

TEST(Error, KnowsItsLabels) {
    Error error(ErrorCode::WriteConflict, "busy");
    error.labels.push_back("TransientTransactionError");
    EXPECT_TRUE(error.has_label("TransientTransactionError"));
    EXPECT_FALSE(error.has_label("Transient"));
}

TEST(ManualClock, MovesOnlyWhenTold) {
    ManualClock clock;
    const auto system = clock.system_now();
    const auto steady = clock.steady_now();
    clock.advance(milliseconds(5));
    clock.jump_system(-milliseconds(2));
    EXPECT_EQ(clock.system_now() - system, milliseconds(3));
    EXPECT_EQ(clock.steady_now() - steady, milliseconds(5));
}

TEST(RealClock, CountsMillisecondsSince1970) {
    EXPECT_GT(real_clock().system_millis(), 1'700'000'000'000);
}

TEST(StrongId, ComparesAndHashes) {
    using Id = StrongId<struct IdTag>;
    EXPECT_EQ(Id("a"), Id("a"));
    EXPECT_LT(Id("a"), Id("b"));
    EXPECT_EQ(std::hash<Id>{}(Id("a")), std::hash<Id>{}(Id("a")));
}

}  // namespace
}  // namespace angelia
