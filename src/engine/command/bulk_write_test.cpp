#include "engine/command/test_commands.h"

namespace angelia::engine::command::test {
namespace {

class BulkWrite : public CommandTest {
  protected:
    Answer bulk(std::string_view ops, std::string_view rest = "",
                std::string_view namespaces = R"([{"ns": "app.a"}, {"ns": "other.b"}])") {
        return run(R"({"bulkWrite": 1, "ops": )" + std::string(ops) + R"(, "nsInfo": )" +
                       std::string(namespaces) + std::string(rest) + "}",
                   "admin");
    }
    std::string all(std::string_view collection, std::string_view database) {
        return run(R"({"find": ")" + std::string(collection) + R"(", "sort": {"_id": 1}})",
                   database)
            .at("cursor.firstBatch");
    }
    static std::string counts(const Answer& answer) {
        std::string row;
        for (const char* name :
             {"nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted"})
            row += (row.empty() ? "" : " ") + answer.at(name);
        return row;
    }
};

constexpr std::string_view kMixed = R"([
    {"insert": 0, "document": {"_id": 1}}, {"insert": 1, "document": {"_id": 2, "n": 1}},
    {"update": 1, "filter": {"_id": 2}, "updateMods": {"$inc": {"n": 1}}},
    {"update": 0, "filter": {"_id": 7}, "updateMods": {"$set": {"x": 1}}, "upsert": true},
    {"update": 0, "filter": {}, "updateMods": {"$set": {"y": 1}}, "multi": true},
    {"delete": 0, "filter": {"_id": 1}}, {"delete": 1, "filter": {"_id": 9}}])";

TEST_F(BulkWrite, RunsItsOpsInOrderOverSeveralCollections) {
    const auto answer = bulk(kMixed);
    EXPECT_EQ(answer.at("cursor.id"), "0");
    EXPECT_EQ(answer.at("cursor.ns"), R"("admin.$cmd.bulkWrite")");
    EXPECT_EQ(answer.at("cursor.firstBatch"),
              R"([{"ok":1.0,"idx":0,"n":1},{"ok":1.0,"idx":1,"n":1},)"
              R"({"ok":1.0,"idx":2,"n":1,"nModified":1},)"
              R"({"ok":1.0,"idx":3,"n":1,"nModified":0,"upserted":{"_id":7}},)"
              R"({"ok":1.0,"idx":4,"n":2,"nModified":2},)"
              R"({"ok":1.0,"idx":5,"n":1},{"ok":1.0,"idx":6,"n":0}])");
    EXPECT_EQ(counts(answer), "0 2 3 3 1 1");
    EXPECT_EQ(all("a", "app"), R"([{"_id":7,"x":1,"y":1}])");
    EXPECT_EQ(all("b", "other"), R"([{"_id":2,"n":2}])");
    EXPECT_EQ(run(R"({"serverStatus": 1})").at("opcounters.insert"), "2");
}

TEST_F(BulkWrite, ListsOnlyErrorsWhenAsked) {
    const auto fine = bulk(kMixed, R"(, "errorsOnly": true)");
    EXPECT_EQ(fine.at("cursor.firstBatch"), "[]");
    EXPECT_EQ(counts(fine), "0 2 3 3 1 1");
    const auto failed = bulk(R"([{"insert": 0, "document": {"_id": 3}},
        {"insert": 0, "document": {"_id": 3}}, {"insert": 0, "document": {"_id": 4}}])",
                             R"(, "errorsOnly": true, "ordered": false)");
    EXPECT_EQ(counts(failed), "1 2 0 0 0 0");
    EXPECT_EQ(failed.at("cursor.firstBatch.0.idx"), "1");
    EXPECT_EQ(failed.at("cursor.firstBatch.1"), "missing");
}

