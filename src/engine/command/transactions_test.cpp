// Transactions as a driver speaks them (contract 6.2 to 6.4): state machine, isolation, conflicts,
// labels.
#include "engine/command/test_commands.h"

#include <fmt/format.h>

namespace angelia::engine::command::test {
namespace {

constexpr std::string_view kSessionA = "11111111-1111-4111-8111-111111111111";
constexpr std::string_view kSessionB = "22222222-2222-4222-8222-222222222222";

class Transactions : public CommandTest {
  protected:
    /// One statement: `body` without its closing brace is completed with session and number.
    Answer say(std::string_view session, int number, std::string body, bool start = false,
               std::string_view database = "app") {
        return run(with_transaction(session, number, std::move(body), start), database);
    }
    static std::string with_transaction(std::string_view session, int number, std::string body,
                                        bool start) {
        body.pop_back();
        return fmt::format(
            R"({}, "lsid": {{"id": {{"$uuid": "{}"}}}}, "txnNumber": {{"$numberLong": "{}"}}, "autocommit": false{}}})",
            body, session, number, start ? R"(, "startTransaction": true)" : "");
    }
    Answer commit(std::string_view session, int number) {
        return say(session, number, R"({"commitTransaction": 1})", false, "admin");
    }
    Answer abort(std::string_view session, int number) {
        return say(session, number, R"({"abortTransaction": 1})", false, "admin");
    }
    std::string documents(std::string_view filter = "{}") {
        return run(fmt::format(R"({{"find": "c", "filter": {}, "sort": {{"_id": 1}}}})", filter))
            .at("cursor.firstBatch");
    }
    std::string documents_in(std::string_view session, int number, std::string_view filter = "{}") {
        return say(session, number,
                   fmt::format(R"({{"find": "c", "filter": {}, "sort": {{"_id": 1}}}})", filter))
            .at("cursor.firstBatch");
    }
    void fill() {
        ASSERT_TRUE(run(R"({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"},
                            {"key": {"u": 1}, "name": "u_1", "unique": true, "sparse": true}]})")
                        .ok());
        ASSERT_TRUE(run(R"({"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2},
                            {"_id": 3, "a": 3}]})")
                        .ok());
    }
};

TEST_F(Transactions, CommitShowsEverythingAtOnceAndAbortNothing) {
    fill();
    EXPECT_EQ(
        say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 4, "a": 4}]})", true).at("n"),
        "1");
    EXPECT_EQ(say(kSessionA, 1,
                  R"({"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"a": 10}}}]})")
                  .at("nModified"),
              "1");
    EXPECT_EQ(
        say(kSessionA, 1, R"({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]})").at("n"),
        "1");
    EXPECT_EQ(documents(), R"([{"_id":1,"a":1},{"_id":2,"a":2},{"_id":3,"a":3}])");
    EXPECT_EQ(documents_in(kSessionA, 1), R"([{"_id":1,"a":10},{"_id":3,"a":3},{"_id":4,"a":4}])");
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_EQ(documents(), R"([{"_id":1,"a":10},{"_id":3,"a":3},{"_id":4,"a":4}])");
    EXPECT_EQ(documents(R"({"a": {"$gte": 4}})"), R"([{"_id":1,"a":10},{"_id":4,"a":4}])");
    EXPECT_EQ(run(R"({"count": "c"})").at("n"), "3");
    EXPECT_EQ(run(R"({"validate": "c"})").at("valid"), "true");

    EXPECT_EQ(
        say(kSessionA, 2, R"({"delete": "c", "deletes": [{"q": {}, "limit": 0}]})", true).at("n"),
        "3");
    EXPECT_EQ(documents_in(kSessionA, 2), "[]");
    EXPECT_TRUE(abort(kSessionA, 2).ok());
    EXPECT_EQ(run(R"({"count": "c"})").at("n"), "3");
    EXPECT_EQ(run(R"({"validate": "c"})").at("valid"), "true");
}

