// Faults on demand: each option, each mode, each refusal.
#include "engine/command/fail_points.h"
#include "engine/command/test_commands.h"

namespace angelia::engine::command::test {
namespace {

class Faults : public CommandTest {
  protected:
    Answer set(std::string_view mode, std::string_view data,
               std::string_view name = "failCommand") {
        return run(R"({"configureFailPoint": ")" + std::string(name) + R"(", "mode": )" +
                       std::string(mode) + R"(, "data": )" + std::string(data) + "}",
                   "admin");
    }
    std::string off(std::string_view name = "failCommand") {
        return set(R"("off")", "{}", name).result();
    }
    /// An insert with a transaction number; ids from `first` on.
    Answer insert(int number, int first, int count = 1, std::string_view extra = "") {
        std::string documents;
        for (int i = 0; i < count; ++i)
            documents += (i == 0 ? "" : ", ") + (R"({"_id": )" + std::to_string(first + i) + "}");
        return run(R"({"insert": "c", "documents": [)" + documents + "]" + std::string(extra) +
                   R"(, "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}}, )" +
                   R"("txnNumber": {"$numberLong": ")" + std::to_string(number) + R"("}})");
    }
    std::string ids() {
        return run(R"({"find": "c", "sort": {"_id": 1}})").at("cursor.firstBatch");
    }
};

constexpr std::string_view kOnce = R"({"times": 1})";

TEST_F(Faults, InjectedErrorsHaveTheRightCodeName) {
    const std::initializer_list<std::pair<int, const char*>> kNames = {
        {2, "BadValue"},
        {6, "HostUnreachable"},
        {7, "HostNotFound"},
        {8, "UnknownError"},
        {24, "LockTimeout"},
        {43, "CursorNotFound"},
        {50, "MaxTimeMSExpired"},
        {64, "WriteConcernTimeout"},
        {79, "UnknownReplWriteConcern"},
        {89, "NetworkTimeout"},
        {91, "ShutdownInProgress"},
        {100, "UnsatisfiableWriteConcern"},
        {112, "WriteConflict"},
        {133, "FailedToSatisfyReadPreference"},
        {134, "ReadConcernMajorityNotAvailableYet"},
        {150, "StaleEpoch"},
        {189, "PrimarySteppedDown"},
        {216, "ElectionInProgress"},
        {234, "RetryChangeStream"},
        {246, "SnapshotUnavailable"},
        {251, "NoSuchTransaction"},
        {262, "ExceededTimeLimit"},
        {267, "PreparedTransactionInProgress"},
        {9001, "SocketException"},
        {10107, "NotWritablePrimary"},
        {11600, "InterruptedAtShutdown"},
        {11601, "Interrupted"},
        {11602, "InterruptedDueToReplStateChange"},
        {13435, "NotPrimaryNoSecondaryOk"},
        {13436, "NotPrimaryOrSecondary"},
        {49999, "Location49999"}};
    for (const auto& [number, name] : kNames) {
        set(kOnce, R"({"failCommands": ["find"], "errorCode": )" + std::to_string(number) + "}");
        const auto answer = run(R"({"find": "c"})");
        EXPECT_EQ(answer.code(), number);
        EXPECT_EQ(answer.at("codeName"), "\"" + std::string(name) + "\"");
        EXPECT_EQ(answer.at("errorLabels"), "missing") << "a read outside of a transaction";
    }
}

TEST_F(Faults, LabelsReplaceTheAutomaticOnesAlsoWhenEmpty) {
    set(kOnce, R"({"failCommands": ["insert"], "errorCode": 91})");
    const auto shutdown = insert(1, 1);
    EXPECT_EQ(shutdown.at("errorLabels"), R"(["RetryableWriteError"])");
    EXPECT_NE(shutdown.at("topologyVersion"), "missing");
    set(kOnce, R"({"failCommands": ["insert"], "errorCode": 91, "errorLabels": []})");
    EXPECT_EQ(insert(2, 1).at("errorLabels"), "missing");
    set(kOnce, R"({"failCommands": ["insert"], "errorCode": 2, "errorLabels": ["A", "B"]})");
    EXPECT_EQ(insert(3, 1).at("errorLabels"), R"(["A","B"])");
    EXPECT_EQ(ids(), "[]");
}

