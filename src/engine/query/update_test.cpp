#include "engine/query/update.h"

#include "engine/query/test_json.h"

#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

namespace angelia::engine::query {
namespace {

using testing_support::from;
using testing_support::outcome_code;
using testing_support::text;

const ApplyContext kMoment{false, bson::Date{1000}, bson::Timestamp{7, 1}};

std::string trimmed(const std::string& s, std::size_t size) { return s.substr(0, size); }

/// The document after the update in canonical form, or "error <code> <message>".
std::string updated(const char* document, const char* update) {
    auto parsed = Update::parse(from(update));
    if (!parsed) return "error " + outcome_code(parsed) + " " + parsed.error().message;
    auto outcome = parsed->apply(from(document), kMoment);
    if (!outcome) return "error " + outcome_code(outcome) + " " + outcome.error().message;
    return bson::to_json(outcome->document.view(), bson::JsonMode::Canonical);
}
std::string canonical(const char* json) {
    const bson::Document document = from(json);
    return bson::to_json(document.view(), bson::JsonMode::Canonical);
}

struct UpdateCase {
    const char* document;
    const char* update;
    const char* expected;
};

template <std::size_t N>
void expect_updates(const UpdateCase (&cases)[N]) {
    for (const UpdateCase& c : cases)
        EXPECT_EQ(updated(c.document, c.update), canonical(c.expected))
            << c.update << " on " << c.document;
}

struct UpdateErrorCase {
    const char* document;
    const char* update;
    const char* code_and_message;
};

template <std::size_t N>
void expect_update_errors(const UpdateErrorCase (&cases)[N]) {
    for (const UpdateErrorCase& c : cases) {
        const std::string wanted = std::string("error ") + c.code_and_message;
        EXPECT_EQ(trimmed(updated(c.document, c.update), wanted.size()), wanted)
            << c.update << " on " << c.document;
    }
}

TEST(UpdateSet, PutsValuesWherePathsLead) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": 1})", R"({"$set": {"a": 2}})", R"({"_id": 1, "a": 2})"},
        {R"({"_id": 1})", R"({"$set": {"b": 2, "a": 1}})", R"({"_id": 1, "a": 1, "b": 2})"},
        {R"({"_id": 1})", R"({"$set": {"10": 1, "9": 1, "x": 1}})",
         R"({"_id": 1, "9": 1, "10": 1, "x": 1})"},
        {R"({"_id": 1, "b": 0})", R"({"$set": {"c": 1, "b": 2, "a": 3}})",
         R"({"_id": 1, "b": 2, "a": 3, "c": 1})"},
        {R"({"_id": 1})", R"({"$set": {"a.b.c": 1, "a.b.a": 2}})",
         R"({"_id": 1, "a": {"b": {"a": 2, "c": 1}}})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$set": {"a.1": 5}})", R"({"_id": 1, "a": [1, 5]})"},
        {R"({"_id": 1, "a": [1]})", R"({"$set": {"a.3": 5}})",
         R"({"_id": 1, "a": [1, null, null, 5]})"},
        {R"({"_id": 1, "a": [{"b": 1}]})", R"({"$set": {"a.0.c": 5}})",
         R"({"_id": 1, "a": [{"b": 1, "c": 5}]})"},
        {R"({"_id": 1})", R"({"$set": {"a.0": 5}})", R"({"_id": 1, "a": {"0": 5}})"},
        {R"({"_id": 1})", R"({"$set": {"_id": 1.0}})", R"({"_id": 1})"},
        {R"({"_id": 1, "a": 1})", R"({"$set": {}})", R"({"_id": 1, "a": 1})"},
    };
    expect_updates(cases);
}

TEST(UpdateSet, RefusesPathsThatLeadNowhere) {
    const UpdateErrorCase cases[] = {
        {R"({"_id": 1, "a": 5})", R"({"$set": {"a.b": 1}})",
         "28 Cannot create field 'b' in element {a: 5}"},
        {R"({"_id": 1, "a": [5]})", R"({"$set": {"a.b": 1}})",
         "28 Cannot create field 'b' in element {a: [5]}"},
        {R"({"_id": 1, "a": []})", R"({"$set": {"a.1500001": 1}})", "34"},
        {R"({"_id": 1})", R"({"$set": {"_id": 2}})",
         "66 Performing an update on the path '_id' would modify the immutable field '_id'"},
        {R"({"_id": {"x": 1}})", R"({"$set": {"_id.x": 2}})", "66"},
        {R"({"_id": 1})", R"({"$unset": {"_id": 1}})", "66"},
        {R"({"_id": 1})", R"({"$set": {"a..b": 1}})", "56"},
        {R"({"_id": 1})", R"({"$set": {"": 1}})", "56"},
        {R"({"_id": 1})", R"({"$set": {"a.$x": 1}})", "52"},
    };
    expect_update_errors(cases);
}