TEST_F(Transactions, ReadsItsOwnWritesThroughIndexesAndSorts) {
    fill();
    say(kSessionA, 1,
        R"({"insert": "c", "documents": [{"_id": 9, "a": 0}, {"_id": 8, "a": [2, 7]}]})", true);
    say(kSessionA, 1,
        R"({"update": "c", "updates": [{"q": {"_id": 3}, "u": {"$set": {"a": 1.5}}}]})");
    const auto by_a =
        say(kSessionA, 1, R"({"find": "c", "filter": {"a": {"$lte": 2}}, "sort": {"a": 1},
                                            "projection": {"_id": 1}, "hint": "a_1"})");
    EXPECT_EQ(by_a.at("cursor.firstBatch"),
              R"([{"_id":9},{"_id":1},{"_id":3},{"_id":2},{"_id":8}])");
    EXPECT_EQ(documents_in(kSessionA, 1, R"({"a": 7})"), R"([{"_id":8,"a":[2,7]}])");
    const auto pipeline = say(
        kSessionA, 1,
        R"({"aggregate": "c", "pipeline": [{"$match": {"a": {"$gt": 1}}}, {"$count": "n"}], "cursor": {}})");
    EXPECT_EQ(pipeline.at("cursor.firstBatch"), R"([{"n":3}])");
    EXPECT_EQ(say(kSessionA, 1, R"({"distinct": "c", "key": "a"})").at("values"), "[1,2,1.5,0,7]");
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_EQ(documents(R"({"a": 7})"), R"([{"_id":8,"a":[2,7]}])");
    EXPECT_EQ(run(R"({"validate": "c"})").at("valid"), "true");
}

TEST_F(Transactions, SeesItsSnapshotWhateverOthersDo) {
    fill();
    EXPECT_EQ(
        say(kSessionA, 1, R"({"find": "c", "filter": {"_id": 1}})", true).at("cursor.firstBatch"),
        R"([{"_id":1,"a":1}])");
    run(R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 100}}}]})");
    run(R"({"insert": "c", "documents": [{"_id": 0, "a": 2}]})");
    run(R"({"delete": "c", "deletes": [{"q": {"_id": 3}, "limit": 1}]})");
    EXPECT_EQ(documents_in(kSessionA, 1), R"([{"_id":1,"a":1},{"_id":2,"a":2},{"_id":3,"a":3}])");
    EXPECT_EQ(documents_in(kSessionA, 1, R"({"a": {"$gte": 1, "$lte": 3}})"),
              R"([{"_id":1,"a":1},{"_id":2,"a":2},{"_id":3,"a":3}])");
    EXPECT_TRUE(commit(kSessionA, 1).ok());
}

TEST_F(Transactions, ConflictsAtOnceWithWhatChangedAfterItsSnapshot) {
    fill();
    say(kSessionA, 1, R"({"find": "c"})", true);
    run(R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}]})");
    const auto late =
        say(kSessionA, 1,
            R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}]})");
    EXPECT_EQ(late.code(), 112);
    EXPECT_EQ(late.at("codeName"), R"("WriteConflict")");
    EXPECT_EQ(late.at("errorLabels"), R"(["TransientTransactionError"])");
    const auto after = commit(kSessionA, 1);
    EXPECT_EQ(after.code(), 251);
    EXPECT_EQ(after.at("errorLabels"), R"(["TransientTransactionError"])");
    EXPECT_EQ(documents(R"({"_id": 1})"), R"([{"_id":1,"a":2}])");
}

TEST_F(Transactions, ConflictsAtOnceWithAnotherOpenTransaction) {
    fill();
    const std::string change =
        R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}]})";
    EXPECT_TRUE(say(kSessionA, 1, change, true).ok());
    EXPECT_EQ(say(kSessionB, 1, change, true).code(), 112);
    EXPECT_EQ(
        say(kSessionB, 2, R"({"insert": "c", "documents": [{"_id": 50, "u": 5}]})", true).at("n"),
        "1");
    EXPECT_EQ(say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 51, "u": 5}]})").code(),
              112);
    EXPECT_TRUE(commit(kSessionB, 2).ok());
    EXPECT_EQ(documents(R"({"_id": {"$in": [1, 50, 51]}})"),
              R"([{"_id":1,"a":1},{"_id":50,"u":5}])");
}

TEST_F(Transactions, TheSameIdInsertedAfterTheSnapshotConflicts) {
    fill();
    say(kSessionA, 1, R"({"find": "c"})", true);
    run(R"({"insert": "c", "documents": [{"_id": 7}]})");
    EXPECT_EQ(say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 7}]})").code(), 112);
}

TEST_F(Transactions, AnyErrorEndsItAndADuplicateIsNoTransientOne) {
    fill();
    EXPECT_TRUE(say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 4}]})", true).ok());
    const auto twice =
        say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 5}, {"_id": 4}, {"_id": 6}],
                                             "ordered": false})");
    EXPECT_TRUE(twice.ok());
    EXPECT_EQ(twice.at("writeErrors.0.code"), "11000");
    EXPECT_EQ(twice.at("writeErrors.0.index"), "1");
    EXPECT_EQ(twice.at("errorLabels"), "missing");
    EXPECT_EQ(say(kSessionA, 1, R"({"find": "c"})").code(), 251);
    EXPECT_EQ(abort(kSessionA, 1).code(), 251);
    EXPECT_EQ(run(R"({"count": "c"})").at("n"), "3");
}

