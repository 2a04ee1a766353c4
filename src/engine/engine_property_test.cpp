// The same random documents and queries on a collection with indexes and on one without: the
// answers must be the same.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace angelia::engine {
namespace {

using namespace testing_support;
using Texts = std::vector<std::string>;
const Namespace kPlain{"test", "plain"};
const Namespace kIndexed{"test", "indexed"};

class RandomData {
  public:
    explicit RandomData(unsigned seed) : random_(seed) {}
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    std::string scalar() {
        static const char* const kScalars[] = {"null",
                                               "0",
                                               "1",
                                               "2",
                                               "3.5",
                                               "-1",
                                               "\"a\"",
                                               "\"b\"",
                                               "\"\"",
                                               "true",
                                               "false",
                                               R"({"$numberLong": "2"})",
                                               R"({"$date": {"$numberLong": "1000"}})",
                                               R"({"$numberDouble": "NaN"})"};
        return kScalars[below(14)];
    }
    std::string value(int depth = 0) {
        switch (below(depth > 1 ? 6 : 10)) {
            case 6:
                return "[]";
            case 7:
                return "[" + value(depth + 1) + "]";
            case 8:
                return "[" + value(depth + 1) + ", " + value(depth + 1) + "]";
            case 9:
                return R"({"x": )" + value(depth + 1) + "}";
            default:
                return scalar();
        }
    }
    std::string document(int id) {
        std::string out = R"({"_id": )" + std::to_string(id);
        if (below(5) != 0) out += R"(, "a": )" + value();
        if (below(4) != 0) out += R"(, "b": )" + value();
        if (below(3) != 0) out += R"(, "c": )" + std::to_string(below(4));
        return out + "}";
    }
    std::string condition() {
        static const char* const kComparisons[] = {"$eq", "$gt", "$gte", "$lt", "$lte", "$ne"};
        switch (below(6)) {
            case 0:
                return R"({"$in": [)" + scalar() + ", " + scalar() + "]}";
            case 1:
                return std::string(R"({"$exists": )") + (below(2) != 0 ? "true}" : "false}");
            case 2:
                return scalar();
            case 3:
                return R"({"$gte": )" + scalar() + R"(, "$lte": )" + scalar() + "}";
            default:
                return std::string("{\"") + kComparisons[below(6)] + "\": " + scalar() + "}";
        }
    }
    std::string filter(int depth = 0) {
        static const char* const kPaths[] = {"a", "b", "c", "a.x", "b.x", "a.0", "_id"};
        const int kind = below(depth > 1 ? 4 : 7);
        if (kind == 4) return R"({"$and": [)" + filter(depth + 1) + ", " + filter(depth + 1) + "]}";
        if (kind == 5) return R"({"$or": [)" + filter(depth + 1) + ", " + filter(depth + 1) + "]}";
        const int first = below(7);
        std::string out = std::string("{\"") + kPaths[first] + "\": " + condition();
        if (kind == 3) out += std::string(", \"") + kPaths[(first + 1) % 7] + "\": " + condition();
        return out + "}";
    }
    std::string update() {
        static const char* const kFields[] = {"a", "b", "c"};
        const std::string field = kFields[below(3)];
        if (below(3) == 0) return R"({"$unset": {")" + field + R"(": 1}})";
        return R"({"$set": {")" + field + "\": " + value() + "}}";
    }

  private:
    std::mt19937 random_;
};

void make_indexes(TestEngine& engine) {
    for (const char* key : {R"({"a": 1})", R"({"b": -1})", R"({"c": 1, "a": -1})", R"({"a.x": 1})",
                            R"({"b.x": 1, "c": 1})"})
        engine.create_index(kIndexed, index_spec(key, key)).value_or_throw();
    auto sparse = index_spec("sparse", R"({"c": -1})");
    sparse.sparse = true;
    engine.create_index(kIndexed, std::move(sparse)).value_or_throw();
    auto partial = index_spec("partial", R"({"b": 1})");
    partial.partial_filter = doc(R"({"c": {"$gte": 2}})");
    engine.create_index(kIndexed, std::move(partial)).value_or_throw();
}

/// Runs one step on both collections; parallel arrays may be refused only where an index sees them.
void write_both(TestEngine& engine, const std::string& document) {
    if (!engine.insert(kIndexed, document).error) engine.insert(kPlain, document);
}

/// Every move of a scan is remembered: what is skipped wrongly later would show.
EngineOptions gap_options() {
    auto options = memory_options();
    options.slow_move = microseconds(0);
    return options;
}

class PlannerProperty : public ::testing::TestWithParam<unsigned> {};

TEST_P(PlannerProperty, IndexesChangeNoAnswer) {
    RandomData random(GetParam());
    TestEngine engine(gap_options());
    make_indexes(engine);
    for (int i = 0; i < 150; ++i) write_both(engine, random.document(i));
    for (int round = 0; round < 150; ++round) {
        const auto filter = random.filter();
        static const char* const kSorts[] = {R"({"_id": 1})", R"({"a": 1, "_id": 1})",
                                             R"({"b": -1, "_id": -1})",
                                             R"({"c": 1, "a": -1, "_id": 1})"};
        const std::string sort = kSorts[random.below(4)];
        SCOPED_TRACE("filter " + filter + " sort " + sort);
        EXPECT_EQ(engine.find(kIndexed, filter, sort), engine.find(kPlain, filter, sort));
        EXPECT_EQ(engine.count(kIndexed, filter), engine.count(kPlain, filter));
        auto unsorted = engine.find(kIndexed, filter);
        auto expected = engine.find(kPlain, filter);
        std::sort(unsorted.begin(), unsorted.end());
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(unsorted, expected);
    }
    EXPECT_EQ(engine.validate(kIndexed), "valid");
}

TEST_P(PlannerProperty, WritesThroughIndexesKeepThemRight) {
    RandomData random(GetParam() + 1000);
    TestEngine engine(gap_options());
    make_indexes(engine);
    for (int i = 0; i < 80; ++i) write_both(engine, random.document(i));
    for (int round = 0; round < 60; ++round) {
        // By _id, so that a refused parallel array is refused for the same single document.
        const auto filter = text(bson::make("_id", static_cast<std::int32_t>(random.below(80))));
        const auto update = random.update();
        if (!engine.update(kIndexed, filter, update).error) engine.update(kPlain, filter, update);
    }
    for (int round = 0; round < 5; ++round) {
        const auto doomed =
            R"({"c": 1, "$or": [)" + random.filter() + ", " + random.filter() + "]}";
        EXPECT_EQ(engine.remove(kIndexed, doomed).matched, engine.remove(kPlain, doomed).matched)
            << doomed;
    }
    EXPECT_EQ(engine.find(kIndexed, "{}", R"({"_id": 1})"),
              engine.find(kPlain, "{}", R"({"_id": 1})"));
    EXPECT_EQ(engine.validate(kIndexed), "valid");
    EXPECT_EQ(engine.validate(kPlain), "valid");
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlannerProperty, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace angelia::engine