TEST_F(Faults, LabelsSayNothingAboutErrorsOfTheCommandItself) {
    insert(1, 1);
    set(kOnce,
        R"({"failCommands": ["drop"], "blockConnection": true, "blockTimeMS": 1, "errorLabels": ["A"]})");
    EXPECT_EQ(run(R"({"drop": ""})").at("errorLabels"), "missing");
}

TEST_F(Faults, AWriteConcernErrorExecutesTheCommand) {
    set(kOnce,
        R"({"failCommands": ["insert"], "writeConcernError": {"code": 91, "errmsg": "x", "errInfo": {"a": 1}}})");
    const auto retriable = insert(1, 1);
    EXPECT_EQ(retriable.at("writeConcernError"),
              R"({"code":91,"errmsg":"x","errInfo":{"a":1},"codeName":"ShutdownInProgress"})");
    EXPECT_EQ(retriable.at("errorLabels"), R"(["RetryableWriteError"])");
    EXPECT_NE(retriable.at("topologyVersion"), "missing");
    set(kOnce,
        R"({"failCommands": ["insert"], "writeConcernError": {"code": 64, "codeName": "Mine", "errorLabels": ["L"]}})");
    const auto timeout = insert(2, 2);
    EXPECT_EQ(timeout.at("writeConcernError"),
              R"({"code":64,"codeName":"Mine","errorLabels":["L"]})");
    EXPECT_EQ(timeout.at("errorLabels"), "missing");
    EXPECT_EQ(timeout.at("topologyVersion"), "missing");
    set(kOnce,
        R"({"failCommands": ["insert"], "writeConcernError": {"code": 91}, "errorLabels": ["M"]})");
    EXPECT_EQ(insert(3, 3).at("errorLabels"), R"(["M"])");
    EXPECT_EQ(ids(), R"([{"_id":1},{"_id":2},{"_id":3}])");
}

TEST_F(Faults, AWriteConcernErrorWaitsForACommandThatTakesAWriteConcern) {
    set(kOnce, R"({"failCommands": ["find", "insert"], "writeConcernError": {"code": 91}})");
    EXPECT_EQ(run(R"({"find": "c"})").at("writeConcernError"), "missing");
    EXPECT_EQ(insert(1, 1).at("writeConcernError.code"), "91");
}

TEST_F(Faults, ClosingTheConnectionComesBeforeTheError) {
    set(kOnce, R"({"failCommands": ["insert"], "closeConnection": true, "errorCode": 91})");
    EXPECT_TRUE(insert(1, 1).closed);
    EXPECT_EQ(ids(), "[]");
}

TEST_F(Faults, BlocksFirstAndThenDoesTheRest) {
    set(R"("alwaysOn")",
        R"({"failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 30, "errorCode": 8})");
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(code(R"({"ping": 1})"), 8);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
    EXPECT_EQ(code(R"({"ping": 1, "maxTimeMS": 2})"), 50);
    set(R"("alwaysOn")",
        R"({"failCommands": ["ping"], "blockConnection": false, "blockTimeMS": 3600000})");
    EXPECT_TRUE(run(R"({"ping": 1})").ok());
}

TEST_F(Faults, CountOnlyCommandsThatAreMeant) {
    connection->application_name = "me";
    set(kOnce,
        R"({"failCommands": ["find"], "errorCode": 8, "appName": "me", "namespace": "app.b"})");
    EXPECT_TRUE(run(R"({"ping": 1})").ok());
    EXPECT_TRUE(run(R"({"find": "a"})").ok());
    EXPECT_TRUE(run(R"({"find": "b"})", "other").ok());
    connection->application_name = "you";
    EXPECT_TRUE(run(R"({"find": "b"})").ok());
    connection->application_name = "me";
    EXPECT_EQ(code(R"({"find": "b"})"), 8);
    EXPECT_TRUE(run(R"({"find": "b"})").ok());
    EXPECT_EQ(off(), R"({"count":1})");
}