TEST_F(Transactions, AWriteThatCannotBeReadEndsItToo) {
    fill();
    EXPECT_TRUE(say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 4}]})", true).ok());
    EXPECT_EQ(
        say(kSessionA, 1,
            R"({"update": "c", "updates": [{"q": {"_id": 4}, "u": {"$frobnicate": {"a": 1}}}]})")
            .at("writeErrors.0.code"),
        "9");
    EXPECT_EQ(commit(kSessionA, 1).code(), 251);
    EXPECT_TRUE(say(kSessionA, 2, R"({"insert": "c", "documents": [{"_id": 4}]})", true).ok());
    EXPECT_EQ(say(kSessionA, 2,
                  R"({"bulkWrite": 1, "nsInfo": [{"ns": "app.c"}],
                "ops": [{"update": 0, "filter": {"_id": 4}, "updateMods": {"$frobnicate": {"a": 1}}}]})",
                  false, "admin")
                  .at("nErrors"),
              "1");
    EXPECT_EQ(commit(kSessionA, 2).code(), 251);
    EXPECT_EQ(run(R"({"count": "c"})").at("n"), "3");
}

TEST_F(Transactions, KeepsToTheOrderOfNumbersAndStates) {
    fill();
    const std::string find = R"({"find": "c"})";
    EXPECT_EQ(say(kSessionA, 5, find).code(), 251);
    EXPECT_EQ(commit(kSessionA, 5).code(), 251);
    EXPECT_TRUE(say(kSessionA, 5, find, true).ok());
    EXPECT_EQ(say(kSessionA, 5, find, true).code(), 117);
    EXPECT_EQ(say(kSessionA, 4, find).code(), 225);
    EXPECT_EQ(say(kSessionA, 4, find, true).code(), 225);
    EXPECT_EQ(say(kSessionA, 6, find).code(), 251);
    EXPECT_TRUE(commit(kSessionA, 5).ok());
    EXPECT_TRUE(commit(kSessionA, 5).ok());
    EXPECT_EQ(say(kSessionA, 5, find).code(), 256);
    EXPECT_EQ(abort(kSessionA, 5).code(), 256);
    EXPECT_TRUE(say(kSessionA, 6, R"({"insert": "c", "documents": [{"_id": 60}]})", true).ok());
    EXPECT_TRUE(say(kSessionA, 7, find, true).ok());
    EXPECT_EQ(commit(kSessionA, 6).code(), 225);
    EXPECT_TRUE(abort(kSessionA, 7).ok());
    EXPECT_EQ(abort(kSessionA, 7).code(), 251);
    EXPECT_EQ(documents(R"({"_id": 60})"), "[]");
}

TEST_F(Transactions, RefusesWhatDoesNotBelongInOne) {
    fill();
    EXPECT_EQ(say(kSessionA, 1, R"({"count": "c"})", true).code(), 263);
    EXPECT_EQ(say(kSessionA, 1, R"({"count": "c"})", true).at("errorLabels"), "missing");
    EXPECT_EQ(say(kSessionA, 1, R"({"drop": "c"})", true).code(), 263);
    EXPECT_EQ(say(kSessionA, 1, R"({"listCollections": 1})", true).code(), 263);
    EXPECT_EQ(say(kSessionA, 1, R"({"find": "c", "writeConcern": {"w": 1}})", true).code(), 72);
    EXPECT_EQ(say(kSessionA, 1, R"({"find": "c", "readConcern": {"level": "linearizable"}})", true)
                  .code(),
              72);
    EXPECT_TRUE(
        say(kSessionA, 1, R"({"find": "c", "readConcern": {"level": "snapshot"}})", true).ok());
    EXPECT_EQ(say(kSessionA, 1, R"({"find": "c", "readConcern": {"level": "snapshot"}})").code(),
              72);
    EXPECT_EQ(say(kSessionA, 1,
                  R"({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}})")
                  .code(),
              263);
    EXPECT_EQ(say(kSessionB, 1, R"({"insert": "c", "documents": [{}]})", true, "admin").code(),
              263);
    EXPECT_EQ(run(R"({"commitTransaction": 1})", "admin").code(), 125);
    EXPECT_EQ(code(R"({"insert": "c", "documents": [{}], "autocommit": false})"), 72);
    EXPECT_EQ(
        code(R"({"find": "c", "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}},
                       "txnNumber": {"$numberLong": "9"}, "startTransaction": true})"),
        72);
    EXPECT_EQ(
        code(R"({"find": "c", "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}},
                       "txnNumber": {"$numberLong": "9"}, "autocommit": true})"),
        72);
    EXPECT_EQ(
        code(
            R"({"insert": "c", "documents": [{}], "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}},
                       "txnNumber": {"$numberLong": "-1"}})"),
        72);
}