TEST_F(BulkWrite, StopsAtTheFirstErrorUnlessUnordered) {
    constexpr std::string_view kOps = R"([{"insert": 0, "document": {"_id": 1}},
        {"update": 0, "filter": {"_id": 1}, "updateMods": {"$fly": {"a": 1}}},
        {"insert": 0, "document": {"_id": 1}}, {"insert": 0, "document": {"_id": 2}}])";
    const auto ordered = bulk(kOps);
    EXPECT_EQ(counts(ordered), "1 1 0 0 0 0");
    EXPECT_EQ(ordered.at("cursor.firstBatch.1.code"), "9");
    EXPECT_EQ(ordered.at("cursor.firstBatch.1.ok"), "0.0");
    EXPECT_EQ(ordered.at("cursor.firstBatch.1.nModified"), "0");
    EXPECT_EQ(ordered.at("cursor.firstBatch.2"), "missing");
    EXPECT_EQ(all("a", "app"), R"([{"_id":1}])");
    const auto unordered = bulk(kOps, R"(, "ordered": false)");
    EXPECT_EQ(counts(unordered), "3 1 0 0 0 0");
    EXPECT_EQ(unordered.at("cursor.firstBatch.0.code"), "11000");
    EXPECT_EQ(unordered.at("cursor.firstBatch.0.codeName"), R"("DuplicateKey")");
    EXPECT_EQ(unordered.at("cursor.firstBatch.0.keyPattern"), R"({"_id":1})");
    EXPECT_EQ(unordered.at("cursor.firstBatch.0.keyValue"), R"({"_id":1})");
    EXPECT_EQ(unordered.at("cursor.firstBatch.0.n"), "0");
    EXPECT_EQ(all("a", "app"), R"([{"_id":1},{"_id":2}])");
}

TEST_F(BulkWrite, PicksTheFirstInSortOrder) {
    bulk(
        R"([{"insert": 0, "document": {"_id": 1, "r": 1}}, {"insert": 0, "document": {"_id": 2, "r": 2}}])");
    bulk(R"([{"update": 0, "filter": {}, "updateMods": {"$set": {"top": 1}}, "sort": {"r": -1}}])");
    EXPECT_EQ(all("a", "app"), R"([{"_id":1,"r":1},{"_id":2,"r":2,"top":1}])");
}

TEST_F(BulkWrite, HandsOutLongResultsThroughGetMore) {
    const auto first = bulk(kMixed, R"(, "cursor": {"batchSize": 3})");
    EXPECT_EQ(first.at("cursor.firstBatch.2.idx"), "2");
    EXPECT_EQ(first.at("cursor.firstBatch.3"), "missing");
    EXPECT_EQ(counts(first), "0 2 3 3 1 1") << "counts are of the whole command";
    const auto id = first.body.view().find_path("cursor.id").as_int64();
    const auto more = [this, id](std::string_view collection) {
        return run(
            bson::make("getMore", id, "collection", collection, "batchSize", std::int32_t{3}),
            "admin");
    };
    EXPECT_EQ(more("a").code(), 13);
    const auto second = more("$cmd.bulkWrite");
    EXPECT_EQ(second.at("cursor.nextBatch.0.idx"), "3");
    EXPECT_EQ(second.at("cursor.nextBatch.2.idx"), "5");
    EXPECT_EQ(second.at("cursor.ns"), R"("admin.$cmd.bulkWrite")");
    const auto last = more("$cmd.bulkWrite");
    EXPECT_EQ(last.at("cursor.nextBatch"), R"([{"ok":1.0,"idx":6,"n":0}])");
    EXPECT_EQ(last.at("cursor.id"), "0");
    EXPECT_EQ(more("$cmd.bulkWrite").code(), 43);
    EXPECT_EQ(
        bulk(R"([{"delete": 0, "filter": {}, "multi": true}])", R"(, "cursor": {"batchSize": 0})")
            .at("cursor.firstBatch"),
        "[]");
}

TEST_F(BulkWrite, IsRetriedStatementByStatement) {
    constexpr std::string_view kSession =
        R"(, "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}}, "txnNumber": {"$numberLong": "1"})";
    constexpr std::string_view kOps = R"([{"insert": 0, "document": {"_id": 1, "n": 0}},
        {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"n": 1}}},
        {"delete": 1, "filter": {"_id": 5}}])";
    const auto first = bulk(kOps, kSession);
    EXPECT_EQ(first.at("retriedStmtIds"), "missing");
    const auto again = bulk(kOps, kSession);
    EXPECT_EQ(again.at("retriedStmtIds"), "[0,1]") << "the delete changed nothing";
    EXPECT_EQ(counts(again), counts(first));
    EXPECT_EQ(all("a", "app"), R"([{"_id":1,"n":1}])");
    for (
        const char* multi :
        {R"([{"delete": 0, "filter": {}, "multi": true}])",
         R"([{"insert": 0, "document": {}}, {"update": 0, "filter": {}, "updateMods": {"$set": {"a": 1}}, "multi": true}])"})
        EXPECT_EQ(
            bulk(
                multi,
                R"(, "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}}, "txnNumber": {"$numberLong": "2"})")
                .code(),
            72);
    EXPECT_EQ(all("a", "app"), R"([{"_id":1,"n":1}])");
}