TEST(UpdateParse, RefusesWhatIsNoUpdate) {
    const UpdateErrorCase cases[] = {
        {"{}", R"({"$foo": {"a": 1}})", "9 Unknown modifier: $foo"},
        {"{}", R"({"$set": {"a": 1}, "b": 1})", "9 Unknown modifier: b"},
        {"{}", R"({"b": 1, "$set": {"a": 1}})", "9 "},
        {"{}", R"({"$set": 5})", "9 Modifiers operate on fields but we found type int instead"},
        {"{}", R"({"$set": {"y": 1}, "$inc": {"y": 1}})",
         "40 Updating the path 'y' would create a conflict at 'y'"},
        {"{}", R"({"$set": {"a.b": 1}, "$inc": {"a": 1}})",
         "40 Updating the path 'a.b' would create a conflict at 'a'"},
        {"{}", R"({"$set": {"y": 1}, "$setOnInsert": {"y": 1}})", "40"},
        {"{}", R"({"$rename": {"a": "b"}, "$set": {"a": 1}})", "40"},
        {"{}", R"({"$rename": {"a": "b"}, "$set": {"b": 1}})", "40"},
    };
    expect_update_errors(cases);
    EXPECT_EQ(outcome_code(Update::parse(from(R"({"a": 1})"),
                                         {.array_filters = {}, .multi = true, .upsert = false})),
              "9");
    const auto pipeline = from(R"({"u": [{"$set": {"a": 1}}]})");
    EXPECT_EQ(outcome_code(Update::parse(pipeline.find("u"))), "238");
    const auto number = from(R"({"u": 1})");
    EXPECT_EQ(outcome_code(Update::parse(number.find("u"))), "9");
    const auto filters = from(R"({"f": [{"x": 1}]})");
    EXPECT_EQ(
        outcome_code(Update::parse(
            from(R"({"$set": {"a": 1}})"),
            {.array_filters = filters.find("f").as_document(), .multi = false, .upsert = false})),
        "9");
}

TEST(UpdateUnset, RemovesFieldsAndEmptiesElements) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": 1, "b": 2})", R"({"$unset": {"a": ""}})", R"({"_id": 1, "b": 2})"},
        {R"({"_id": 1, "a": {"b": 1, "c": 2}})", R"({"$unset": {"a.b": ""}})",
         R"({"_id": 1, "a": {"c": 2}})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$unset": {"a.0": ""}})",
         R"({"_id": 1, "a": [null, 2]})"},
        {R"({"_id": 1, "a": 5})", R"({"$unset": {"a.b": "", "x": ""}})", R"({"_id": 1, "a": 5})"},
    };
    expect_updates(cases);
}

TEST(UpdateInc, WidensAndAdds) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": 1})", R"({"$inc": {"a": 2}})", R"({"_id": 1, "a": 3})"},
        {R"({"_id": 1})", R"({"$inc": {"a": 2}})", R"({"_id": 1, "a": 2})"},
        {R"({"_id": 1, "a": 2147483647})", R"({"$inc": {"a": 1}})",
         R"({"_id": 1, "a": {"$numberLong": "2147483648"}})"},
        {R"({"_id": 1, "a": 1})", R"({"$inc": {"a": {"$numberLong": "1"}}})",
         R"({"_id": 1, "a": {"$numberLong": "2"}})"},
        {R"({"_id": 1, "a": 1})", R"({"$inc": {"a": 0.5}})", R"({"_id": 1, "a": 1.5})"},
        {R"({"_id": 1, "a": 1})", R"({"$inc": {"a": {"$numberDecimal": "0.1"}}})",
         R"({"_id": 1, "a": {"$numberDecimal": "1.1"}})"},
        {R"({"_id": 1, "a": 3})", R"({"$mul": {"a": 4}})", R"({"_id": 1, "a": 12})"},
        {R"({"_id": 1})", R"({"$mul": {"a": {"$numberLong": "4"}}})",
         R"({"_id": 1, "a": {"$numberLong": "0"}})"},
        {R"({"_id": 1, "a": 65536})", R"({"$mul": {"a": 65536}})",
         R"({"_id": 1, "a": {"$numberLong": "4294967296"}})"},
    };
    expect_updates(cases);
    const UpdateErrorCase errors[] = {
        {R"({"_id": 1, "a": 1})", R"({"$inc": {"a": "x"}})",
         "14 Cannot increment with non-numeric argument: {a: \"x\"}"},
        {R"({"_id": 1, "a": "x"})", R"({"$inc": {"a": 1}})",
         "14 Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'a' of "
         "non-numeric type string"},
        {R"({"_id": 1, "a": {"$numberLong": "9223372036854775807"}})", R"({"$inc": {"a": 1}})",
         "2 Failed to apply $inc"},
        {R"({"_id": 1, "a": null})", R"({"$mul": {"a": 1}})", "14"},
    };
    expect_update_errors(errors);
}

