#include "engine/query/sort.h"

#include "engine/query/test_json.h"

#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

namespace angelia::engine::query {
namespace {

using testing_support::from;
using testing_support::outcome_code;
using testing_support::text;

int compared(const char* specification, const char* a, const char* b) {
    const int order = SortSpec::parse(from(specification))
                          .value_or_throw()
                          .compare(from(a), from(b))
                          .value_or_throw();
    return (order > 0) - (order < 0);
}

TEST(SortSpec, ComparesByItsKeys) {
    EXPECT_EQ(compared(R"({"a": 1})", R"({"a": 1})", R"({"a": 2})"), -1);
    EXPECT_EQ(compared(R"({"a": -1})", R"({"a": 1})", R"({"a": 2})"), 1);
    EXPECT_EQ(compared(R"({"a": 1, "b": -1})", R"({"a": 1, "b": 1})", R"({"a": 1, "b": 2})"), 1);
    EXPECT_EQ(compared(R"({"a": 1})", R"({})", R"({"a": null})"), 0);
    EXPECT_EQ(compared(R"({"a": 1})", R"({"a": []})", R"({"a": null})"), -1);
    EXPECT_EQ(compared(R"({"a": 1})", R"({"a": [9, 1]})", R"({"a": [2, 3]})"), -1);
    EXPECT_EQ(compared(R"({"a": -1})", R"({"a": [9, 1]})", R"({"a": [2, 3]})"), -1);
    EXPECT_EQ(compared(R"({"a": 1})", R"({"a": 5})", R"({"a": "x"})"), -1);
    EXPECT_EQ(compared(R"({"a.b": 1})", R"({"a": [{"b": 3}, {"b": 0}]})", R"({"a": {"b": 1}})"),
              -1);
    EXPECT_EQ(compared(R"({})", R"({"a": 1})", R"({"a": 2})"), 0);
}

TEST(SortSpec, RefusesWhatIsNoOrder) {
    const auto code = [](const char* specification) {
        return outcome_code(SortSpec::parse(from(specification)));
    };
    EXPECT_EQ(code(R"({"a": 0})"), "2");
    EXPECT_EQ(code(R"({"a": 2})"), "2");
    EXPECT_EQ(code(R"({"a": "x"})"), "2");
    EXPECT_EQ(code(R"({"a.": 1})"), "2");
    EXPECT_EQ(code(R"({"$a": 1})"), "2");
    EXPECT_EQ(code(R"({"$natural": 1, "a": 1})"), "2");
    EXPECT_EQ(code(R"({"a": {"$meta": "textScore"}})"), "238");
    EXPECT_EQ(code(R"({"a": 1.0, "b": {"$numberLong": "-1"}})"), "ok");
    EXPECT_EQ(SortSpec::parse(from(R"({"$natural": -1})")).value_or_throw().natural(), -1);
    const auto spec = SortSpec::parse(from(R"({"a": 1, "b": 1})")).value_or_throw();
    EXPECT_EQ(outcome_code(spec.sort_key(from(R"({"a": [1], "b": [2]})"))), "2");
}

std::string sorted_ids(std::optional<std::uint64_t> limit) {
    Sorter sorter(SortSpec::parse(from(R"({"k": 1})")).value_or_throw(), limit);
    const std::int32_t keys[] = {5, 1, 4, 1, 3, 9, 1};
    std::int32_t id = 0;
    for (const std::int32_t k : keys) {
        sorter.add(bson::make("id", id, "k", k)).value_or_throw();
        ++id;
    }
    sorter.finish();
    std::string result;
    while (const auto document = sorter.next())
        result += std::to_string(document->find("id").as_int32());
    return result;
}

TEST(Sorter, IsStableAndKeepsTheBest) {
    EXPECT_EQ(sorted_ids(std::nullopt), "1364205");
    EXPECT_EQ(sorted_ids(0), "1364205");
    EXPECT_EQ(sorted_ids(2), "13");
    EXPECT_EQ(sorted_ids(4), "1364");
    EXPECT_EQ(sorted_ids(100), "1364205");
}

TEST(Sorter, RefusesToGrowBeyondItsBound) {
    Sorter unlimited(SortSpec::parse(from(R"({"k": 1})")).value_or_throw(), std::nullopt, 10'000);
    const std::string filler(1'000, 'x');
    int added = 0;
    while (unlimited.add(bson::make("k", std::int32_t{added}, "f", filler)) && added < 100) ++added;
    EXPECT_LT(added, 10);
    EXPECT_EQ(outcome_code(unlimited.add(bson::make("k", std::int32_t{1}, "f", filler))), "292");
    Sorter limited(SortSpec::parse(from(R"({"k": 1})")).value_or_throw(), 3, 10'000);
    for (std::int32_t i = 0; i < 100; ++i)
        ASSERT_TRUE(limited.add(bson::make("k", std::int32_t{100 - i}, "f", filler)));
}

}  // namespace
}  // namespace angelia::engine::query