TEST_F(BulkWrite, MeetsFailPointsAndWriteConcerns) {
    run(R"({"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["bulkWrite"], "errorCode": 91}})",
        "admin");
    EXPECT_EQ(bulk(kMixed).code(), 91);
    EXPECT_EQ(all("a", "app"), "[]");
    const auto answer = bulk(kMixed, R"(, "writeConcern": {"w": 2})");
    EXPECT_EQ(answer.at("writeConcernError.code"), "100");
    EXPECT_EQ(answer.at("nInserted"), "2");
}

TEST_F(BulkWrite, RefusesMalformedCommandsWithoutWriting) {
    struct Bad {
        const char* ops;
        int code;
    };
    for (
        const Bad& bad : std::initializer_list<Bad>{
            {R"([])", 16},
            {R"([3])", 14},
            {R"([{}])", 9},
            {R"([{"replace": 0}])", 9},
            {R"([{"document": {}, "insert": 0}])", 9},
            {R"([{"insert": 2, "document": {}}])", 2},
            {R"([{"insert": -1, "document": {}}])", 2},
            {R"([{"insert": "a", "document": {}}])", 14},
            {R"([{"insert": 0}])", 40414},
            {R"([{"insert": 0, "document": 3}])", 14},
            {R"([{"insert": 0, "document": {}, "wings": 1}])", 40415},
            {R"([{"update": 0, "updateMods": {}}])", 40414},
            {R"([{"update": 0, "filter": {}}])", 40414},
            {R"([{"update": 0, "filter": {}, "updateMods": 3}])", 14},
            {R"([{"update": 0, "filter": {}, "updateMods": {}, "multi": "x"}])", 14},
            {R"([{"update": 0, "filter": {}, "updateMods": {"$set": {"a": 1}}, "multi": true, "sort": {"a": 1}}])",
             9},
            {R"([{"update": 0, "filter": {}, "updateMods": {}, "constants": {"a": 1}}])", 238},
            {R"([{"update": 0, "filter": {}, "updateMods": {}, "collation": {"locale": "en"}}])",
             238},
            {R"([{"delete": 0}])", 40414},
            {R"([{"delete": 0, "filter": {}, "limit": 1}])", 40415}}) {
        const std::string ops = bad.ops;
        const std::string behind_an_insert =
            ops.size() > 2 ? R"([{"insert": 0, "document": {"_id": 1}}, )" + ops.substr(1) : ops;
        EXPECT_EQ(bulk(behind_an_insert).code(), bad.code) << bad.ops;
    }
    constexpr std::string_view kFine = R"([{"insert": 0, "document": {"_id": 1}}])";
    EXPECT_EQ(bulk(kFine, "", "[]").code(), 16);
    EXPECT_EQ(bulk(kFine, "", R"([{"ns": "app"}])").code(), 73);
    EXPECT_EQ(bulk(kFine, "", R"([{"ns": "app."}])").code(), 73);
    EXPECT_EQ(bulk(kFine, "", R"([{"ns": 3}])").code(), 14);
    EXPECT_EQ(bulk(kFine, "", R"([{}])").code(), 40414);
    EXPECT_EQ(bulk(kFine, "", R"([{"ns": "app.a", "wings": 1}])").code(), 40415);
    EXPECT_EQ(bulk(kFine, R"(, "let": {"a": 1})").code(), 238);
    EXPECT_EQ(bulk(kFine, R"(, "cursor": {"batchSize": -1})").code(), 51024);
    EXPECT_EQ(bulk(kFine, R"(, "cursor": {"wings": 1})").code(), 40415);
    EXPECT_EQ(bulk(kFine, R"(, "wings": 1)").code(), 40415);
    EXPECT_EQ(code(R"({"bulkWrite": 1, "nsInfo": [{"ns": "app.a"}]})", "admin"), 40414);
    EXPECT_EQ(code(R"({"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}]})", "admin"), 40414);
    EXPECT_EQ(code(R"({"bulkWrite": 2, "ops": [], "nsInfo": []})", "admin"), 9);
    EXPECT_EQ(code(R"({"bulkWrite": 1, "ops": [], "nsInfo": []})", "app"), 13);
    EXPECT_EQ(all("a", "app"), "[]");
}

}  // namespace
}  // namespace angelia::engine::command::test
