#include "engine/command/test_commands.h"

namespace angelia::engine::command::test {
namespace {

class Writes : public CommandTest {
  protected:
    std::string all() {
        const auto answer = run(R"({"find": "c", "sort": {"_id": 1}})");
        return answer.at("cursor.firstBatch");
    }
    static std::string retryable(std::string_view command, int number) {
        return std::string(command) +
               R"(, "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}}, "txnNumber": {"$numberLong": ")" +
               std::to_string(number) + R"("}})";
    }
};

TEST_F(Writes, InsertCountsAndAddsIds) {
    const auto answer = run(R"({"insert": "c", "documents": [{"_id": 1}, {"a": 2}]})");
    EXPECT_EQ(answer.result(), R"({"n":2})");
    EXPECT_TRUE(answer.body.view()["n"].is(bson::Type::Int32));
    EXPECT_EQ(result(R"({"count": "c", "query": {"_id": {"$type": "objectId"}}})"), R"({"n":1})");
}

TEST_F(Writes, InsertStopsAtTheFirstErrorUnlessUnordered) {
    const auto ordered =
        run(R"({"insert": "c", "documents": [{"_id": 1}, {"_id": 1}, {"_id": 2}]})");
    EXPECT_EQ(ordered.at("n"), "1");
    EXPECT_EQ(ordered.at("writeErrors.0.index"), "1");
    EXPECT_EQ(ordered.at("writeErrors.0.code"), "11000");
    EXPECT_EQ(ordered.at("writeErrors.0.keyPattern"), R"({"_id":1})");
    EXPECT_EQ(ordered.at("writeErrors.0.keyValue"), R"({"_id":1})");
    EXPECT_EQ(ordered.at("writeErrors.1"), "missing");
    EXPECT_TRUE(ordered.ok());
    const auto unordered = run(
        R"({"insert": "c", "ordered": false, "documents": [{"_id": 1}, {"_id": 2}, {"_id": 1}]})");
    EXPECT_EQ(unordered.at("n"), "1");
    EXPECT_EQ(unordered.at("writeErrors.0.index"), "0");
    EXPECT_EQ(unordered.at("writeErrors.1.index"), "2");
    EXPECT_EQ(all(), R"([{"_id":1},{"_id":2}])");
}

TEST_F(Writes, InsertRefusesTooFewTooManyAndTooLarge) {
    EXPECT_EQ(code(R"({"insert": "c", "documents": []})"), 16);
    bson::Builder many;
    many.add("insert", "c").open_array("documents");
    for (int i = 0; i < 100'001; ++i) many.push(bson::Document());
    many.close();
    EXPECT_EQ(run(many.take()).code(), 16);
    const auto large =
        bson::make("insert", "c", "documents",
                   bson::array(bson::make("s", std::string(bson::kDocumentBytesMax, 'x'))));
    EXPECT_EQ(run(large).at("writeErrors.0.code"), "10334");
    EXPECT_EQ(result(R"({"count": "c"})"), R"({"n":0})");
    EXPECT_EQ(code(R"({"insert": "", "documents": [{}]})"), 73);
    EXPECT_EQ(code(R"({"insert": "c", "documents": [3]})"), 14);
}

TEST_F(Writes, UpdateReportsMatchedModifiedAndUpserted) {
    run(R"({"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]})");
    EXPECT_EQ(
        result(
            R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}, {"q": {}, "u": {"$inc": {"a": 1}}, "multi": true},
                         {"q": {"_id": 3}, "u": {"$set": {"b": 1}}, "upsert": true}]})"),
        R"({"n":4,"nModified":2,"upserted":[{"index":2,"_id":3}]})");
    EXPECT_EQ(all(), R"([{"_id":1,"a":2},{"_id":2,"a":3},{"_id":3,"b":1}])");
}

TEST_F(Writes, AStatementThatCannotBeParsedIsItsOwnError) {
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    const auto ordered = run(
        R"({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}, {"q": {}, "u": {"$fly": {"a": 1}}}, {"q": {}, "u": {"$set": {"b": 1}}}]})");
    EXPECT_EQ(ordered.at("n"), "1");
    EXPECT_EQ(ordered.at("writeErrors.0.index"), "1");
    EXPECT_EQ(ordered.at("writeErrors.0.code"), "9");
    EXPECT_EQ(all(), R"([{"_id":1,"a":1}])");
    const auto unordered = run(
        R"({"update": "c", "ordered": false, "updates": [{"q": {"$fly": 1}, "u": {"$set": {"a": 2}}}, {"q": {}, "u": {"$set": {"b": 1}}}]})");
    EXPECT_EQ(unordered.at("writeErrors.0.index"), "0");
    EXPECT_EQ(unordered.at("nModified"), "1");
    EXPECT_EQ(all(), R"([{"_id":1,"a":1,"b":1}])");
}

TEST_F(Writes, UpdateRefusesUnknownAndUnsupportedOptions) {
    EXPECT_EQ(code(R"({"update": "c", "updates": [{"q": {}, "u": {}, "wings": 1}]})"), 40415);
    EXPECT_EQ(code(R"({"update": "c", "updates": [{"u": {}}]})"), 40414);
    EXPECT_EQ(code(R"({"update": "c", "updates": [{"q": {}, "u": 3}]})"), 14);
    EXPECT_EQ(
        code(R"({"update": "c", "updates": [{"q": {}, "u": {}, "collation": {"locale": "en"}}]})"),
        238);
    EXPECT_EQ(
        code(
            R"({"update": "c", "updates": [{"q": {}, "u": {}, "collation": {"locale": "simple"}}]})"),
        0);
}