TEST(UpdateMinMax, FollowTheTotalOrder) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": 5})", R"({"$min": {"a": 3}})", R"({"_id": 1, "a": 3})"},
        {R"({"_id": 1, "a": 5})", R"({"$min": {"a": 7}})", R"({"_id": 1, "a": 5})"},
        {R"({"_id": 1, "a": 5})", R"({"$max": {"a": 7}})", R"({"_id": 1, "a": 7})"},
        {R"({"_id": 1, "a": 5})", R"({"$min": {"a": null}})", R"({"_id": 1, "a": null})"},
        {R"({"_id": 1, "a": 5})", R"({"$max": {"a": "x"}})", R"({"_id": 1, "a": "x"})"},
        {R"({"_id": 1, "a": 5})", R"({"$max": {"a": 5.0}})", R"({"_id": 1, "a": 5})"},
        {R"({"_id": 1})", R"({"$max": {"a": 5}})", R"({"_id": 1, "a": 5})"},
    };
    expect_updates(cases);
}

TEST(UpdateCurrentDate, TakesTheMoment) {
    const UpdateCase cases[] = {
        {R"({"_id": 1})", R"({"$currentDate": {"a": true}})",
         R"({"_id": 1, "a": {"$date": {"$numberLong": "1000"}}})"},
        {R"({"_id": 1})", R"({"$currentDate": {"a": {"$type": "timestamp"}}})",
         R"({"_id": 1, "a": {"$timestamp": {"t": 7, "i": 1}}})"},
        {R"({"_id": 1})", R"({"$currentDate": {"a": {"$type": "date"}}})",
         R"({"_id": 1, "a": {"$date": {"$numberLong": "1000"}}})"},
    };
    expect_updates(cases);
    const UpdateErrorCase errors[] = {
        {"{}", R"({"$currentDate": {"a": 1}})", "2"},
        {"{}", R"({"$currentDate": {"a": {"$type": "x"}}})", "2"},
        {"{}", R"({"$currentDate": {"a": {"$foo": "date"}}})",
         "2 Unrecognized $currentDate option: $foo"},
    };
    expect_update_errors(errors);
}

TEST(UpdateRename, MovesFields) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": 1, "b": 2})", R"({"$rename": {"a": "c"}})",
         R"({"_id": 1, "b": 2, "c": 1})"},
        {R"({"_id": 1, "a": 1, "b": 2})", R"({"$rename": {"a": "b"}})", R"({"_id": 1, "b": 1})"},
        {R"({"_id": 1, "a": {"x": 1}})", R"({"$rename": {"a.x": "b.y"}})",
         R"({"_id": 1, "a": {}, "b": {"y": 1}})"},
        {R"({"_id": 1, "b": 2})", R"({"$rename": {"a": "b"}})", R"({"_id": 1, "b": 2})"},
    };
    expect_updates(cases);
    const UpdateErrorCase errors[] = {
        {"{}", R"({"$rename": {"a": "a"}})",
         "2 The source and target field for $rename must differ"},
        {"{}", R"({"$rename": {"a": "a.b"}})",
         "2 The source and target field for $rename must not be on the same path"},
        {"{}", R"({"$rename": {"a": 1}})", "2 The 'to' field for $rename must be a string"},
        {R"({"_id": 1, "a": [{"b": 1}]})", R"({"$rename": {"a.0.b": "c"}})",
         "2 The source field cannot be an array element"},
        {R"({"_id": 1, "a": [1], "c": 1})", R"({"$rename": {"c": "a.0"}})",
         "2 The destination field cannot be an array element"},
        {R"({"_id": 1})", R"({"$rename": {"_id": "x"}})", "66"},
    };
    expect_update_errors(errors);
}

