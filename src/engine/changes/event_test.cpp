#include "engine/changes/event.h"

#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

namespace angelia::engine::changes {
namespace {

/// The event of one entry, with the parts that are the same for all left out.
std::string encoded(const OplogFields& fields, const EventShape& shape = {}) {
    const auto entry =
        OplogEntry::decode({1000, 1}, 0, OplogEntry::encode(fields)).value_or_throw();
    const bson::Document event = encode_event(entry, operation_of(entry), shape, test::kTestStore);
    bson::Builder rest;
    for (const bson::Element& field : event.view()) {
        if (field.key != "_id" && field.key != "clusterTime" && field.key != "wallTime")
            rest.add(field.key, field.value);
    }
    return bson::to_json(rest.take());
}

OplogFields fields_of(OpKind kind, const bson::Value& id, const bson::Document& payload) {
    OplogFields fields;
    fields.kind = kind;
    fields.db = "d";
    fields.collection = "c";
    fields.collection_id = 1;
    fields.uuid.fill(0xAB);
    fields.id = id.view();
    fields.payload = payload.view();
    return fields;
}

TEST(Event, BeginsWithTokenOperationAndTimes) {
    const bson::Value id = bson::value(std::int32_t{1});
    const bson::Document document = bson::make("_id", std::int32_t{1});
    OplogFields fields = fields_of(OpKind::Insert, id, document);
    fields.wall = bson::Date{1'700'000'000'123};
    const auto entry =
        OplogEntry::decode({1000, 1}, 4, OplogEntry::encode(fields)).value_or_throw();
    EXPECT_EQ(
        bson::to_json(encode_event(entry, Operation::Insert, {}, test::kTestStore),
                      bson::JsonMode::Canonical),
        R"({"_id":{"_data":"01000003E80000000180000000040000000102030405060708"},"operationType":"insert",)"
        R"("clusterTime":{"$timestamp":{"t":1000,"i":1}},"wallTime":{"$date":{"$numberLong":"1700000000123"}},)"
        R"("ns":{"db":"d","coll":"c"},"documentKey":{"_id":{"$numberInt":"1"}},"fullDocument":{"_id":{"$numberInt":"1"}}})");
}

TEST(Event, OfAnInsertHoldsTheDocument) {
    const bson::Value id = bson::value("k");
    const bson::Document document = bson::make("_id", "k", "a", std::int32_t{1});
    EXPECT_EQ(
        encoded(fields_of(OpKind::Insert, id, document)),
        R"({"operationType":"insert","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"fullDocument":{"_id":"k","a":1}})");
}

TEST(Event, OfATransactionNamesItsSessionAndNumber) {
    const bson::Value id = bson::value("k");
    const bson::Document document = bson::make("_id", "k");
    const bson::Document session = bson::make("id", "s");
    OplogFields fields = fields_of(OpKind::Insert, id, document);
    fields.lsid = session.view();
    fields.txn_number = 5;
    EXPECT_EQ(encoded(fields).find("lsid"), std::string::npos);  // a retryable write
    fields.in_transaction = true;
    EXPECT_EQ(
        encoded(fields),
        R"({"operationType":"insert","lsid":{"id":"s"},"txnNumber":5,"ns":{"db":"d","coll":"c"},)"
        R"("documentKey":{"_id":"k"},"fullDocument":{"_id":"k"}})");
}

TEST(Event, OfAReplacementHoldsTheNewDocument) {
    const bson::Value id = bson::value("k");
    const bson::Document document = bson::make("_id", "k", "b", std::int32_t{2});
    EXPECT_EQ(
        encoded(fields_of(OpKind::Replace, id, document)),
        R"({"operationType":"replace","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"fullDocument":{"_id":"k","b":2}})");
}

TEST(Event, OfAnUpdateDescribesTheChange) {
    const bson::Value id = bson::value("k");
    const bson::Document change =
        bson::make("updatedFields", bson::make("a.0", std::int32_t{2}), "removedFields",
                   bson::array("b", "c.d"), "truncatedArrays",
                   bson::array(bson::make("field", "e", "newSize", std::int32_t{3})));
    EXPECT_EQ(
        encoded(fields_of(OpKind::Update, id, change)),
        R"({"operationType":"update","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"updateDescription":)"
        R"({"updatedFields":{"a.0":2},"removedFields":["b","c.d"],"truncatedArrays":[{"field":"e","newSize":3}]}})");
}

