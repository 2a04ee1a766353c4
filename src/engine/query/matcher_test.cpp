#include "engine/query/matcher.h"

#include "engine/query/test_json.h"

#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

namespace angelia::engine::query {
namespace {

using testing_support::from;
using testing_support::outcome_code;
using testing_support::text;

struct MatchCase {
    const char* filter;
    const char* document;
    bool matches;
};

std::string describe_match(const MatchCase& c) {
    return std::string(c.filter) + " on " + c.document;
}

bool run_match(const MatchCase& c) {
    return Matcher::parse(from(c.filter)).value_or_throw().matches(from(c.document));
}

template <std::size_t N>
void expect_all(const MatchCase (&cases)[N]) {
    for (const MatchCase& c : cases) EXPECT_EQ(run_match(c), c.matches) << describe_match(c);
}

TEST(Matcher, NullMeansNullAndMissing) {
    const MatchCase cases[] = {
        {R"({"a": null})", R"({"a": null})", true},
        {R"({"a": null})", R"({})", true},
        {R"({"a": null})", R"({"a": {"$undefined": true}})", true},
        {R"({"a": null})", R"({"a": 0})", false},
        {R"({"a": {"$eq": null}})", R"({})", true},
        {R"({"a": {"$exists": true, "$eq": null}})", R"({})", false},
        {R"({"a": {"$exists": true, "$eq": null}})", R"({"a": null})", true},
        {R"({"a": {"$type": 10}})", R"({})", false},
        {R"({"a": {"$type": 10}})", R"({"a": null})", true},
        {R"({"a": {"$gte": null}})", R"({})", true},
        {R"({"a": {"$lte": null}})", R"({"a": null})", true},
        {R"({"a": {"$gt": null}})", R"({"a": 1})", false},
        {R"({"a": {"$lt": null}})", R"({"a": null})", false},
        {R"({"a": [null]})", R"({"a": [null]})", true},
        {R"({"a": null})", R"({"a": [1, null]})", true},
        {R"({"a": null})", R"({"a": []})", false},
    };
    expect_all(cases);
}

TEST(Matcher, NullBehindADottedPath) {
    const MatchCase cases[] = {
        {R"({"a.b": null})", R"({})", true},
        {R"({"a.b": null})", R"({"a": null})", true},
        {R"({"a.b": null})", R"({"a": 5})", true},
        {R"({"a.b": null})", R"({"a": {}})", true},
        {R"({"a.b": null})", R"({"a": {"b": null}})", true},
        {R"({"a.b": null})", R"({"a": {"b": 1}})", false},
        {R"({"a.b": null})", R"({"a": [{"b": 1}, {}]})", true},
        {R"({"a.b": null})", R"({"a": [{"b": 1}, {"b": 2}]})", false},
        {R"({"a.b": null})", R"({"a": []})", false},
        {R"({"a.b": null})", R"({"a": [1, 2]})", false},
        {R"({"k.k1.k2": {"$in": [null]}})", R"({"k": [{"k1": "s"}]})", true},
        {R"({"k.k1.k2": {"$in": [null]}})", R"({"k": [{"k1": {"k2": 1}}]})", false},
    };
    expect_all(cases);
}

TEST(Matcher, ComparisonsAreBracketedByType) {
    const MatchCase cases[] = {
        {R"({"a": {"$gt": 5}})", R"({"a": 6})", true},
        {R"({"a": {"$gt": 5}})", R"({"a": 5})", false},
        {R"({"a": {"$gt": 5}})", R"({"a": "x"})", false},
        {R"({"a": {"$gt": 5}})", R"({"a": {"$date": 0}})", false},
        {R"({"a": {"$lt": 5}})", R"({"a": null})", false},
        {R"({"a": {"$lt": 5}})", R"({})", false},
        {R"({"a": {"$lt": "b"}})", R"({"a": "a"})", true},
        {R"({"a": {"$lt": {"$numberDouble": "NaN"}}})", R"({"a": 1})", false},
        {R"({"a": {"$lt": 5}})", R"({"a": {"$numberDouble": "NaN"}})", false},
        {R"({"a": {"$lte": {"$numberDouble": "NaN"}}})", R"({"a": {"$numberDouble": "NaN"}})",
         true},
        {R"({"a": {"$numberDouble": "NaN"}})", R"({"a": {"$numberDecimal": "NaN"}})", true},
        {R"({"a": {"$lt": {"$maxKey": 1}}})", R"({"a": "x"})", true},
        {R"({"a": {"$gt": {"$minKey": 1}}})", R"({"a": "x"})", true},
        {R"({"a": {"$gt": {"$maxKey": 1}}})", R"({"a": "x"})", false},
        {R"({"a": {"$gte": {"$maxKey": 1}}})", R"({"a": {"$maxKey": 1}})", true},
        {R"({"a": 1})", R"({"a": {"$numberLong": "1"}})", true},
        {R"({"a": 1})", R"({"a": {"$numberDecimal": "1.0"}})", true},
        {R"({"a": {"$numberLong": "9007199254740993"}})",
         R"({"a": {"$numberDouble": "9007199254740992.0"}})", false},
        {R"({"a": {"$eq": {"x": 1, "y": 2}}})", R"({"a": {"y": 2, "x": 1}})", false},
        {R"({"a": {"x": 1, "y": 2}})", R"({"a": {"x": 1, "y": 2}})", true},
        {R"({"a": {"$gt": [1, 2]}})", R"({"a": [1, 3]})", true},
        {R"({"a": {"$gt": [1, 2]}})", R"({"a": [5]})", true},
        {R"({"a": {"$gt": [1, 2]}})", R"({"a": 5})", false},
        {R"({"a": {"$gt": [1, 2]}})", R"({"a": [[0], [4]]})", true},
    };
    expect_all(cases);
}

TEST(Matcher, PathsGoThroughArrays) {
    const MatchCase cases[] = {
        {R"({"a": 2})", R"({"a": [1, 2, 3]})", true},
        {R"({"a": [1, 2]})", R"({"a": [1, 2]})", true},
        {R"({"a": [1, 2]})", R"({"a": [[1, 2], 5]})", true},
        {R"({"a": [1, 2]})", R"({"a": [1, 2, 3]})", false},
        {R"({"a": 1})", R"({"a": [[1]]})", false},
        {R"({"a.b": 2})", R"({"a": [{"b": 1}, {"b": 2}]})", true},
        {R"({"a.b": 2})", R"({"a": [{"b": [1, 2]}]})", true},
        {R"({"a.b": 2})", R"({"a": [[{"b": 2}]]})", false},
        {R"({"a.1": 2})", R"({"a": [1, 2]})", true},
        {R"({"a.0": 2})", R"({"a": [1, 2]})", false},
        {R"({"a.1.b": 2})", R"({"a": [1, {"b": 2}]})", true},
        {R"({"a.0": 7})", R"({"a": [{"0": 7}]})", true},
        {R"({"a.0": 7})", R"({"a": {"0": 7}})", true},
        {R"({"a.0.b": 3})", R"({"a": [[{"b": 3}]]})", true},
        {R"({"a": {"$gt": 1, "$lt": 3}})", R"({"a": [0, 9]})", true},
    };
    expect_all(cases);
}

TEST(Matcher, NegationsAreExact) {
    const MatchCase cases[] = {
        {R"({"a": {"$ne": 1}})", R"({})", true},
        {R"({"a": {"$ne": 1}})", R"({"a": [1, 2]})", false},
        {R"({"a": {"$nin": [1, 2]}})", R"({"a": [3]})", true},
        {R"({"a": {"$nin": [1, 2]}})", R"({"a": [3, 2]})", false},
        {R"({"a": {"$not": {"$gt": 5}}})", R"({"a": "x"})", true},
        {R"({"a": {"$not": {"$gt": 5}}})", R"({"a": [6]})", false},
        {R"({"a": {"$not": {"$gt": 5, "$lt": 9}}})", R"({"a": 10})", true},
        {R"({"a": {"$ne": null}})", R"({})", false},
        {R"({"$nor": [{"a": 1}, {"b": 2}]})", R"({"a": 2, "b": 3})", true},
        {R"({"$nor": [{"a": 1}, {"b": 2}]})", R"({"b": 2})", false},
    };
    expect_all(cases);
}

TEST(Matcher, InHoldsAnyOfItsValues) {
    const MatchCase cases[] = {
        {R"({"a": {"$in": [1, "x"]}})", R"({"a": "x"})", true},
        {R"({"a": {"$in": [1, "x"]}})", R"({"a": [5, 1.0]})", true},
        {R"({"a": {"$in": []}})", R"({"a": 1})", false},
        {R"({"a": {"$in": [null]}})", R"({})", true},
        {R"({"a": {"$in": [[1]]}})", R"({"a": [1]})", true},
        {R"({"a": {"$in": [[1]]}})", R"({"a": 1})", false},
    };
    expect_all(cases);
}

TEST(Matcher, ArrayOperators) {
    const MatchCase cases[] = {
        {R"({"a": {"$size": 2}})", R"({"a": [1, 2]})", true},
        {R"({"a": {"$size": 2}})", R"({"a": [[1, 2]]})", false},
        {R"({"a": {"$size": 0}})", R"({"a": []})", true},
        {R"({"a": {"$size": 1}})", R"({"a": 1})", false},
        {R"({"a": {"$all": []}})", R"({"a": []})", false},
        {R"({"a": {"$all": [1, 2]}})", R"({"a": [2, 1, 5]})", true},
        {R"({"a": {"$all": [1, 2]}})", R"({"a": [2]})", false},
        {R"({"a": {"$all": [5]}})", R"({"a": 5})", true},
        {R"({"a": {"$all": [[1, 2]]}})", R"({"a": [1, 2]})", true},
        {R"({"a": {"$all": [{"$elemMatch": {"x": 1}}, {"$elemMatch": {"x": 2}}]}})",
         R"({"a": [{"x": 1}, {"x": 2}]})", true},
        {R"({"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}})", R"({"a": [0, 9]})", false},
        {R"({"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}})", R"({"a": [0, 4]})", true},
        {R"({"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}})", R"({"a": 4})", false},
        {R"({"a": {"$elemMatch": {"x": 1, "y": 2}}})",
         R"({"a": [{"x": 1, "y": 3}, {"x": 2, "y": 2}]})", false},
        {R"({"a": {"$elemMatch": {"x": 1, "y": 2}}})", R"({"a": [{"x": 1, "y": 2}]})", true},
        {R"({"a": {"$elemMatch": {"$or": [{"x": 1}, {"x": 2}]}}})", R"({"a": [{"x": 2}]})", true},
        {R"({"a": {"$elemMatch": {"$ne": 1}}})", R"({"a": [1, 1]})", false},
        {R"({"a": {"$not": {"$elemMatch": {"x": 1}}}})", R"({"a": [{"x": 2}]})", true},
        {R"({"a.b": {"$elemMatch": {"$gt": 3}}})", R"({"a": [{"b": [1]}, {"b": [4]}]})", true},
    };
    expect_all(cases);
}