TEST_F(Faults, ChooseGetMoreByTheCollectionOfItsCursor) {
    set(kOnce, R"({"failCommands": ["getMore"], "errorCode": 8, "namespace": "app.b"})");
    EXPECT_EQ(code(R"({"getMore": {"$numberLong": "7"}, "collection": "a"})"), 43);
    EXPECT_EQ(code(R"({"getMore": {"$numberLong": "7"}, "collection": "b"})"), 8);
}

TEST_F(Faults, KnowAliasesAndCommandsThatDoNotExistHere) {
    set(R"("alwaysOn")", R"({"failCommands": ["isMaster", "mapReduce"], "errorCode": 8})");
    EXPECT_EQ(code(R"({"hello": 1})"), 8);
    EXPECT_EQ(code(R"({"ismaster": 1})"), 8);
    EXPECT_EQ(code(R"({"mapReduce": "c"})"), 8);
    EXPECT_EQ(code(R"({"reduceMap": "c"})"), 59);
}

TEST_F(Faults, NeverHitTheCommandThatSetsThem) {
    set(R"("alwaysOn")", R"({"failCommands": ["configureFailPoint"], "errorCode": 8})");
    EXPECT_EQ(off(), R"({"count":0})");
}

TEST_F(Faults, ModesCount) {
    const std::string data = R"({"failCommands": ["ping"], "errorCode": 8})";
    const auto pings = [this] {
        std::string row;
        for (int i = 0; i < 4; ++i) row += run(R"({"ping": 1})").ok() ? "+" : "-";
        return row;
    };
    set(R"("alwaysOn")", data);
    EXPECT_EQ(pings(), "----");
    set(R"({"times": 2})", data);
    EXPECT_EQ(pings(), "--++");
    set(R"({"times": 0})", data);
    EXPECT_EQ(pings(), "++++");
    set(R"({"skip": 3})", data);
    EXPECT_EQ(pings(), "+++-");
    EXPECT_EQ(pings(), "----");
    set(R"({"activationProbability": 0})", data);
    EXPECT_EQ(pings(), "++++");
    set(R"({"activationProbability": 1.0})", data);
    EXPECT_EQ(pings(), "----");
    EXPECT_EQ(off(), R"({"count":15})");
    EXPECT_EQ(pings(), "++++");
    set(R"("alwaysOn")", data);
    EXPECT_EQ(off(), R"({"count":15})");
}

TEST_F(Faults, AProbabilityHitsSometimes) {
    set(R"({"activationProbability": 0.5})", R"({"failCommands": ["ping"], "errorCode": 8})");
    int failed = 0;
    for (int i = 0; i < 200; ++i) failed += run(R"({"ping": 1})").ok() ? 0 : 1;
    EXPECT_GT(failed, 20);
    EXPECT_LT(failed, 180);
}