TEST_F(Transactions, MakesCollectionsByWritingAndByName) {
    EXPECT_TRUE(say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 1}]})", true).ok());
    EXPECT_TRUE(say(kSessionA, 1, R"({"create": "d"})").ok());
    EXPECT_EQ(say(kSessionB, 1, R"({"insert": "c", "documents": [{"_id": 2}]})", true).code(), 112);
    EXPECT_EQ(run(R"({"listCollections": 1, "nameOnly": true})").at("cursor.firstBatch"), "[]");
    EXPECT_EQ(documents_in(kSessionA, 1), R"([{"_id":1}])");
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_EQ(run(R"({"listCollections": 1, "nameOnly": true})").at("cursor.firstBatch"),
              R"([{"name":"c","type":"collection"},{"name":"d","type":"collection"}])");
    EXPECT_EQ(documents(), R"([{"_id":1}])");
    EXPECT_TRUE(run(R"({"insert": "d", "documents": [{"_id": 1}]})").ok());
    EXPECT_EQ(run(R"({"validate": "d"})").at("valid"), "true");
}

TEST_F(Transactions, MakesIndexesOnItsOwnCollectionsOnly) {
    fill();
    EXPECT_TRUE(
        say(kSessionA, 1, R"({"insert": "d", "documents": [{"_id": 1, "x": [1, 2]}]})", true).ok());
    EXPECT_EQ(
        say(kSessionA, 1,
            R"({"createIndexes": "d", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": true}]})")
            .at("numIndexesAfter"),
        "2");
    EXPECT_TRUE(say(kSessionA, 1, R"({"insert": "d", "documents": [{"_id": 2, "x": 3}]})").ok());
    EXPECT_EQ(say(kSessionA, 1, R"({"find": "d", "filter": {"x": {"$gte": 2}}, "hint": "x_1"})")
                  .at("cursor.firstBatch"),
              R"([{"_id":1,"x":[1,2]},{"_id":2,"x":3}])");
    EXPECT_EQ(say(kSessionA, 1,
                  R"({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]})")
                  .at("note"),
              R"("all indexes already exist")");
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_EQ(run(R"({"validate": "d"})").at("valid"), "true");
    EXPECT_EQ(run(R"({"insert": "d", "documents": [{"x": 2}]})").at("writeErrors.0.code"), "11000");
    EXPECT_EQ(say(kSessionA, 2,
                  R"({"createIndexes": "c", "indexes": [{"key": {"z": 1}, "name": "z_1"}]})", true)
                  .code(),
              263);
}

TEST_F(Transactions, ACollectionMadeAfterTheSnapshotCannotBeReadFromIt) {
    fill();
    EXPECT_TRUE(say(kSessionA, 1, R"({"find": "c"})", true).ok());
    EXPECT_TRUE(run(R"({"insert": "later", "documents": [{"_id": 1}]})").ok());
    const auto read = say(kSessionA, 1, R"({"find": "later"})");
    EXPECT_EQ(read.code(), 246);
    EXPECT_EQ(read.at("errorLabels"), R"(["TransientTransactionError"])");
}

TEST_F(Transactions, APlainWriteWaitsForTheTransactionThatHoldsItsDocument) {
    fill();
    say(kSessionA, 1,
        R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 10}}}]})", true);
    auto first = begin(doc(
        R"({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$inc": {"a": 1}}}, {"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}]})"));
    auto second = begin(doc(
        R"({"findAndModify": "c", "query": {"_id": 1}, "update": {"$mul": {"a": 2}}, "new": true})"));
    const auto hasty = run(
        R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}], "maxTimeMS": 20})");
    EXPECT_EQ(hasty.code(), 50);
    EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    EXPECT_EQ(documents(R"({"_id": 2})"), R"([{"_id":2,"a":2}])");  // nothing of it is applied
    // Who waits bars new intents there.
    EXPECT_EQ(
        say(kSessionB, 1, R"({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]})", true)
            .code(),
        112);
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_EQ(first.get().at("nModified"), "2");
    EXPECT_EQ(second.get().at("value"), R"({"_id":1,"a":24})");  // (1 + 10 + 1) * 2
}