TEST(UpdatePush, InsertsSortsSlices) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": [1]})", R"({"$push": {"a": 2}})", R"({"_id": 1, "a": [1, 2]})"},
        {R"({"_id": 1})", R"({"$push": {"a": 2}})", R"({"_id": 1, "a": [2]})"},
        {R"({"_id": 1})", R"({"$push": {"a": {"$each": []}}})", R"({"_id": 1, "a": []})"},
        {R"({"_id": 1, "a": [1]})", R"({"$push": {"a": [2, 3]}})",
         R"({"_id": 1, "a": [1, [2, 3]]})"},
        {R"({"_id": 1, "a": [1]})", R"({"$push": {"a": {"$each": [2, 3]}}})",
         R"({"_id": 1, "a": [1, 2, 3]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$push": {"a": {"$each": [9], "$position": 0}}})",
         R"({"_id": 1, "a": [9, 1, 2]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$push": {"a": {"$each": [9], "$position": -1}}})",
         R"({"_id": 1, "a": [1, 9, 2]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$push": {"a": {"$each": [9], "$position": -7}}})",
         R"({"_id": 1, "a": [9, 1, 2]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$push": {"a": {"$each": [3], "$slice": 2}}})",
         R"({"_id": 1, "a": [1, 2]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$push": {"a": {"$each": [3], "$slice": -2}}})",
         R"({"_id": 1, "a": [2, 3]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$push": {"a": {"$each": [3], "$slice": 0}}})",
         R"({"_id": 1, "a": []})"},
        {R"({"_id": 1, "a": [1]})",
         R"({"$push": {"a": {"$each": [], "$slice": {"$numberLong": "-9223372036854775808"}}}})",
         R"({"_id": 1, "a": [1]})"},
        {R"({"_id": 1, "a": [3, 1]})", R"({"$push": {"a": {"$each": [2], "$sort": 1}}})",
         R"({"_id": 1, "a": [1, 2, 3]})"},
        {R"({"_id": 1, "a": [{"x": 2}]})",
         R"({"$push": {"a": {"$each": [{"x": 1}, {"x": 3}], "$sort": {"x": -1}, "$slice": 2}}})",
         R"({"_id": 1, "a": [{"x": 3}, {"x": 2}]})"},
    };
    expect_updates(cases);
    const UpdateErrorCase errors[] = {
        {R"({"_id": 1, "a": 5})", R"({"$push": {"a": 1}})",
         "2 The field 'a' must be an array but is of type int in document {_id: 1}"},
        {"{}", R"({"$push": {"a": {"$each": 1}}})",
         "2 The argument to $each in $push must be an array but it was of type: int"},
        {"{}", R"({"$push": {"a": {"$each": [], "$foo": 1}}})",
         "2 Unrecognized clause in $push: $foo"},
        {"{}", R"({"$push": {"a": {"$slice": 1}}})", "2"},
        {"{}", R"({"$push": {"a": {"$each": [], "$slice": "x"}}})",
         "2 The value for $slice must be an integer value"},
        {"{}", R"({"$push": {"a": {"$each": [], "$sort": 2}}})", "2"},
    };
    expect_update_errors(errors);
}

TEST(UpdateAddToSet, KeepsASet) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": [1]})", R"({"$addToSet": {"a": 2}})", R"({"_id": 1, "a": [1, 2]})"},
        {R"({"_id": 1, "a": [1]})", R"({"$addToSet": {"a": 1.0}})", R"({"_id": 1, "a": [1]})"},
        {R"({"_id": 1})", R"({"$addToSet": {"a": {"$each": [1, 1, 2]}}})",
         R"({"_id": 1, "a": [1, 2]})"},
        {R"({"_id": 1, "a": [{"x": 1, "y": 2}]})", R"({"$addToSet": {"a": {"y": 2, "x": 1}}})",
         R"({"_id": 1, "a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]})"},
        {R"({"_id": 1, "a": []})", R"({"$addToSet": {"a": [1]}})", R"({"_id": 1, "a": [[1]]})"},
    };
    expect_updates(cases);
    const UpdateErrorCase errors[] = {
        {R"({"_id": 1, "a": 5})", R"({"$addToSet": {"a": 1}})",
         "2 Cannot apply $addToSet to non-array field. Field named 'a' has non-array type int"},
        {"{}", R"({"$addToSet": {"a": {"$each": [1], "$slice": 1}}})",
         "2 Found unexpected fields after $each in $addToSet"},
        {"{}", R"({"$addToSet": {"a": {"$each": 1}}})", "14"},
    };
    expect_update_errors(errors);
}

TEST(UpdatePull, RemovesElements) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": [1, 2, 1]})", R"({"$pull": {"a": 1}})", R"({"_id": 1, "a": [2]})"},
        {R"({"_id": 1, "a": [1, 5, 9]})", R"({"$pull": {"a": {"$gte": 5}}})",
         R"({"_id": 1, "a": [1]})"},
        {R"({"_id": 1, "a": [{"x": 1, "y": 1}, {"x": 2}]})", R"({"$pull": {"a": {"x": 1}}})",
         R"({"_id": 1, "a": [{"x": 2}]})"},
        {R"({"_id": 1, "a": [1, 2, 3]})", R"({"$pull": {"a": {"$in": [1, 3]}}})",
         R"({"_id": 1, "a": [2]})"},
        {R"({"_id": 1})", R"({"$pull": {"a": 1}})", R"({"_id": 1})"},
        {R"({"_id": 1, "a": [1, 2, 1.0, 3]})", R"({"$pullAll": {"a": [1, 3]}})",
         R"({"_id": 1, "a": [2]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$pop": {"a": 1}})", R"({"_id": 1, "a": [1]})"},
        {R"({"_id": 1, "a": [1, 2]})", R"({"$pop": {"a": -1}})", R"({"_id": 1, "a": [2]})"},
        {R"({"_id": 1, "a": 5})", R"({"$bit": {"a": {"and": 6, "or": 8}}})",
         R"({"_id": 1, "a": 12})"},
    };
    expect_updates(cases);
    const UpdateErrorCase errors[] = {
        {R"({"_id": 1, "a": 5})", R"({"$pull": {"a": 1}})",
         "2 Cannot apply $pull to a non-array value"},
        {R"({"_id": 1, "a": 5})", R"({"$pullAll": {"a": [1]}})", "2"},
        {"{}", R"({"$pullAll": {"a": 1}})",
         "2 $pullAll requires an array argument but was given a int"},
        {"{}", R"({"$pull": {"a": {"$foo": 1}}})", "2 unknown operator: $foo"},
        {"{}", R"({"$pop": {"a": 2}})", "9"},
        {"{}", R"({"$bit": {"a": {"nand": 2}}})", "2"},
        {R"({"_id": 1, "a": 1.5})", R"({"$bit": {"a": {"and": 2}}})", "2"},
    };
    expect_update_errors(errors);
}