TEST_F(Writes, DeleteTakesOneOrAll) {
    run(R"({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]})");
    EXPECT_EQ(result(R"({"delete": "c", "deletes": [{"q": {}, "limit": 1}]})"), R"({"n":1})");
    EXPECT_EQ(result(R"({"delete": "c", "deletes": [{"q": {}, "limit": 0}]})"), R"({"n":2})");
    EXPECT_EQ(code(R"({"delete": "c", "deletes": [{"q": {}, "limit": 2}]})"), 9);
    EXPECT_EQ(code(R"({"delete": "c", "deletes": [{"q": {}}]})"), 40414);
}

TEST_F(Writes, FindAndModifyShapes) {
    run(R"({"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 5}]})");
    EXPECT_EQ(
        result(
            R"({"findAndModify": "c", "query": {}, "sort": {"a": -1}, "update": {"$inc": {"a": 1}}})"),
        R"({"lastErrorObject":{"n":1,"updatedExisting":true},"value":{"_id":2,"a":5}})");
    EXPECT_EQ(
        result(
            R"({"findandmodify": "c", "query": {"_id": 2}, "update": {"$inc": {"a": 1}}, "new": true, "fields": {"a": 1, "_id": 0}})"),
        R"({"lastErrorObject":{"n":1,"updatedExisting":true},"value":{"a":7}})");
    EXPECT_EQ(
        result(
            R"({"findAndModify": "c", "query": {"_id": 9}, "update": {"$set": {"a": 1}}, "upsert": true})"),
        R"({"lastErrorObject":{"n":1,"updatedExisting":false,"upserted":9},"value":null})");
    EXPECT_EQ(result(R"({"findAndModify": "c", "query": {"_id": 9}, "remove": true})"),
              R"({"lastErrorObject":{"n":1},"value":{"_id":9,"a":1}})");
    EXPECT_EQ(result(R"({"findAndModify": "c", "query": {"_id": 9}, "remove": true})"),
              R"({"lastErrorObject":{"n":0},"value":null})");
}

TEST_F(Writes, FindAndModifyRefusesContradictionsAndPrefixesItsErrors) {
    EXPECT_EQ(code(R"({"findAndModify": "c", "query": {}})"), 9);
    EXPECT_EQ(code(R"({"findAndModify": "c", "remove": true, "update": {}})"), 9);
    EXPECT_EQ(code(R"({"findAndModify": "c", "remove": true, "new": true})"), 9);
    run(R"({"insert": "c", "documents": [{"_id": 1, "u": 1}, {"_id": 2, "u": 2}]})");
    run(R"({"createIndexes": "c", "indexes": [{"key": {"u": 1}, "name": "u_1", "unique": true}]})");
    const auto answer =
        run(R"({"findAndModify": "c", "query": {"_id": 2}, "update": {"$set": {"u": 1}}})");
    EXPECT_EQ(answer.code(), 11000);
    EXPECT_EQ(answer.message().rfind(
                  "Plan executor error during findAndModify :: caused by :: E11000", 0),
              0u)
        << answer.message();
    EXPECT_EQ(answer.at("keyValue"), R"({"u":1})");
}

TEST_F(Writes, ARetriedWriteIsDoneOnceAndSaysSo) {
    const auto insert = retryable(R"({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}])", 1);
    EXPECT_EQ(result(insert), R"({"n":2})");
    EXPECT_EQ(result(insert), R"({"n":2,"retriedStmtIds":[0,1]})");
    const auto increment =
        retryable(R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}])", 2);
    EXPECT_EQ(result(increment), R"({"n":1,"nModified":1})");
    EXPECT_EQ(result(increment), R"({"n":1,"nModified":1,"retriedStmtIds":[0]})");
    const auto modify = retryable(
        R"({"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"a": 1}}, "new": true)",
        3);
    EXPECT_EQ(result(modify),
              R"({"lastErrorObject":{"n":1,"updatedExisting":true},"value":{"_id":1,"a":2}})");
    EXPECT_EQ(
        result(modify),
        R"({"lastErrorObject":{"n":1,"updatedExisting":true},"value":{"_id":1,"a":2},"retriedStmtId":0})");
    EXPECT_EQ(code(insert), 225);
    EXPECT_EQ(all(), R"([{"_id":1,"a":2},{"_id":2}])");
}

TEST_F(Writes, RetryingOnlyWorksForSingleDocuments) {
    EXPECT_EQ(
        code(retryable(
            R"({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": true}])",
            1)),
        72);
    EXPECT_EQ(code(retryable(R"({"delete": "c", "deletes": [{"q": {}, "limit": 0}])", 1)), 72);
    EXPECT_EQ(code(R"({"insert": "c", "documents": [{}], "txnNumber": {"$numberLong": "1"}})"), 72);
    EXPECT_EQ(code(R"({"insert": "c", "documents": [{}], "txnNumber": {"$numberLong": "-1"},
                       "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}}})"),
              72);
    EXPECT_EQ(code(retryable(R"({"find": "c")", 1)), 50768);
}

class WithoutTestCommands : public CommandTest {
  protected:
    WithoutTestCommands() : CommandTest(testing_support::memory_options()) {}
};

TEST_F(WithoutTestCommands, FailPointsDoNotExist) {
    EXPECT_EQ(code(R"({"configureFailPoint": "failCommand", "mode": "off"})", "admin"), 59);
    EXPECT_EQ(run(R"({"getCmdLineOpts": 1})", "admin").at("argv"), R"(["angelia","serve"])");
}

}  // namespace
}  // namespace angelia::engine::command::test