TEST_F(Transactions, ChangesOfTheCatalogWaitToo) {
    fill();
    say(kSessionA, 1, R"({"insert": "c", "documents": [{"_id": 4, "a": 4}]})", true);
    auto build =
        begin(doc(R"({"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b_1"}]})"));
    EXPECT_EQ(run(R"({"drop": "c", "maxTimeMS": 20})").code(), 50);
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_EQ(build.get().at("numIndexesAfter"), "4");
    EXPECT_EQ(run(R"({"validate": "c"})").at("valid"), "true");
}

TEST_F(Transactions, ItsCursorsBelongToItAndEndWithIt) {
    fill();
    const auto opened = say(kSessionA, 1, R"({"find": "c", "batchSize": 1})", true);
    const auto id = opened.at("cursor.id");
    const std::string more = fmt::format(
        R"({{"getMore": {{"$numberLong": "{}"}}, "collection": "c", "batchSize": 1}})", id);
    std::string outside = more;
    outside.pop_back();
    EXPECT_EQ(
        run(outside + fmt::format(R"(, "lsid": {{"id": {{"$uuid": "{}"}}}}}})", kSessionA)).code(),
        50741);
    EXPECT_EQ(say(kSessionA, 1, more).at("cursor.nextBatch"), R"([{"_id":2,"a":2}])");
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_TRUE(say(kSessionA, 2, R"({"find": "c"})", true).ok());
    EXPECT_EQ(say(kSessionA, 2, more).code(), 43);
}

TEST_F(Transactions, WriteSkewIsAllowed) {
    fill();
    say(kSessionA, 1, R"({"find": "c"})", true);
    say(kSessionB, 1, R"({"find": "c"})", true);
    EXPECT_TRUE(say(kSessionA, 1,
                    R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 0}}}]})")
                    .ok());
    EXPECT_TRUE(say(kSessionB, 1,
                    R"({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 0}}}]})")
                    .ok());
    EXPECT_TRUE(commit(kSessionA, 1).ok());
    EXPECT_TRUE(commit(kSessionB, 1).ok());
}

TEST_F(Transactions, EndSessionsAbortsAndARetryableWriteDoes) {
    fill();
    say(kSessionA, 1, R"({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]})", true);
    EXPECT_TRUE(
        run(fmt::format(R"({{"endSessions": [{{"id": {{"$uuid": "{}"}}}}]}})", kSessionA)).ok());
    EXPECT_EQ(commit(kSessionA, 1).code(), 251);
    say(kSessionA, 2, R"({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]})", true);
    EXPECT_TRUE(
        run(fmt::format(
                R"({{"insert": "c", "documents": [{{"_id": 99}}], "lsid": {{"id": {{"$uuid": "{}"}}}},
                                     "txnNumber": {{"$numberLong": "3"}}}})",
                kSessionA))
            .ok());
    EXPECT_EQ(commit(kSessionA, 2).code(), 225);
    EXPECT_EQ(run(R"({"count": "c"})").at("n"), "4");
}

TEST_F(Transactions, SnapshotReadsNameTheirTimeAndRepeatIt) {
    fill();
    const auto first =
        run(R"({"find": "c", "filter": {"_id": 1}, "readConcern": {"level": "snapshot"}})");
    const auto at = first.at("cursor.atClusterTime");
    ASSERT_NE(at, "missing");
    run(R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 100}}}]})");
    const auto again = run(fmt::format(
        R"({{"find": "c", "filter": {{"_id": 1}}, "readConcern": {{"level": "snapshot", "atClusterTime": {}}}}})",
        at));
    EXPECT_EQ(again.at("cursor.firstBatch"), R"([{"_id":1,"a":1}])");
    EXPECT_EQ(again.at("cursor.atClusterTime"), at);
    EXPECT_EQ(
        run(fmt::format(
                R"({{"distinct": "c", "key": "a", "readConcern": {{"level": "snapshot", "atClusterTime": {}}}}})",
                at))
            .at("values"),
        "[1,2,3]");
    EXPECT_EQ(
        code(
            R"({"find": "c", "readConcern": {"level": "snapshot", "atClusterTime": {"$timestamp": {"t": 1, "i": 1}}}})"),
        239);
    EXPECT_EQ(
        code(
            R"({"find": "c", "readConcern": {"level": "snapshot", "atClusterTime": {"$timestamp": {"t": 4294967295, "i": 1}}}})"),
        246);
    EXPECT_EQ(code(R"({"count": "c", "readConcern": {"level": "snapshot"}})"), 72);
    EXPECT_EQ(code(R"({"insert": "c", "documents": [{}], "readConcern": {"level": "snapshot"}})"),
              72);
}

}  // namespace
}  // namespace angelia::engine::command::test