TEST(UpdateReplacement, KeepsTheId) {
    const UpdateCase cases[] = {
        {R"({"_id": 1, "a": 1})", R"({"b": 2})", R"({"_id": 1, "b": 2})"},
        {R"({"_id": 1, "a": 1})", R"({})", R"({"_id": 1})"},
        {R"({"_id": 1, "a": 1})", R"({"b": 2, "_id": 1})", R"({"_id": 1, "b": 2})"},
        {R"({"_id": 1})", R"({"a.b": 2, "c": {"$d": 1}})",
         R"({"_id": 1, "a.b": 2, "c": {"$d": 1}})"},
    };
    expect_updates(cases);
    const UpdateErrorCase errors[] = {{R"({"_id": 1})", R"({"_id": 2})", "66"}};
    expect_update_errors(errors);
}

TEST(UpdateOutcome, SaysWhetherBytesChanged) {
    const auto modified = [](const char* document, const char* update) {
        return Update::parse(from(update))
            .value_or_throw()
            .apply(from(document), kMoment)
            .value_or_throw()
            .modified;
    };
    EXPECT_FALSE(modified(R"({"_id": 1, "a": 1})", R"({"$set": {"a": 1}})"));
    EXPECT_TRUE(modified(R"({"_id": 1, "a": 1})", R"({"$set": {"a": 1.0}})"));
    EXPECT_FALSE(modified(R"({"_id": 1, "a": 1})", R"({"$inc": {"a": 0}})"));
    EXPECT_FALSE(modified(R"({"_id": 1, "a": 1})", R"({"$setOnInsert": {"b": 1}})"));
    EXPECT_FALSE(modified(R"({"_id": 1, "a": [1]})", R"({"$addToSet": {"a": 1}})"));
    EXPECT_FALSE(modified(R"({"_id": 1, "a": 1})", R"({"_id": 1, "a": 1})"));
    EXPECT_TRUE(modified(R"({"_id": 1, "a": 1})", R"({"a": 2})"));
}

TEST(UpdateOutcome, DescribesTheEffect) {
    const auto described = [](const char* document, const char* update) {
        const auto outcome = Update::parse(from(update))
                                 .value_or_throw()
                                 .apply(from(document), kMoment)
                                 .value_or_throw();
        return text(outcome.description.updated_fields.view()) + " -" +
               text(outcome.description.removed_fields.view());
    };
    EXPECT_EQ(described(R"({"_id": 1, "a": 1})", R"({"$set": {"a": 2, "b": 3}})"),
              text(R"({"a": 2, "b": 3})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1, "a": {"b": 1}})", R"({"$set": {"a.b": 2}})"),
              text(R"({"a.b": 2})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1})", R"({"$set": {"a.b": 2, "a.c": 3}})"),
              text(R"({"a": {"b": 2, "c": 3}})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1, "a": [1, 2]})", R"({"$set": {"a.0": 5}})"),
              text(R"({"a.0": 5})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1, "a": [1]})", R"({"$push": {"a": {"$each": [2, 3]}}})"),
              text(R"({"a.1": 2, "a.2": 3})") + " -" + text("{}"));
    EXPECT_EQ(
        described(R"({"_id": 1, "a": [2]})", R"({"$push": {"a": {"$each": [1], "$position": 0}}})"),
        text(R"({"a": [1, 2]})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1})", R"({"$push": {"a": 1}})"),
              text(R"({"a": [1]})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1, "a": [1, 2]})", R"({"$pull": {"a": 1}})"),
              text(R"({"a": [2]})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1, "a": 1, "b": 1})", R"({"$unset": {"a": 1}})"),
              text("{}") + " -" + text(R"({"0": "a"})"));
    EXPECT_EQ(described(R"({"_id": 1, "a": 1})", R"({"$rename": {"a": "b"}})"),
              text(R"({"b": 1})") + " -" + text(R"({"0": "a"})"));
    EXPECT_EQ(described(R"({"_id": 1, "a": [1, 2]})", R"({"$unset": {"a.0": 1}})"),
              text(R"({"a.0": null})") + " -" + text("{}"));
    EXPECT_EQ(described(R"({"_id": 1, "a": 1})", R"({"b": 1})"), text("{}") + " -" + text("{}"));
}