TEST(Matcher, TypeExistsMod) {
    const MatchCase cases[] = {
        {R"({"a": {"$exists": false}})", R"({"b": 1})", true},
        {R"({"a": {"$exists": 1}})", R"({"a": null})", true},
        {R"({"a": {"$exists": 0}})", R"({"a": null})", false},
        {R"({"a.b": {"$exists": true}})", R"({"a": [{"b": 1}]})", true},
        {R"({"a": {"$type": "string"}})", R"({"a": ["x"]})", true},
        {R"({"a": {"$type": "array"}})", R"({"a": ["x"]})", true},
        {R"({"a": {"$type": "array"}})", R"({"a": "x"})", false},
        {R"({"a": {"$type": "number"}})", R"({"a": {"$numberDecimal": "1"}})", true},
        {R"({"a": {"$type": [2, "bool"]}})", R"({"a": true})", true},
        {R"({"a": {"$type": -1}})", R"({"a": {"$minKey": 1}})", true},
        {R"({"a": {"$mod": [4, 1]}})", R"({"a": 9})", true},
        {R"({"a": {"$mod": [4, 1]}})", R"({"a": 9.7})", true},
        {R"({"a": {"$mod": [4, 0]}})", R"({"a": "8"})", false},
        {R"({"a": {"$mod": [-1, 0]}})", R"({"a": {"$numberLong": "-9223372036854775808"}})", true},
    };
    expect_all(cases);
}

