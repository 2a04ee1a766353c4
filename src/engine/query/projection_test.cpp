#include "engine/query/projection.h"

#include "engine/query/test_json.h"

#include <gtest/gtest.h>

namespace angelia::engine::query {
namespace {

using testing_support::from;
using testing_support::outcome_code;
using testing_support::text;

struct ProjectionCase {
    const char* projection;
    const char* document;
    const char* expected;
};

TEST(Projection, ShowsWhatIsAskedFor) {
    const ProjectionCase cases[] = {
        {R"({})", R"({"_id": 1, "a": 2})", R"({"_id": 1, "a": 2})"},
        {R"({"a": 1})", R"({"_id": 1, "b": 3, "a": 2})", R"({"_id": 1, "a": 2})"},
        {R"({"b": 1, "a": true})", R"({"_id": 1, "a": 2, "c": 4, "b": 3})",
         R"({"_id": 1, "a": 2, "b": 3})"},
        {R"({"a": 1, "_id": 0})", R"({"_id": 1, "a": 2})", R"({"a": 2})"},
        {R"({"_id": 1})", R"({"_id": 1, "a": 2})", R"({"_id": 1})"},
        {R"({"_id": 0})", R"({"_id": 1, "a": 2})", R"({"a": 2})"},
        {R"({"a": 0})", R"({"_id": 1, "a": 2, "b": 3})", R"({"_id": 1, "b": 3})"},
        {R"({"a": 0, "_id": 1})", R"({"_id": 1, "a": 2, "b": 3})", R"({"_id": 1, "b": 3})"},
        {R"({"a.b": 1})", R"({"_id": 1, "a": {"b": 1, "c": 2}})", R"({"_id": 1, "a": {"b": 1}})"},
        {R"({"a.b": 0})", R"({"_id": 1, "a": {"b": 1, "c": 2}})", R"({"_id": 1, "a": {"c": 2}})"},
        {R"({"a.b": 1})", R"({"_id": 1, "a": [{"b": 1, "c": 2}, 5, {"c": 1}, [{"b": 3}]]})",
         R"({"_id": 1, "a": [{"b": 1}, {}, [{"b": 3}]]})"},
        {R"({"a.b": 0})", R"({"_id": 1, "a": [{"b": 1, "c": 2}, 5]})",
         R"({"_id": 1, "a": [{"c": 2}, 5]})"},
        {R"({"a.b": 1})", R"({"_id": 1, "a": 5})", R"({"_id": 1})"},
        {R"({"a.b": 0})", R"({"_id": 1, "a": 5})", R"({"_id": 1, "a": 5})"},
        {R"({"a": {"b": 1, "c": 1}})", R"({"_id": 1, "a": {"b": 1, "c": 2, "d": 3}})",
         R"({"_id": 1, "a": {"b": 1, "c": 2}})"},
        {R"({"a": {"$slice": 2}})", R"({"_id": 1, "a": [1, 2, 3], "b": 1})",
         R"({"_id": 1, "a": [1, 2], "b": 1})"},
        {R"({"a": {"$slice": -2}})", R"({"_id": 1, "a": [1, 2, 3]})", R"({"_id": 1, "a": [2, 3]})"},
        {R"({"a": {"$slice": [1, 1]}})", R"({"_id": 1, "a": [1, 2, 3]})",
         R"({"_id": 1, "a": [2]})"},
        {R"({"a": {"$slice": [-2, 1]}})", R"({"_id": 1, "a": [1, 2, 3]})",
         R"({"_id": 1, "a": [2]})"},
        {R"({"a": {"$slice": 0}})", R"({"_id": 1, "a": [1, 2, 3]})", R"({"_id": 1, "a": []})"},
        {R"({"a": {"$slice": 1}, "b": 1})", R"({"_id": 1, "a": [1, 2], "b": 1, "c": 1})",
         R"({"_id": 1, "a": [1], "b": 1})"},
        {R"({"a": {"$elemMatch": {"x": 1}}})",
         R"({"_id": 1, "a": [{"x": 0}, {"x": 1, "y": 1}, {"x": 1}], "b": 1})",
         R"({"_id": 1, "a": [{"x": 1, "y": 1}]})"},
        {R"({"a": {"$elemMatch": {"$gt": 1}}, "b": 1})", R"({"_id": 1, "a": [1, 2, 3], "b": 1})",
         R"({"_id": 1, "b": 1, "a": [2]})"},
        {R"({"a": {"$elemMatch": {"x": 7}}})", R"({"_id": 1, "a": [{"x": 0}]})", R"({"_id": 1})"},
    };
    for (const ProjectionCase& c : cases) {
        const bson::Document shown =
            Projection::parse(from(c.projection)).value_or_throw().apply(from(c.document));
        EXPECT_EQ(text(shown.view()), text(c.expected)) << c.projection << " on " << c.document;
    }
}

TEST(Projection, RefusesContradictions) {
    const auto code = [](const char* projection, ProjectionUse use = ProjectionUse::Find) {
        return outcome_code(Projection::parse(from(projection), use));
    };
    EXPECT_EQ(code(R"({"a": 1, "b": 0})"), "31254");
    EXPECT_EQ(code(R"({"a": 0, "b": 1})"), "31253");
    EXPECT_EQ(code(R"({"a": 1, "a.b": 1})"), "31249");
    EXPECT_EQ(code(R"({"a.b": 1, "a": 1})"), "31250");
    EXPECT_EQ(code(R"({"$a": 1})"), "16410");
    EXPECT_EQ(code(R"({"a..b": 1})"), "40353");
    EXPECT_EQ(code(R"({"": 1})"), "40353");
    EXPECT_EQ(code(R"({"a": {}})"), "51270");
    EXPECT_EQ(code(R"({"a": "$b"})"), "238");
    EXPECT_EQ(code(R"({"a": {"$add": [1, 2]}})"), "238");
    EXPECT_EQ(code(R"({"a.$": 1})"), "238");
    EXPECT_EQ(code(R"({"a": {"$slice": [1, 0]}})"), "2");
    EXPECT_EQ(code(R"({"a": {"$slice": "x"}})"), "2");
    EXPECT_EQ(code(R"({"a.b": {"$elemMatch": {"x": 1}}})"), "2");
    EXPECT_EQ(code("{}", ProjectionUse::Aggregate), "51272");
    EXPECT_EQ(code(R"({"a": {"$slice": 1}})", ProjectionUse::Aggregate), "238");
}

}  // namespace
}  // namespace angelia::engine::query