struct PositionalCase {
    const char* query;
    const char* filters;  // {"f": [...]}
    const char* document;
    const char* update;
    const char* expected;  // a document, or "error ..."
};

std::string updated_at(const PositionalCase& c) {
    const auto filters = from(c.filters);
    auto parsed = Update::parse(
        from(c.update),
        {.array_filters = filters.find("f").get_array(), .multi = false, .upsert = false});
    if (!parsed) return "error " + outcome_code(parsed) + " " + parsed.error().message;
    const auto query = Matcher::parse(from(c.query)).value_or_throw();
    ApplyContext moment = kMoment;
    moment.query = &query;
    auto outcome = parsed->apply(from(c.document), moment);
    if (!outcome) return "error " + outcome_code(outcome) + " " + outcome.error().message;
    return bson::to_json(outcome->document.view());
}

TEST(UpdatePositional, FindsTheElements) {
    const PositionalCase cases[] = {
        {R"({"a": 2})", "{}", R"({"_id": 1, "a": [1, 2, 2]})", R"({"$set": {"a.$": 9}})",
         R"({"_id": 1, "a": [1, 9, 2]})"},
        {R"({"a": {"$gt": 1}})", "{}", R"({"_id": 1, "a": [1, 5]})", R"({"$inc": {"a.$": 1}})",
         R"({"_id": 1, "a": [1, 6]})"},
        {R"({"a.x": 2})", "{}", R"({"_id": 1, "a": [{"x": 1}, {"x": 2}]})",
         R"({"$set": {"a.$.y": 7}})", R"({"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 7}]})"},
        {R"({"$and": [{"_id": 1}, {"a": {"$elemMatch": {"x": 1, "y": 2}}}]})", "{}",
         R"({"_id": 1, "a": [{"x": 1}, {"x": 1, "y": 2}]})", R"({"$unset": {"a.$.y": ""}})",
         R"({"_id": 1, "a": [{"x": 1}, {"x": 1}]})"},
        {R"({"a": {"$elemMatch": {"$gt": 2, "$lt": 5}}})", "{}", R"({"_id": 1, "a": [9, 1, 3]})",
         R"({"$set": {"a.$": 0}})", R"({"_id": 1, "a": [9, 1, 0]})"},
        {R"({"o.a": {"$in": [5]}})", "{}", R"({"_id": 1, "o": {"a": [4, 5]}})",
         R"({"$set": {"o.a.$": 0}})", R"({"_id": 1, "o": {"a": [4, 0]}})"},
        {R"({"$or": [{"b": 1}, {"a": 3}]})", "{}", R"({"_id": 1, "a": [1, 3]})",
         R"({"$set": {"a.$": 0}})", R"({"_id": 1, "a": [1, 0]})"},
        {R"({"key": 3})", "{}", R"({"_id": 1, "key": [1, 2, 3, 0, 0, {}]})",
         R"({"$set": {"key.$": 1}, "$push": {"key.5.inner": 9}})",
         R"({"_id": 1, "key": [1, 2, 1, 0, 0, {"inner": [9]}]})"},
        {"{}", "{}", R"({"_id": 1, "a": [1, 2]})", R"({"$inc": {"a.$[]": 10}})",
         R"({"_id": 1, "a": [11, 12]})"},
        {"{}", "{}", R"({"_id": 1, "a": []})", R"({"$set": {"a.$[]": 10}})",
         R"({"_id": 1, "a": []})"},
        {"{}", "{}", R"({"_id": 1, "a": [{"b": [1]}, {"b": [2, 3]}]})",
         R"({"$mul": {"a.$[].b.$[]": 2}})", R"({"_id": 1, "a": [{"b": [2]}, {"b": [4, 6]}]})"},
        {"{}", R"({"f": [{"x": {"$gte": 2}}]})", R"({"_id": 1, "a": [1, 2, 3]})",
         R"({"$set": {"a.$[x]": 0}})", R"({"_id": 1, "a": [1, 0, 0]})"},
        {"{}", R"({"f": [{"x.k": 2, "x.l": {"$exists": false}}]})",
         R"({"_id": 1, "a": [{"k": 2}, {"k": 2, "l": 1}]})", R"({"$set": {"a.$[x].m": 0}})",
         R"({"_id": 1, "a": [{"k": 2, "m": 0}, {"k": 2, "l": 1}]})"},
        {"{}", R"({"f": [{"$or": [{"x.k": 1}, {"x.k": 2}]}, {"y": {"$lt": 5}}]})",
         R"({"_id": 1, "a": [{"k": 1, "v": [1, 9]}, {"k": 3, "v": [1]}]})",
         R"({"$set": {"a.$[x].v.$[y]": 0}})",
         R"({"_id": 1, "a": [{"k": 1, "v": [0, 9]}, {"k": 3, "v": [1]}]})"},
    };
    for (const PositionalCase& c : cases)
        EXPECT_EQ(updated_at(c), text(c.expected)) << c.update << " on " << c.document;
}