TEST(Matcher, LogicalOperators) {
    const MatchCase cases[] = {
        {R"({})", R"({"a": 1})", true},
        {R"({"$and": [{"a": 1}, {"b": 2}]})", R"({"a": 1, "b": 2})", true},
        {R"({"$or": [{"a": 1}, {"b": 2}]})", R"({"b": 2})", true},
        {R"({"$or": [{"a": 1}, {"b": 2}]})", R"({"b": 3})", false},
        {R"({"$comment": "why", "a": 1})", R"({"a": 1})", true},
        {R"({"$alwaysFalse": 1})", R"({"a": 1})", false},
        {R"({"a": {"$ref": "c", "$id": 1}})", R"({"a": {"$ref": "c", "$id": 1}})", true},
    };
    expect_all(cases);
}

struct FilterErrorCase {
    const char* filter;
    const char* code_and_message;
};

TEST(Matcher, RefusesWhatItDoesNotKnow) {
    const FilterErrorCase cases[] = {
        {R"({"a": {"$foo": 1}})", "2 unknown operator: $foo"},
        {R"({"a": {"$gt": 1, "x": 2}})", "2 unknown operator: x"},
        {R"({"$foo": 1})", "2 unknown top level operator: $foo"},
        {R"({"$expr": {"$eq": ["$a", 1]}})", "2 unknown top level operator: $expr"},
        {R"({"$where": "1"})", "2 unknown top level operator: $where"},
        {R"({"a": {"$undefined": true}})", "2 cannot compare to undefined"},
        {R"({"a": {"$in": 1}})", "2 $in needs an array"},
        {R"({"a": {"$nin": {"x": 1}}})", "2 $nin needs an array"},
        {R"({"a": {"$in": [{"$gt": 1}]}})", "2 cannot nest $ under $in"},
        {R"({"$and": []})", "2 $and/$or/$nor must be a nonempty array"},
        {R"({"$or": {"a": 1}})", "2 $or must be an array"},
        {R"({"$nor": [1]})", "2 $or/$and/$nor entries need to be full objects"},
        {R"({"a": {"$elemMatch": 1}})", "2 $elemMatch needs an Object"},
        {R"({"a": {"$size": -1}})", "2 Failed to parse $size"},
        {R"({"a": {"$size": 1.5}})", "2 Failed to parse $size"},
        {R"({"a": {"$not": {}}})", "2 $not cannot be empty"},
        {R"({"a": {"$not": 1}})", "2 $not needs a regex or a document"},
        {R"({"a": {"$mod": [0, 1]}})", "2 divisor cannot be 0"},
        {R"({"a": {"$mod": [1]}})", "2 malformed mod, not enough elements"},
        {R"({"a": {"$type": "foo"}})", "2 Unknown type name alias: foo"},
        {R"({"a": {"$type": []}})", "9 $type must match at least one type"},
        {R"({"a": {"$all": 1}})", "2 $all needs an array"},
        {R"({"a": {"$regex": "x"}})", "2 unknown operator: $regex"},
    };
    for (const FilterErrorCase& c : cases) {
        const auto result = Matcher::parse(from(c.filter));
        ASSERT_FALSE(result) << c.filter;
        const std::string got = outcome_code(result) + " " + result.error().message;
        EXPECT_EQ(got.substr(0, std::string_view(c.code_and_message).size()), c.code_and_message)
            << c.filter;
    }
}