TEST(Event, OfAnUpdateAlwaysHasAllThreeParts) {
    const bson::Value id = bson::value("k");
    const bson::Document change = bson::make("removedFields", bson::array("b"));
    EXPECT_EQ(
        encoded(fields_of(OpKind::Update, id, change)),
        R"({"operationType":"update","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"updateDescription":)"
        R"({"updatedFields":{},"removedFields":["b"],"truncatedArrays":[]}})");
}

TEST(Event, OfADeleteHoldsOnlyTheKey) {
    const bson::Value id = bson::value("k");
    EXPECT_EQ(encoded(fields_of(OpKind::Delete, id, {})),
              R"({"operationType":"delete","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"}})");
}

TEST(Event, OfADropNamesTheCollection) {
    const bson::Document command = bson::make("drop", "c");
    EXPECT_EQ(encoded(fields_of(OpKind::Command, {}, command)),
              R"({"operationType":"drop","ns":{"db":"d","coll":"c"}})");
}

TEST(Event, OfADroppedDatabaseNamesOnlyTheDatabase) {
    const bson::Document command = bson::make("dropDatabase", std::int32_t{1});
    OplogFields fields = fields_of(OpKind::Command, {}, command);
    fields.collection = {};
    EXPECT_EQ(encoded(fields), R"({"operationType":"dropDatabase","ns":{"db":"d"}})");
}

TEST(Event, ShowsImagesThatAreNotStoredAsNull) {
    const bson::Value id = bson::value("k");
    const bson::Document change = bson::make("updatedFields", bson::make("a", std::int32_t{2}));
    EXPECT_EQ(
        encoded(fields_of(OpKind::Update, id, change), {false, true, true}),
        R"({"operationType":"update","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"updateDescription":)"
        R"({"updatedFields":{"a":2},"removedFields":[],"truncatedArrays":[]},"fullDocument":null,"fullDocumentBeforeChange":null})");
    EXPECT_EQ(
        encoded(fields_of(OpKind::Delete, id, {}), {false, true, true}),
        R"({"operationType":"delete","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"fullDocumentBeforeChange":null})");
    const bson::Document document = bson::make("_id", "k");
    EXPECT_EQ(
        encoded(fields_of(OpKind::Insert, id, document), {false, true, true}),
        R"({"operationType":"insert","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"fullDocument":{"_id":"k"}})");
}

TEST(Event, WhenExpandedShowsCollectionAndDescription) {
    const bson::Document command =
        bson::make("createIndexes", "c", "indexes", bson::array(bson::make("name", "a_1")));
    EXPECT_EQ(
        encoded(fields_of(OpKind::Command, {}, command), {true, false, false}),
        R"({"operationType":"createIndexes","collectionUUID":{"$binary":{"base64":"q6urq6urq6urq6urq6urqw==","subType":"04"}},)"
        R"("ns":{"db":"d","coll":"c"},"operationDescription":{"indexes":[{"name":"a_1"}]}})");
    const bson::Document create =
        bson::make("create", "c", "idIndex", bson::make("v", std::int32_t{2}));
    EXPECT_EQ(
        encoded(fields_of(OpKind::Command, {}, create), {true, false, false}),
        R"({"operationType":"create","collectionUUID":{"$binary":{"base64":"q6urq6urq6urq6urq6urqw==","subType":"04"}},)"
        R"("ns":{"db":"d","coll":"c"},"operationDescription":{"idIndex":{"v":2}}})");
}