TEST(UpdatePositional, SaysWhatIsMissing) {
    const PositionalCase cases[] = {
        {R"({"_id": 1})", "{}", R"({"_id": 1, "a": [1]})", R"({"$set": {"a.$": 9}})",
         "error 2 The positional operator did not find the match needed from the query."},
        {R"({"a": {"$ne": 1}})", "{}", R"({"_id": 1, "a": [2]})", R"({"$set": {"a.$": 9}})",
         "error 2 The positional operator did not find"},
        {R"({"a": 1})", "{}", "{}", R"({"$set": {"$.a": 9}})", "error 2 Cannot have positional"},
        {R"({"a": 1})", "{}", "{}", R"({"$set": {"a.$.b.$": 9}})", "error 2 Too many positional"},
        {"{}", "{}", R"({"_id": 1, "a": 5})", R"({"$set": {"a.$[]": 9}})",
         "error 2 Cannot apply array updates to non-array element {a: 5}"},
        {"{}", "{}", R"({"_id": 1})", R"({"$set": {"a.$[]": 9}})",
         "error 2 The path 'a' must exist in the document in order to apply array updates."},
        {"{}", "{}", "{}", R"({"$set": {"a.$[x]": 9}})",
         "error 2 No array filter found for identifier 'x' in path 'a.$[x]'"},
        {"{}", R"({"f": [{"x": 1}]})", "{}", R"({"$set": {"a": 9}})",
         "error 9 The array filter for identifier 'x' was not used in the update"},
        {"{}", R"({"f": [{"x": 1}]})", "{}", R"({"a": 9})",
         "error 9 The array filter for identifier 'x' was not used in the update"},
        {"{}", R"({"f": [{"x": 1}, {"x.b": 2}]})", "{}", R"({"$set": {"a.$[x]": 9}})",
         "error 9 Found multiple array filters with the same top-level field name x"},
        {"{}", R"({"f": [{"x": 1, "y": 2}]})", "{}", R"({"$set": {"a.$[x]": 9}})",
         "error 9 Error parsing array filter :: caused by :: Expected a single top-level field "
         "name"},
        {"{}", R"({"f": [{}]})", "{}", R"({"$set": {"a.$[x]": 9}})",
         "error 9 Cannot use an expression without a top-level field name in arrayFilters"},
        {"{}", R"({"f": [{"X": 1}]})", "{}", R"({"$set": {"a.$[X]": 9}})",
         "error 2 Error parsing array filter :: caused by :: The top-level field name must be"},
        {"{}", R"({"f": [1]})", "{}", R"({"$set": {"a.$[x]": 9}})", "error 14"},
        {"{}", "{}", "{}", R"({"$set": {"a.$[]": 9}, "$inc": {"a.$[]": 9}})", "error 40"},
        {R"({"a": 1})", "{}", R"({"_id": 1, "a": [1]})", R"({"$set": {"a.$": 9, "a.0": 1}})",
         "error 40 Update created a conflict at 'a.0'"},
        {"{}", "{}", "{}", R"({"$rename": {"a.$[]": "b"}})",
         "error 2 The source field for $rename may not be dynamic"},
        {"{}", "{}", "{}", R"({"$rename": {"a": "b.$[]"}})",
         "error 2 The destination field for $rename may not be dynamic"},
    };
    for (const PositionalCase& c : cases)
        EXPECT_EQ(trimmed(updated_at(c), std::string_view(c.expected).size()), c.expected)
            << c.update << " on " << c.document;
}

std::string upserted(const char* query, const char* update) {
    auto parsed =
        Update::parse(from(update), {.array_filters = {}, .multi = false, .upsert = true});
    if (!parsed) return "error " + outcome_code(parsed);
    auto document = parsed->make_upsert(Matcher::parse(from(query)).value_or_throw(), kMoment);
    return document ? bson::to_json(document->view()) : "error " + outcome_code(document);
}