TEST(Matcher, DeepNestingIsRefusedNotCrashed) {
    bson::Document filter = from(R"({"a": 1})");
    for (int i = 0; i < 300; ++i) filter = bson::make("$and", bson::array(filter));
    EXPECT_EQ(outcome_code(Matcher::parse(filter)), "2");
    std::string path = "a";
    for (int i = 0; i < 300; ++i) path += ".a";
    EXPECT_EQ(outcome_code(Matcher::parse(bson::make(path, std::int32_t{1}))), "15");
}

TEST(Matcher, KnowsTheIdItDemands) {
    const auto id_of = [](const char* filter) {
        const auto matcher = Matcher::parse(from(filter)).value_or_throw();
        const auto id = matcher.id_equality();
        return id ? bson::to_json(*id) : std::string("none");
    };
    EXPECT_EQ(id_of(R"({"_id": 5})"), "5");
    EXPECT_EQ(id_of(R"({"_id": {"$eq": 5}, "x": 1})"), "5");
    EXPECT_EQ(id_of(R"({"$and": [{"x": 1}, {"_id": "k"}]})"), "\"k\"");
    EXPECT_EQ(id_of(R"({"_id": {"$in": [7]}})"), "7");
    EXPECT_EQ(id_of(R"({"_id": {"$in": [7, 8]}})"), "none");
    EXPECT_EQ(id_of(R"({"$or": [{"_id": 1}, {"x": 2}]})"), "none");
    EXPECT_EQ(id_of(R"({"_id": null})"), "none");
    EXPECT_EQ(id_of(R"({"_id": [1]})"), "none");
}