TEST_F(Faults, RefuseWhatTheyDoNotUnderstandAndStayAsTheyWere) {
    set(R"("alwaysOn")", R"({"failCommands": ["ping"], "errorCode": 8})");
    struct Bad {
        const char* name;
        const char* mode;
        const char* data;
        int code;
        const char* code_name;
    };
    constexpr const char* kCommand = "failCommand";
    constexpr const char* kOn = R"("alwaysOn")";
    for (const Bad& bad : std::initializer_list<Bad>{
             {"failEverything", kOn, "{}", 266, "FailPointSetFailed"},
             {kCommand, R"("sometimes")", "{}", 2, "BadValue"},
             {kCommand, "3", "{}", 14, "TypeMismatch"},
             {kCommand, "{}", "{}", 2, "BadValue"},
             {kCommand, R"({"often": 1})", "{}", 2, "BadValue"},
             {kCommand, R"({"times": 1, "skip": 1})", "{}", 2, "BadValue"},
             {kCommand, R"({"times": -1})", "{}", 2, "BadValue"},
             {kCommand, R"({"times": 1.5})", "{}", 2, "BadValue"},
             {kCommand, R"({"times": 3000000000})", "{}", 2, "BadValue"},
             {kCommand, R"({"times": "x"})", "{}", 14, "TypeMismatch"},
             {kCommand, R"({"skip": -1})", "{}", 2, "BadValue"},
             {kCommand, R"({"activationProbability": 2})", "{}", 2, "BadValue"},
             {kCommand, R"({"activationProbability": {"$numberDouble": "NaN"}})", "{}", 2,
              "BadValue"},
             {kCommand, R"({"activationProbability": "x"})", "{}", 14, "TypeMismatch"},
             {kCommand, kOn, "3", 14, "TypeMismatch"},
             {kCommand, kOn, "{}", 40414, "Location40414"},
             {kCommand, kOn, R"({"failCommands": "ping"})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [1]})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "wings": 1})", 40415, "Location40415"},
             {kCommand, kOn, R"({"failCommands": [], "errorCode": "x"})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "errorCode": 0})", 2, "BadValue"},
             {kCommand, kOn, R"({"failCommands": [], "errorLabels": "x"})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "errorLabels": [1]})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "closeConnection": "x"})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "blockConnection": true})", 72,
              "InvalidOptions"},
             {kCommand, kOn, R"({"failCommands": [], "blockConnection": true, "blockTimeMS": -1})",
              72, "InvalidOptions"},
             {kCommand, kOn, R"({"failCommands": [], "blockTimeMS": "x"})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "appName": 1})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "namespace": 1})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "writeConcernError": 1})", 14, "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "writeConcernError": {}})", 40414,
              "Location40414"},
             {kCommand, kOn, R"({"failCommands": [], "writeConcernError": {"code": "x"}})", 14,
              "TypeMismatch"},
             {kCommand, kOn, R"({"failCommands": [], "writeConcernError": {"code": -3}})", 2,
              "BadValue"},
             {kCommand, kOn,
              R"({"failCommands": [], "writeConcernError": {"code": 1, "wings": 1}})", 40415,
              "Location40415"},
             {kCommand, kOn,
              R"({"failCommands": [], "writeConcernError": {"code": 1, "errInfo": 1}})", 14,
              "TypeMismatch"},
             {"failGetMoreAfterCursorCheckout", kOn, R"({"failCommands": []})", 40415,
              "Location40415"},
             {"failGetMoreAfterCursorCheckout", kOn, R"({"errorCode": -6})", 2, "BadValue"},
             {"onPrimaryTransactionalWrite", kOn, R"({"errorCode": 6})", 40415, "Location40415"},
             {"onPrimaryTransactionalWrite", kOn, R"({"failBeforeCommitExceptionCode": "x"})", 14,
              "TypeMismatch"}}) {
        const auto answer = set(bad.mode, bad.data, bad.name);
        EXPECT_EQ(answer.code(), bad.code) << bad.name << bad.mode << bad.data;
        EXPECT_EQ(answer.at("codeName"), "\"" + std::string(bad.code_name) + "\"");
        EXPECT_FALSE(answer.message().empty());
        EXPECT_EQ(code(R"({"ping": 1})"), 8) << "the old setting holds";
    }
    EXPECT_EQ(code(R"({"configureFailPoint": "failCommand"})", "admin"), 20);
    EXPECT_EQ(code(R"({"configureFailPoint": 1, "mode": "off"})", "admin"), 14);
    EXPECT_EQ(code(R"({"configureFailPoint": "failCommand", "mode": "off"})", "app"), 13);
}