TEST(Upsert, StartsFromTheEqualitiesOfTheQuery) {
    EXPECT_EQ(upserted(R"({"_id": 1, "a": 5})", R"({"$set": {"b": 2}})"),
              text(R"({"_id": 1, "a": 5, "b": 2})"));
    EXPECT_EQ(upserted(R"({"a": 5, "_id": 1})", R"({"$setOnInsert": {"b": 2}})"),
              text(R"({"_id": 1, "a": 5, "b": 2})"));
    EXPECT_EQ(upserted(R"({"_id": 1, "a": {"$gt": 5}})", R"({"$inc": {"n": 1}})"),
              text(R"({"_id": 1, "n": 1})"));
    EXPECT_EQ(
        upserted(R"({"_id": 1, "$and": [{"a": 1}, {"b.c": {"$eq": 2}}]})", R"({"$set": {"z": 1}})"),
        text(R"({"_id": 1, "a": 1, "b": {"c": 2}, "z": 1})"));
    EXPECT_EQ(upserted(R"({"_id": 1, "$or": [{"a": 1}]})", R"({"$set": {"z": 1}})"),
              text(R"({"_id": 1, "a": 1, "z": 1})"));
    EXPECT_EQ(upserted(R"({"_id": 1, "$or": [{"a": 1}, {"a": 2}]})", R"({"$set": {"z": 1}})"),
              text(R"({"_id": 1, "z": 1})"));
    EXPECT_EQ(
        upserted(R"({"_id": 1, "a": {"$in": [3]}, "b": {"$in": [1, 2]}})", R"({"$set": {"z": 1}})"),
        text(R"({"_id": 1, "a": 3, "z": 1})"));
    EXPECT_EQ(upserted(R"({"_id": 1, "a": 1})", R"({"b": 2})"), text(R"({"_id": 1, "b": 2})"));
    EXPECT_EQ(upserted(R"({"a": 1})", R"({"b": 2, "_id": 7})"), text(R"({"_id": 7, "b": 2})"));
    EXPECT_EQ(upserted(R"({"a": 1})", R"({"$set": {"_id": 7}})"), text(R"({"_id": 7, "a": 1})"));
}

TEST(Upsert, RefusesContradictions) {
    EXPECT_EQ(upserted(R"({"_id": 1})", R"({"_id": 2})"), "error 66");
    EXPECT_EQ(upserted(R"({"_id": 1})", R"({"$set": {"_id": 2}})"), "error 66");
    EXPECT_EQ(upserted(R"({"$and": [{"a": 1}, {"a": 2}]})", R"({"$set": {"b": 2}})"), "error 54");
    EXPECT_EQ(upserted(R"({"a": 1, "a.b": 2})", R"({"$set": {"c": 2}})"), "error 54");
    EXPECT_EQ(upserted(R"({"x": 1})", R"({"$set": {"_id": [1]}})"), "error 53");
    EXPECT_EQ(upserted(R"({"x": 1})", R"({"_id": {"$a": 1}})"), "error 52");
}

TEST(Upsert, GeneratesAnIdAndPutsItFirst) {
    const auto update = Update::parse(from(R"({"$set": {"a": 1}})")).value_or_throw();
    const auto document = update.make_upsert(Matcher(), kMoment).value_or_throw();
    EXPECT_EQ(document.view().begin()->key, "_id");
    EXPECT_TRUE(document.find("_id").is(bson::Type::ObjectId));
}

TEST(EmptyTimestamp, IsFilledAtTheTopOnly) {
    const auto document =
        from(R"({"_id": {"$timestamp": {"t": 0, "i": 0}}, "a": {"$timestamp": {"t": 0, "i": 0}},
                                   "b": {"c": {"$timestamp": {"t": 0, "i": 0}}}, "d": {"$timestamp": {"t": 0, "i": 0}}})");
    ASSERT_TRUE(has_empty_timestamp(document));
    std::uint32_t next = 0;
    const auto filled = fill_empty_timestamps(document, [&] { return bson::Timestamp{9, ++next}; });
    EXPECT_EQ(
        text(filled.view()),
        text(R"({"_id": {"$timestamp": {"t": 0, "i": 0}}, "a": {"$timestamp": {"t": 9, "i": 1}},
                                            "b": {"c": {"$timestamp": {"t": 0, "i": 0}}}, "d": {"$timestamp": {"t": 9, "i": 2}}})"));
    EXPECT_FALSE(has_empty_timestamp(from(
        R"({"_id": {"$timestamp": {"t": 0, "i": 0}}, "b": {"$timestamp": {"t": 1, "i": 0}}})")));
}

TEST(UpdateLimits, ResultMayNotBeTooLargeOrTooDeep) {
    const std::string big(bson::kDocumentBytesMax, 'x');
    const auto grow =
        Update::parse(bson::make("$set", bson::make("b", std::string(32 * 1024, 'y'))))
            .value_or_throw();
    EXPECT_EQ(outcome_code(grow.apply(bson::make("_id", std::int32_t{1}, "a", big), kMoment)),
              "10334");
    bson::Document deep = bson::make("x", std::int32_t{1});
    for (int i = 0; i < 150; ++i) deep = bson::make("x", deep);
    std::string path = "p";
    for (int i = 0; i < 100; ++i) path += ".p";
    const auto nest = Update::parse(bson::make("$set", bson::make(path, deep))).value_or_throw();
    EXPECT_EQ(outcome_code(nest.apply(from("{\"_id\": 1}"), kMoment)), "15");
    for (int i = 0; i < 300; ++i) path += ".p";
    EXPECT_EQ(outcome_code(Update::parse(bson::make("$set", bson::make(path, std::int32_t{1})))),
              "15");
}

}  // namespace
}  // namespace angelia::engine::query