TEST(Matcher, CopiesShareTheFilter) {
    std::optional<Matcher> first = Matcher::parse(from(R"({"a": "x"})")).value_or_throw();
    const Matcher second = *first;
    first.reset();
    EXPECT_TRUE(second.matches(from(R"({"a": "x"})")));
    EXPECT_FALSE(second.always_true());
    EXPECT_TRUE(Matcher::parse(from(R"({"$comment": "all"})")).value_or_throw().always_true());
}

TEST(ValueMatcher, TestsElementsAsPullDoes) {
    const auto matches = [](const char* condition, const char* value) {
        const auto c = from(condition);
        const auto v = from(value);
        return ValueMatcher::parse(c.find("c")).value_or_throw().matches(v.find("v"));
    };
    EXPECT_TRUE(matches(R"({"c": {"$gt": 3}})", R"({"v": 4})"));
    EXPECT_FALSE(matches(R"({"c": {"$gt": 3}})", R"({"v": 3})"));
    EXPECT_TRUE(matches(R"({"c": {"x": 1}})", R"({"v": {"x": 1, "y": 2}})"));
    EXPECT_FALSE(matches(R"({"c": {"x": 1}})", R"({"v": 1})"));
    EXPECT_TRUE(matches(R"({"c": {"$or": [{"x": 1}, {"x": 2}]}})", R"({"v": {"x": 2}})"));
    EXPECT_TRUE(matches(R"({"c": 1})", R"({"v": 1.0})"));
    EXPECT_TRUE(matches(R"({"c": [1, 2]})", R"({"v": [1, 2]})"));
    EXPECT_FALSE(matches(R"({"c": 1})", R"({"v": [1]})"));
}

}  // namespace
}  // namespace angelia::engine::query