TEST_F(Faults, EndAStreamOfHellosAtItsNextAnswer) {
    const auto first = run(R"({"hello": 1})");
    auto bytes = std::make_shared<const bson::Document>(
        bson::make("hello", std::int32_t{1}, "topologyVersion",
                   bson::make("processId", bson::ObjectId::generate(), "counter", std::int64_t{0}),
                   "maxAwaitTimeMS", std::int32_t{20}));
    Request request;
    request.body = bytes->view();
    request.database = "admin";
    request.bytes = bytes;
    request.exhaust_allowed = true;
    std::promise<std::string> ended;
    std::atomic<int> answers{0};
    service->run(connection, std::move(request), [&](Reply reply) {
        if (++answers == 1) {
            set(kOnce, R"({"failCommands": ["hello"], "errorCode": 91})");
            return;
        }
        if (!reply.more_to_come) ended.set_value(bson::to_json(reply.body["codeName"]));
    });
    auto end = ended.get_future();
    ASSERT_EQ(end.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_EQ(end.get(), R"("ShutdownInProgress")");
}

// ---- onPrimaryTransactionalWrite

constexpr std::string_view kOnWrite = "onPrimaryTransactionalWrite";

TEST_F(Faults, ATransactionalWriteCommitsAndItsConnectionEnds) {
    set(kOnce, "{}", kOnWrite);
    EXPECT_TRUE(insert(1, 1, 2).closed);
    EXPECT_EQ(ids(), R"([{"_id":1},{"_id":2}])");
    const auto again = insert(1, 1, 2);
    EXPECT_EQ(again.at("n"), "2");
    EXPECT_EQ(again.at("retriedStmtIds"), "[0,1]");
    EXPECT_EQ(off(kOnWrite), R"({"count":1})") << "a retried statement commits nothing";
}

TEST_F(Faults, ATransactionalWriteFailsBeforeItsCommit) {
    set(R"({"skip": 1})", R"({"closeConnection": false, "failBeforeCommitExceptionCode": 1})",
        kOnWrite);
    const auto answer = insert(1, 1, 3);
    EXPECT_FALSE(answer.closed);
    EXPECT_EQ(answer.at("n"), "1");
    EXPECT_EQ(answer.at("writeErrors.0.index"), "1");
    EXPECT_EQ(answer.at("writeErrors.0.code"), "1");
    EXPECT_EQ(answer.at("writeErrors.0.codeName"), R"("InternalError")");
    EXPECT_EQ(ids(), R"([{"_id":1}])");
    off(kOnWrite);
    const auto again = insert(1, 1, 3);
    EXPECT_EQ(again.at("n"), "3");
    EXPECT_EQ(again.at("retriedStmtIds"), "[0]");
    EXPECT_EQ(ids(), R"([{"_id":1},{"_id":2},{"_id":3}])");
    EXPECT_EQ(engine.validate({"app", "c"}), "valid");
}

TEST_F(Faults, AStateChangeBeforeACommitFailsTheWholeCommand) {
    set(R"({"skip": 1})", R"({"closeConnection": false, "failBeforeCommitExceptionCode": 10107})",
        kOnWrite);
    const auto answer = insert(1, 1, 3);
    EXPECT_EQ(answer.code(), 10107);
    EXPECT_EQ(answer.at("errorLabels"), R"(["RetryableWriteError"])");
    EXPECT_EQ(ids(), R"([{"_id":1}])");
    off(kOnWrite);
    EXPECT_EQ(insert(1, 1, 3).at("retriedStmtIds"), "[0]");
    EXPECT_EQ(ids(), R"([{"_id":1},{"_id":2},{"_id":3}])");
}

TEST_F(Faults, AnUnorderedListLosesOnlyTheStatementThatFailed) {
    set(kOnce, R"({"closeConnection": false, "failBeforeCommitExceptionCode": 8})", kOnWrite);
    EXPECT_EQ(insert(1, 1, 3, R"(, "ordered": false)").at("n"), "2");
    EXPECT_EQ(ids(), R"([{"_id":2},{"_id":3}])");
}

TEST_F(Faults, AFailedFindAndModifyChangesNothing) {
    insert(1, 1);
    set(kOnce, R"({"closeConnection": false, "failBeforeCommitExceptionCode": 91})", kOnWrite);
    const std::string modify =
        R"({"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "new": true, "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}}, "txnNumber": {"$numberLong": "2"}})";
    const auto failed = run(modify);
    EXPECT_EQ(failed.code(), 91);
    EXPECT_EQ(failed.at("errorLabels"), R"(["RetryableWriteError"])");
    EXPECT_EQ(ids(), R"([{"_id":1}])");
    EXPECT_EQ(run(modify).at("value"), R"({"_id":1,"n":1})");
}

TEST_F(Faults, PlainWritesAndWritesWithoutEffectAreNotTransactional) {
    set(R"("alwaysOn")", "{}", kOnWrite);
    EXPECT_FALSE(run(R"({"insert": "c", "documents": [{"_id": 1}]})").closed);
    EXPECT_FALSE(
        run(R"({"update": "c", "updates": [{"q": {"_id": 9}, "u": {"$set": {"a": 1}}}], "lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}}, "txnNumber": {"$numberLong": "1"}})")
            .closed);
    EXPECT_EQ(off(kOnWrite), R"({"count":0})");
}