TEST(Event, ShowsTheImagesThatAreKept) {
    const bson::Value id = bson::value("k");
    const bson::Document change = bson::make("updatedFields", bson::make("a", std::int32_t{2}));
    const bson::Document before = bson::make("_id", "k", "a", std::int32_t{1});
    const bson::Document after = bson::make("_id", "k", "a", std::int32_t{2});
    OplogFields fields = fields_of(OpKind::Update, id, change);
    fields.before_image = before.view();
    fields.after_image = after.view();
    EXPECT_EQ(
        encoded(fields, {false, true, true}),
        R"({"operationType":"update","ns":{"db":"d","coll":"c"},"documentKey":{"_id":"k"},"updateDescription":)"
        R"({"updatedFields":{"a":2},"removedFields":[],"truncatedArrays":[]},"fullDocument":{"_id":"k","a":2},)"
        R"("fullDocumentBeforeChange":{"_id":"k","a":1}})");
    EXPECT_EQ(encoded(fields).find("fullDocument"), std::string::npos);
}

TEST(Event, WhenExpandedAlwaysHasDisambiguatedPaths) {
    const bson::Value id = bson::value("k");
    const bson::Document plain = bson::make("updatedFields", bson::make("a", std::int32_t{2}));
    EXPECT_NE(encoded(fields_of(OpKind::Update, id, plain), {true, false, false})
                  .find(R"("disambiguatedPaths":{}})"),
              std::string::npos);
    const bson::Document numeric =
        bson::make("updatedFields", bson::make("a.0", std::int32_t{2}), "disambiguatedPaths",
                   bson::make("a.0", bson::array("a", "0")));
    EXPECT_NE(encoded(fields_of(OpKind::Update, id, numeric), {true, false, false})
                  .find(R"("disambiguatedPaths":{"a.0":["a","0"]}})"),
              std::string::npos);
    EXPECT_EQ(encoded(fields_of(OpKind::Update, id, numeric)).find("disambiguatedPaths"),
              std::string::npos);
}

TEST(Event, OfARenameNamesBothEnds) {
    const bson::Document command =
        bson::make("renameCollection", "c", "to", bson::make("db", "d", "coll", "e"), "dropTarget",
                   std::int32_t{1});
    const auto fields = fields_of(OpKind::Command, {}, command);
    EXPECT_EQ(
        encoded(fields),
        R"({"operationType":"rename","ns":{"db":"d","coll":"c"},"to":{"db":"d","coll":"e"}})");
    EXPECT_EQ(
        encoded(fields, {true, false, false}),
        R"({"operationType":"rename","collectionUUID":{"$binary":{"base64":"q6urq6urq6urq6urq6urqw==","subType":"04"}},)"
        R"("ns":{"db":"d","coll":"c"},"to":{"db":"d","coll":"e"},)"
        R"("operationDescription":{"to":{"db":"d","coll":"e"},"dropTarget":1}})");
}

TEST(Event, OfAModificationHoldsTheStateBefore) {
    const bson::Document command =
        bson::make("collMod", "c", "change",
                   bson::make("index", bson::make("name", "a_1", "hidden", true)), "before",
                   bson::make("collectionOptions", bson::Document(), "indexOptions",
                              bson::make("hidden", false)));
    EXPECT_EQ(
        encoded(fields_of(OpKind::Command, {}, command), {true, false, false}),
        R"({"operationType":"modify","collectionUUID":{"$binary":{"base64":"q6urq6urq6urq6urq6urqw==","subType":"04"}},)"
        R"("ns":{"db":"d","coll":"c"},"operationDescription":{"index":{"name":"a_1","hidden":true}},)"
        R"("stateBeforeChange":{"collectionOptions":{},"indexOptions":{"hidden":false}}})");
}

TEST(Event, IsNotMadeOfNoopsAndUnknownCommands) {
    const bson::Document unknown = bson::make("shardCollection", "c");
    const auto command =
        OplogEntry::decode({1, 1}, 0, OplogEntry::encode(fields_of(OpKind::Command, {}, unknown)))
            .value_or_throw();
    EXPECT_EQ(operation_of(command), Operation::None);
    const auto noop =
        OplogEntry::decode({1, 1}, 0, OplogEntry::encode(fields_of(OpKind::Noop, {}, {})))
            .value_or_throw();
    EXPECT_EQ(operation_of(noop), Operation::None);
}

}  // namespace
}  // namespace angelia::engine::changes
