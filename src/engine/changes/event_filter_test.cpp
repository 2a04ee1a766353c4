#include "engine/changes/event_filter.h"

#include <angelia/bson/json.h>

#include <gtest/gtest.h>

namespace angelia::engine::changes {
namespace {

EventFilter filter_of(std::string_view json) {
    return EventFilter::parse(bson::from_json(json).value_or_throw()).value_or_throw();
}

/// Verdicts on insert, update and delete in d.c: "Y", "N" or "?".
std::string verdicts(std::string_view json) {
    const EventFilter filter = filter_of(json);
    std::string out;
    for (const Operation operation : {Operation::Insert, Operation::Update, Operation::Delete}) {
        out += "N?Y"[static_cast<int>(filter.judge(operation, {"d", "c"}))];
    }
    return out;
}

TEST(EventFilter, DecidesByOperationAlone) {
    EXPECT_EQ(verdicts("{}"), "YYY");
    EXPECT_EQ(verdicts(R"({"operationType": "insert"})"), "YNN");
    EXPECT_EQ(verdicts(R"({"operationType": {"$in": ["insert", "update"]}})"), "YYN");
    EXPECT_EQ(verdicts(R"({"operationType": {"$ne": "delete"}})"), "YYN");
    EXPECT_EQ(verdicts(R"({"$or": [{"operationType": "insert"}, {"operationType": "delete"}]})"),
              "YNY");
    EXPECT_EQ(verdicts(R"({"$nor": [{"operationType": "insert"}, {"operationType": "delete"}]})"),
              "NYN");
    EXPECT_EQ(verdicts(R"({"operationType": {"$exists": false}})"), "NNN");
}

TEST(EventFilter, DecidesByNamespace) {
    EXPECT_EQ(verdicts(R"({"ns.coll": "c"})"), "YYY");
    EXPECT_EQ(verdicts(R"({"ns.coll": "other", "fullDocument.a": 1})"), "NNN");
    EXPECT_EQ(verdicts(R"({"ns": {"db": "d", "coll": "c"}, "operationType": "insert"})"), "YNN");
    EXPECT_EQ(verdicts(R"({"ns": {"coll": "c", "db": "d"}})"), "NNN");
}

TEST(EventFilter, KnowsWhatItDoesNotKnow) {
    EXPECT_EQ(verdicts(R"({"fullDocument.a": 1})"), "???");
    EXPECT_EQ(verdicts(R"({"operationType": "insert", "fullDocument.a": 1})"), "?NN");
    EXPECT_EQ(verdicts(R"({"$or": [{"operationType": "update"}, {"fullDocument.a": 1}]})"), "?Y?");
    EXPECT_EQ(verdicts(R"({"$nor": [{"operationType": "update"}, {"fullDocument.a": 1}]})"), "?N?");
    EXPECT_EQ(
        verdicts(
            R"({"$and": [{"$or": [{"operationType": "update"}, {"documentKey._id": 1}]}, {"operationType": "insert"}]})"),
        "?NN");
}

TEST(EventFilter, TakesOnlyWholeNamesForOperationAndNamespace) {
    EXPECT_EQ(verdicts(R"({"operationTypes": "insert"})"), "???");
    EXPECT_EQ(verdicts(R"({"nsx": "insert"})"), "???");
}

TEST(EventFilter, KnowsWhetherTheDocumentMatters) {
    EXPECT_FALSE(filter_of(R"({"operationType": "insert", "documentKey._id": 1})").reads_images());
    EXPECT_FALSE(filter_of(R"({"fullDocumentX": 1})").reads_images());
    EXPECT_TRUE(filter_of(R"({"fullDocument": null})").reads_images());
    EXPECT_TRUE(
        filter_of(R"({"$or": [{"a": 1}, {"$and": [{"fullDocument.a": 1}]}]})").reads_images());
}

std::string pin_of(const char* json) {
    const auto source = bson::from_json(json).value_or_throw();
    const auto filter = EventFilter::parse(source.view()).value_or_throw();
    const auto pin = filter.pin([](std::string_view path) { return path != "secret"; });
    if (!pin) return "none";
    std::string text = pin->path + ":";
    for (const bson::ValueView value : pin->values) text += " " + bson::to_json(value);
    return text;
}

TEST(EventFilter, PinsTheFieldWithTheFewestValues) {
    EXPECT_EQ(pin_of(R"({"a": 5})"), "a: 5");
    EXPECT_EQ(pin_of(R"({"a": {"$eq": "x", "$exists": true}})"), "a: \"x\"");
    EXPECT_EQ(pin_of(R"({"a": {"$in": [1, 2]}, "b": {"$in": [1, 2, 3]}})"), "a: 1 2");
    EXPECT_EQ(pin_of(R"({"a": {"$in": [1, 2]}, "$and": [{"b": 7}]})"), "b: 7");
    EXPECT_EQ(pin_of(R"({"secret": 1, "a": {"$in": [1, 2]}})"), "a: 1 2");
}

TEST(EventFilter, PinsNothingThatAbsenceOrAnotherBranchMayMatch) {
    EXPECT_EQ(pin_of("{}"), "none");
    EXPECT_EQ(pin_of(R"({"a": null})"), "none");
    EXPECT_EQ(pin_of(R"({"a": {"$in": [1, null]}})"), "none");
    EXPECT_EQ(pin_of(R"({"a": {"$in": []}})"), "none");
    EXPECT_EQ(pin_of(R"({"a": {"$gt": 1}})"), "none");
    EXPECT_EQ(pin_of(R"({"a": {"$ne": 1}})"), "none");
    EXPECT_EQ(pin_of(R"({"a": {"b": 1}})"), "none");
    EXPECT_EQ(pin_of(R"({"$or": [{"a": 1}, {"b": 1}]})"), "none");
    EXPECT_EQ(pin_of(R"({"$nor": [{"a": 1}]})"), "none");
}

}  // namespace
}  // namespace angelia::engine::changes
