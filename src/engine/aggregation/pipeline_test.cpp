#include "engine/aggregation/pipeline.h"

#include "engine/query/test_json.h"

#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

namespace angelia::engine::aggregation {
namespace {

using query::testing_support::from;
using query::testing_support::outcome_code;
using query::testing_support::text;

/// The array `p` of a JSON object.
bson::Document stages_of(const std::string& json) {
    const auto document = from("{\"p\": " + json + "}");
    return bson::Document(document.find("p").as_document());
}

/// Hands out {_id: 0, k: ..., s: ...} ... {_id: count-1}.
Source numbered(std::int32_t count) {
    return [at = std::int32_t{0}, count]() mutable -> Result<std::optional<bson::Document>> {
        if (at == count) return std::optional<bson::Document>();
        auto document = bson::make("_id", at, "k", std::int32_t{(at * 7) % 5}, "s",
                                   at % 2 == 0 ? "even" : "odd");
        ++at;
        return std::optional<bson::Document>(std::move(document));
    };
}

std::string result_of(const std::string& stages, std::int32_t count) {
    auto pipeline = Pipeline::parse(stages_of(stages));
    if (!pipeline) return "error " + outcome_code(pipeline) + " " + pipeline.error().message;
    Source source = pipeline->run(numbered(count));
    std::string result;
    for (;;) {
        auto document = source().value_or_throw();
        if (!document) return result;
        result += (result.empty() ? "" : " ") + bson::to_json(document->view());
    }
}

std::string documents(std::initializer_list<const char*> list) {
    std::string result;
    for (const char* d : list) result += (result.empty() ? "" : " ") + text(d);
    return result;
}

TEST(Pipeline, ReplacesTheRoot) {
    EXPECT_EQ(
        result_of(
            R"([{"$replaceRoot": {"newRoot": {"_id": "$_id", "in": {"k": "$k"}, "no": "$x"}}}])",
            1),
        documents({R"({"_id": 0, "in": {"k": 0}})"}));
    EXPECT_EQ(
        result_of(R"([{"$replaceWith": {"d": "$$ROOT", "t": {"$literal": "$k"}, "n": 5}}])", 1),
        documents({R"({"d": {"_id": 0, "k": 0, "s": "even"}, "t": "$k", "n": 5})"}));
    EXPECT_EQ(
        result_of(R"([{"$replaceWith": {"$mergeObjects": [{"k": 1, "a": 2}, "$$ROOT", "$x"]}}])",
                  1),
        documents({R"({"k": 0, "a": 2, "_id": 0, "s": "even"})"}));
}

TEST(Pipeline, RefusesWhatIsNoNewRoot) {
    const auto failure = [](const char* stages) {
        auto pipeline = Pipeline::parse(stages_of(stages));
        if (!pipeline) return outcome_code(pipeline);
        return outcome_code(pipeline->run(numbered(1))());
    };
    EXPECT_EQ(failure(R"([{"$replaceRoot": {"newRoot": "$k"}}])"), "40228");
    EXPECT_EQ(failure(R"([{"$replaceWith": "$missing"}])"), "40228");
    EXPECT_EQ(failure(R"([{"$replaceRoot": 5}])"), "40229");
    EXPECT_EQ(failure(R"([{"$replaceRoot": {}}])"), "40231");
    EXPECT_EQ(failure(R"([{"$replaceRoot": {"newRoot": {}, "x": 1}}])"), "40415");
    EXPECT_EQ(failure(R"([{"$replaceWith": {"a": {"$add": [1, 2]}}}])"), "238");
    EXPECT_EQ(failure(R"([{"$replaceWith": "$$NOW"}])"), "238");
}

TEST(Pipeline, StagesFollowOneAnother) {
    EXPECT_EQ(result_of("[]", 1), documents({R"({"_id": 0, "k": 0, "s": "even"})"}));
    EXPECT_EQ(result_of(R"([{"$match": {"s": "odd"}}, {"$project": {"k": 1}}])", 4),
              documents({R"({"_id": 1, "k": 2})", R"({"_id": 3, "k": 1})"}));
    EXPECT_EQ(
        result_of(R"([{"$sort": {"k": 1, "_id": -1}}, {"$limit": 2}, {"$project": {"_id": 1}}])",
                  10),
        documents({R"({"_id": 5})", R"({"_id": 0})"}));
    EXPECT_EQ(result_of(R"([{"$skip": 3}, {"$project": {"_id": 1}}])", 5),
              documents({R"({"_id": 3})", R"({"_id": 4})"}));
    EXPECT_EQ(result_of(R"([{"$skip": 9}])", 5), "");
    EXPECT_EQ(result_of(R"([{"$count": "n"}])", 5), documents({R"({"n": 5})"}));
    EXPECT_EQ(result_of(R"([{"$count": "n"}])", 0), "");
    EXPECT_EQ(result_of(R"([{"$unset": ["k", "s"]}])", 1), documents({R"({"_id": 0})"}));
    EXPECT_EQ(result_of(R"([{"$set": {"k": "x", "z": {"$literal": {"$a": 1}}}}])", 1),
              documents({R"({"_id": 0, "k": "x", "s": "even", "z": {"$a": 1}})"}));
}

TEST(Pipeline, CountsAsDriversAsk) {
    EXPECT_EQ(result_of(R"([{"$match": {}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}])", 7),
              documents({R"({"_id": 1, "n": 7})"}));
    EXPECT_EQ(
        result_of(
            R"([{"$match": {"s": "odd"}}, {"$skip": 1}, {"$limit": 2}, {"$group": {"_id": 1, "n": {"$sum": 1}}}])",
            9),
        documents({R"({"_id": 1, "n": 2})"}));
    EXPECT_EQ(
        result_of(R"([{"$match": {"s": "none"}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}])", 9),
        "");
    EXPECT_EQ(
        result_of(
            R"([{"$group": {"_id": null, "n": {"$sum": "$k"}, "t": {"$sum": "$s"}, "w": {"$sum": {"$numberLong": "2"}}}}])",
            5),
        documents({R"({"_id": null, "n": 10, "t": 0, "w": 10})"}));
}

struct PipelineErrorCase {
    const char* stages;
    const char* code_and_message;
};

TEST(Pipeline, RefusesWhatItDoesNotKnow) {
    const PipelineErrorCase cases[] = {
        {R"([{"$foo": 1}])", "40324 Unrecognized pipeline stage name: '$foo'"},
        {R"([{"$lookup": {}}])", "40324 Unrecognized pipeline stage name: '$lookup'"},
        {R"([{}])", "40323 A pipeline stage specification object must contain exactly one field."},
        {R"([{"$match": {}, "$limit": 1}])", "40323"},
        {R"([1])", "14 "},
        {R"([{"$match": 1}])", "15959"},
        {R"([{"$match": {"a": {"$foo": 1}}}])", "2 unknown operator: $foo"},
        {R"([{"$limit": 0}])", "15958"},
        {R"([{"$limit": 1.5}])", "15958"},
        {R"([{"$skip": -1}])", "15956"},
        {R"([{"$count": ""}])", "40156"},
        {R"([{"$count": "$a"}])", "40158"},
        {R"([{"$count": "a.b"}])", "40160"},
        {R"([{"$sort": {}}])", "15976"},
        {R"([{"$sort": 1}])", "15973"},
        {R"([{"$group": {"n": {"$sum": 1}}}])", "15955"},
        {R"([{"$group": {"_id": "$a"}}])", "238"},
        {R"([{"$group": {"_id": {"x": "$a"}}}])", "238"},
        {R"([{"$group": {"_id": 1, "n": 1}}])", "40234"},
        {R"([{"$group": {"_id": 1, "n": {"$sum": 1, "$max": 1}}}])", "40238"},
        {R"([{"$group": {"_id": 1, "n": {"$foo": 1}}}])", "15952 unknown group operator '$foo'"},
        {R"([{"$group": {"_id": 1, "n": {"$sum": {"$add": [1, 2]}}}}])", "238"},
        {R"([{"$group": {"_id": 1, "n": {"$sum": "$$NOW"}}}])", "238"},
        {R"([{"$project": {"a": "$b"}}])", "238"},
        {R"([{"$project": {}}])", "51272"},
        {R"([{"$set": {"a": "$b"}}])", "238"},
        {R"([{"$set": {"a.b": 1}}])", "238"},
        {R"([{"$set": {"a": {"b": 1}}}])", "238"},
        {R"([{"$match": {}}, {"$changeStream": {}}])", "40602"},
    };
    for (const PipelineErrorCase& c : cases) {
        const std::string wanted = std::string("error ") + c.code_and_message;
        EXPECT_EQ(result_of(c.stages, 1).substr(0, wanted.size()), wanted) << c.stages;
    }
}

TEST(Pipeline, ShowsItsBeginningToThePlanner) {
    const auto pipeline =
        Pipeline::parse(stages_of(R"([{"$match": {"a": 1}}, {"$sort": {"b": 1}}, {"$limit": 3}])"))
            .value_or_throw();
    EXPECT_EQ(text(*pipeline.leading_match()), text(R"({"a": 1})"));
    EXPECT_EQ(text(*pipeline.leading_sort()), text(R"({"b": 1})"));
    const auto other =
        Pipeline::parse(stages_of(R"([{"$limit": 3}, {"$match": {"a": 1}}])")).value_or_throw();
    EXPECT_FALSE(other.leading_match());
    EXPECT_FALSE(other.leading_sort());
}

TEST(Pipeline, SplitsTheChangeStreamStage) {
    const auto stages = stages_of(
        R"([{"$changeStream": {"fullDocument": "updateLookup"}}, {"$match": {"operationType": "insert"}}, {"$project": {"ns": 0}}])");
    EXPECT_EQ(Pipeline::leading_stage(stages)->name, "$changeStream");
    EXPECT_TRUE(Pipeline::leading_stage(stages)->operand.as_document().has("fullDocument"));
    const auto rest = Pipeline::parse(Pipeline::without_leading_stage(stages)).value_or_throw();
    ASSERT_TRUE(rest.is_per_document());
    const auto shown =
        rest.transform(from(R"({"operationType": "insert", "ns": 1})")).value_or_throw();
    EXPECT_EQ(text(shown->view()), text(R"({"operationType": "insert"})"));
    EXPECT_FALSE(
        rest.transform(from(R"({"operationType": "delete"})")).value_or_throw().has_value());
    const auto sorted = Pipeline::parse(stages_of(R"([{"$sort": {"a": 1}}])")).value_or_throw();
    EXPECT_FALSE(sorted.is_per_document());
    EXPECT_EQ(outcome_code(sorted.transform(from("{}"))), "20");
    EXPECT_FALSE(Pipeline::leading_stage(bson::DocumentView()));
}

TEST(Pipeline, ErrorsOfTheSourceComeThrough) {
    const auto pipeline =
        Pipeline::parse(
            stages_of(
                R"([{"$match": {}}, {"$sort": {"a": 1}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}])"))
            .value_or_throw();
    Source source = pipeline.run([]() -> Result<std::optional<bson::Document>> {
        return Error(ErrorCode::Interrupted, "stopped");
    });
    EXPECT_EQ(outcome_code(source()), "11601");
}

}  // namespace
}  // namespace angelia::engine::aggregation