// ---- failGetMoreAfterCursorCheckout

constexpr std::string_view kOnGetMore = "failGetMoreAfterCursorCheckout";

class FaultsOfGetMore : public Faults {
  protected:
    Answer get_more(std::int64_t id) {
        return run(bson::make("getMore", id, "collection", "c", "maxTimeMS", std::int32_t{1}));
    }
    std::int64_t stream() {
        return cursor_of(
            run(R"({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}})"));
    }
    static std::int64_t cursor_of(const Answer& answer) {
        return answer.body.view().find_path("cursor.id").as_int64();
    }
};

TEST_F(FaultsOfGetMore, OnlyResumableCodesOfChangeStreamsAreLabelled) {
    const auto id = stream();
    for (const int number : {6, 7, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602,
                             13388, 13435, 13436, 63}) {
        set(kOnce, R"({"errorCode": )" + std::to_string(number) + "}", kOnGetMore);
        const auto answer = get_more(id);
        EXPECT_EQ(answer.code(), number);
        EXPECT_EQ(answer.at("errorLabels"), R"(["ResumableChangeStreamError"])") << number;
    }
    for (const int number : {2, 8, 43, 216, 11601}) {
        set(kOnce, R"({"errorCode": )" + std::to_string(number) + "}", kOnGetMore);
        const auto answer = get_more(id);
        EXPECT_EQ(answer.code(), number);
        EXPECT_EQ(answer.at("errorLabels"), "missing") << number;
    }
    set(kOnce, R"({"failCommands": ["getMore"], "errorCode": 6})");
    EXPECT_EQ(get_more(id).at("errorLabels"), "missing");
    EXPECT_TRUE(get_more(id).ok());
}

TEST_F(FaultsOfGetMore, AnUnknownCursorComesFirst) {
    set(kOnce, R"({"errorCode": 6})", kOnGetMore);
    EXPECT_EQ(get_more(77).code(), 43);
    EXPECT_EQ(off(kOnGetMore), R"({"count":0})");
}

TEST_F(FaultsOfGetMore, APlainCursorEndsWithoutALabel) {
    insert(1, 1, 5);
    const auto id = cursor_of(run(R"({"find": "c", "batchSize": 1})"));
    set(kOnce, R"({"errorCode": 6})", kOnGetMore);
    const auto answer = run(bson::make("getMore", id, "collection", "c"));
    EXPECT_EQ(answer.code(), 6);
    EXPECT_EQ(answer.at("errorLabels"), "missing");
    EXPECT_EQ(run(bson::make("getMore", id, "collection", "c")).code(), 43);
}

TEST_F(FaultsOfGetMore, TheConnectionCanEnd) {
    const auto id = stream();
    set(kOnce, R"({"closeConnection": true})", kOnGetMore);
    EXPECT_TRUE(get_more(id).closed);
    EXPECT_TRUE(get_more(id).ok());
}

}  // namespace
}  // namespace angelia::engine::command::test
