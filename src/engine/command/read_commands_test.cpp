#include "engine/command/test_commands.h"

namespace angelia::engine::command::test {
namespace {

class Reads : public CommandTest {
  protected:
    void fill(int count) {
        bson::Builder b;
        b.add("insert", "c").open_array("documents");
        for (std::int32_t i = 0; i < count; ++i) b.push(bson::make("_id", i, "n", i % 3));
        b.close();
        EXPECT_TRUE(run(b.take()).ok());
    }
    static std::string id_of(const Answer& answer) {
        return std::to_string(answer.body.view().find_path("cursor.id").as_int64());
    }
    Answer get_more(const std::string& id, const std::string& more = "") {
        return run(R"({"getMore": {"$numberLong": ")" + id + R"("}, "collection": "c")" + more +
                   "}");
    }
};

TEST_F(Reads, FindHandsOutBatches) {
    fill(250);
    const auto first = run(R"({"find": "c"})");
    EXPECT_TRUE(first.body.view().find_path("cursor.id").is(bson::Type::Int64));
    EXPECT_EQ(first.body.view().find_path("cursor.firstBatch").as_document().count(), 101u);
    EXPECT_EQ(first.at("cursor.ns"), R"("app.c")");
    const auto second = get_more(id_of(first), R"(, "batchSize": 100)");
    EXPECT_EQ(second.body.view().find_path("cursor.nextBatch").as_document().count(), 100u);
    const auto third = get_more(id_of(second));
    EXPECT_EQ(third.body.view().find_path("cursor.nextBatch").as_document().count(), 49u);
    EXPECT_EQ(id_of(third), "0");
    EXPECT_EQ(get_more(id_of(first)).code(), 43);
}

TEST_F(Reads, ABatchFilledExactlyLeavesTheCursorOpen) {
    fill(2);
    const auto first = run(R"({"find": "c", "batchSize": 2})");
    EXPECT_NE(id_of(first), "0");
    const auto rest = get_more(id_of(first));
    EXPECT_EQ(rest.at("cursor.nextBatch"), "[]");
    EXPECT_EQ(id_of(rest), "0");
    EXPECT_EQ(id_of(run(R"({"find": "c", "batchSize": 3})")), "0");
    EXPECT_EQ(id_of(run(R"({"find": "c", "batchSize": 2, "limit": 2})")), "0");
    EXPECT_EQ(id_of(run(R"({"find": "c", "batchSize": 1, "singleBatch": true})")), "0");
    const auto empty = run(R"({"find": "c", "batchSize": 0})");
    EXPECT_EQ(empty.at("cursor.firstBatch"), "[]");
    EXPECT_NE(id_of(empty), "0");
}

TEST_F(Reads, FindRefusesWhatItCannotDo) {
    EXPECT_EQ(code(R"({"find": "c", "skip": -1})"), 51024);
    EXPECT_EQ(code(R"({"find": "c", "limit": -1})"), 51024);
    EXPECT_EQ(code(R"({"find": "c", "batchSize": -1})"), 51024);
    EXPECT_EQ(code(R"({"find": "c", "filter": {"a": {"$fly": 1}}})"), 2);
    EXPECT_EQ(code(R"({"find": "c", "tailable": true})"), 2);
    EXPECT_EQ(code(R"({"find": "c", "awaitData": true})"), 9);
    EXPECT_EQ(code(R"({"find": "c", "collation": {"locale": "de"}})"), 238);
    EXPECT_EQ(code(R"({"find": "c", "min": {"a": 1}})"), 238);
    EXPECT_EQ(code(R"({"find": "c", "let": {}, "min": {}, "returnKey": false})"), 0);
    EXPECT_EQ(code(R"({"find": "", "filter": {}})"), 73);
}

TEST_F(Reads, CursorsBelongToTheirCollectionAndCanBeKilled) {
    fill(3);
    const auto id = id_of(run(R"({"find": "c", "batchSize": 1})"));
    EXPECT_EQ(code(R"({"getMore": {"$numberLong": ")" + id + R"("}, "collection": "other"})"), 13);
    EXPECT_EQ(result(R"({"killCursors": "c", "cursors": [{"$numberLong": ")" + id +
                     R"("}, {"$numberLong": "77"}]})"),
              R"({"cursorsKilled":[)" + id +
                  R"(],"cursorsNotFound":[77],"cursorsAlive":[],"cursorsUnknown":[]})");
    EXPECT_EQ(get_more(id).code(), 43);
    EXPECT_EQ(code(R"({"getMore": 5, "collection": "c"})"), 14);
    EXPECT_EQ(code(R"({"getMore": {"$numberLong": "5"}})"), 40414);
}

TEST_F(Reads, CountAndDistinct) {
    fill(7);
    EXPECT_EQ(result(R"({"count": "c", "query": {"n": 0}})"), R"({"n":3})");
    EXPECT_EQ(result(R"({"count": "c", "query": {"n": 0}, "limit": 2, "skip": 1})"), R"({"n":2})");
    EXPECT_EQ(result(R"({"count": "nowhere"})"), R"({"n":0})");
    EXPECT_EQ(result(R"({"distinct": "c", "key": "n"})"), R"({"values":[0,1,2]})");
    run(R"({"insert": "d", "documents": [{"a": [{"b": 1}, {"b": [2, 3]}]}, {"a": {"b": 3}}, {"a": 1}, {"x": 1}]})");
    EXPECT_EQ(result(R"({"distinct": "d", "key": "a.b"})"), R"({"values":[1,2,3]})");
    EXPECT_EQ(result(R"({"distinct": "d", "key": "a.1.b"})"), R"({"values":[2,3]})");
    EXPECT_EQ(code(R"({"distinct": "d"})"), 40414);
}

TEST_F(Reads, Aggregates) {
    fill(9);
    EXPECT_EQ(
        run(R"({"aggregate": "c", "pipeline": [{"$match": {"n": 1}}, {"$count": "k"}], "cursor": {}})")
            .at("cursor.firstBatch"),
        R"([{"k":3}])");
    EXPECT_EQ(
        run(R"({"aggregate": "c", "pipeline": [{"$match": {"n": 1}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}], "cursor": {}})")
            .at("cursor.firstBatch"),
        R"([{"_id":1,"n":3}])");
    EXPECT_EQ(code(R"({"aggregate": "c", "pipeline": []})"), 9);
    EXPECT_EQ(code(R"({"aggregate": "c", "cursor": {}})"), 40414);
    EXPECT_EQ(code(R"({"aggregate": "c", "pipeline": [{"$fly": 1}], "cursor": {}})"), 40324);
    EXPECT_EQ(
        code(R"({"aggregate": "c", "pipeline": [{"$match": {}, "$limit": 1}], "cursor": {}})"),
        40323);
    EXPECT_EQ(code(R"({"aggregate": "c", "pipeline": [], "cursor": {"wings": 1}})"), 40415);
}

TEST_F(Reads, ChangeStreamsWaitAndDeliver) {
    const auto opened =
        run(R"({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}})");
    ASSERT_TRUE(opened.ok()) << opened.json();
    EXPECT_EQ(opened.at("cursor.firstBatch"), "[]");
    EXPECT_NE(opened.at("cursor.postBatchResumeToken._data"), "missing");
    const auto id = id_of(opened);
    const auto idle = get_more(id, R"(, "maxTimeMS": 10)");
    EXPECT_EQ(idle.at("cursor.nextBatch"), "[]");
    EXPECT_EQ(id_of(idle), id);
    auto future = begin(doc(R"({"getMore": {"$numberLong": ")" + id +
                            R"("}, "collection": "c", "maxTimeMS": 100000})"));
    EXPECT_EQ(future.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    run(R"({"insert": "c", "documents": [{"_id": 5}]})");
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    const auto event = future.get();
    EXPECT_EQ(event.at("cursor.nextBatch.0.operationType"), R"("insert")");
    EXPECT_EQ(event.at("cursor.nextBatch.0.documentKey"), R"({"_id":5})");
}

TEST_F(Reads, WaitingStreamsEndWithShutdown) {
    const auto id =
        id_of(run(R"({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}})"));
    auto future = begin(doc(R"({"getMore": {"$numberLong": ")" + id +
                            R"("}, "collection": "c", "maxTimeMS": 100000})"));
    service->begin_shutdown();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    const auto ended = future.get();
    EXPECT_EQ(ended.code(), 91);
    EXPECT_EQ(ended.at("errorLabels"), R"(["ResumableChangeStreamError"])");
    EXPECT_EQ(get_more(id).at("errorLabels"), R"(["ResumableChangeStreamError"])");
}

TEST_F(Reads, SearchesThroughLargeCollectionsGiveTheSameAnswers) {
    fill(1500);  // beyond what runs on the connection's own thread
    const auto rest = get_more(id_of(run(R"({"find": "c"})")));
    EXPECT_EQ(rest.body.view().find_path("cursor.nextBatch").as_document().count(), 1399u);
    EXPECT_EQ(run(R"({"find": "c", "filter": {"n": 1}, "sort": {"_id": -1}, "limit": 1})")
                  .at("cursor.firstBatch"),
              R"([{"_id":1498,"n":1}])");
    EXPECT_EQ(
        result(
            R"({"update": "c", "updates": [{"q": {"n": 1}, "u": {"$set": {"n": 7}}, "multi": true}]})"),
        R"({"n":500,"nModified":500})");
    EXPECT_EQ(result(R"({"delete": "c", "deletes": [{"q": {"n": 7}, "limit": 0}]})"),
              R"({"n":500})");
    EXPECT_EQ(
        run(R"({"findAndModify": "c", "query": {"n": 2}, "sort": {"_id": 1}, "remove": true})")
            .at("value"),
        R"({"_id":2,"n":2})");
}

TEST_F(Reads, ChangeStreamErrorsCarryTheirLabels) {
    EXPECT_EQ(
        code(
            R"({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}, "readConcern": {"level": "local"}})"),
        72);
    EXPECT_EQ(
        code(
            R"({"aggregate": "c", "pipeline": [{"$changeStream": {"allChangesForCluster": true}}], "cursor": {}})"),
        73);
    EXPECT_EQ(
        code(
            R"({"aggregate": "c", "pipeline": [{"$changeStream": {"resumeAfter": {"_data": "xyz"}}}], "cursor": {}})"),
        260);
    const auto id =
        id_of(run(R"({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}})"));
    run(R"({"configureFailPoint": "failGetMoreAfterCursorCheckout", "mode": {"times": 1}, "data": {"errorCode": 6}})",
        "admin");
    EXPECT_EQ(get_more(id, R"(, "maxTimeMS": 1)").at("errorLabels"),
              R"(["ResumableChangeStreamError"])");
    run(R"({"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["getMore"], "errorCode": 6}})",
        "admin");
    EXPECT_EQ(get_more(id, R"(, "maxTimeMS": 1)").at("errorLabels"), "missing");
}

class Catalog : public CommandTest {};

TEST_F(Catalog, CreatesListsAndDropsCollections) {
    EXPECT_EQ(result(R"({"create": "a"})"), "{}");
    EXPECT_EQ(code(R"({"create": "a"})"), 48);
    EXPECT_EQ(code(R"({"create": "a$b"})"), 73);
    EXPECT_EQ(code(R"({"create": "t", "timeseries": {"timeField": "t"}})"), 72);
    EXPECT_EQ(code(R"({"create": "t", "capped": true, "size": 100})"), 238);
    run(R"({"insert": "b", "documents": [{}]})");
    const auto listed = run(R"({"listCollections": 1, "filter": {"name": "a"}})");
    EXPECT_EQ(listed.at("cursor.ns"), R"("app.$cmd.listCollections")");
    EXPECT_EQ(listed.at("cursor.firstBatch.0.name"), R"("a")");
    EXPECT_EQ(listed.at("cursor.firstBatch.0.type"), R"("collection")");
    EXPECT_EQ(listed.at("cursor.firstBatch.0.idIndex"), R"({"v":2,"key":{"_id":1},"name":"_id_"})");
    EXPECT_EQ(listed.at("cursor.firstBatch.1"), "missing");
    EXPECT_EQ(run(R"({"listCollections": 1, "nameOnly": true, "filter": {"name": {"$in": ["b"]}}})")
                  .at("cursor.firstBatch"),
              R"([{"name":"b","type":"collection"}])");
    EXPECT_EQ(
        result(R"({"listDatabases": 1, "nameOnly": true, "filter": {"name": "app"}})", "admin"),
        R"({"databases":[{"name":"app"}]})");
    EXPECT_EQ(result(R"({"drop": "a"})"), R"({"nIndexesWas":1,"ns":"app.a"})");
    EXPECT_EQ(result(R"({"drop": "a"})"), "{}");
    EXPECT_EQ(result(R"({"dropDatabase": 1})"), R"({"dropped":"app"})");
    EXPECT_EQ(run(R"({"listCollections": 1})").at("cursor.firstBatch"), "[]");
}

TEST_F(Catalog, BuildsAndListsIndexes) {
    EXPECT_EQ(
        result(
            R"({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "unique": true, "background": true, "v": 2}]})"),
        R"({"numIndexesBefore":1,"numIndexesAfter":2,"createdCollectionAutomatically":true,"commitQuorum":"votingMembers"})");
    EXPECT_EQ(
        result(
            R"({"createIndexes": "c", "indexes": [{"key": {"a": 1.0}, "name": "a_1", "unique": true}]})"),
        R"({"numIndexesBefore":2,"numIndexesAfter":2,"createdCollectionAutomatically":false,"note":"all indexes already exist"})");
    run(R"({"createIndexes": "c", "indexes": [{"key": {"t": 1}, "name": "ttl", "expireAfterSeconds": 0, "sparse": true}]})");
    EXPECT_EQ(
        run(R"({"listIndexes": "c"})").at("cursor.firstBatch"),
        R"([{"v":2,"key":{"_id":1},"name":"_id_"},{"v":2,"key":{"a":1},"name":"a_1","unique":true},)"
        R"({"v":2,"key":{"t":1},"name":"ttl","sparse":true,"expireAfterSeconds":0}])");
    EXPECT_EQ(result(R"({"dropIndexes": "c", "index": "ttl"})"), R"({"nIndexesWas":3})");
    EXPECT_EQ(code(R"({"dropIndexes": "c", "index": "ttl"})"), 27);
    EXPECT_EQ(code(R"({"dropIndexes": "c", "index": "_id_"})"), 72);
    EXPECT_EQ(code(R"({"dropIndexes": "nowhere", "index": "*"})"), 26);
    const auto absent = run(R"({"listIndexes": "nowhere"})");
    EXPECT_EQ(absent.code(), 26);
    EXPECT_EQ(absent.message().rfind("ns does not exist", 0), 0u);
}

TEST_F(Catalog, RefusesIndexesThatItCannotBuild) {
    const auto build = [this](std::string_view spec, std::string_view more = "") {
        return code(R"({"createIndexes": "c", "indexes": [)" + std::string(spec) + "]" +
                    std::string(more) + "}");
    };
    EXPECT_EQ(build(R"({"key": {"a": 1}})"), 9);
    EXPECT_EQ(build(R"({"name": "x"})"), 9);
    EXPECT_EQ(build(R"({"key": {}, "name": "x"})"), 67);
    EXPECT_EQ(build(R"({"key": {"a": 0}, "name": "x"})"), 67);
    EXPECT_EQ(build(R"({"key": {"a": "text"}, "name": "x"})"), 67);
    EXPECT_EQ(build(R"({"key": {"a": 1}, "name": "x", "wings": 1})"), 197);
    EXPECT_EQ(build(R"({"key": {"a": 1}, "name": "x", "unique": "yes"})"), 14);
    EXPECT_EQ(build(R"({"key": {"a": 1}, "name": "x"})", R"(, "commitQuorum": 2)"), 278);
    EXPECT_EQ(build(R"({"key": {"a": 1}, "name": "x", "wings": 1})",
                    R"(, "ignoreUnknownIndexOptions": true)"),
              0);
    EXPECT_EQ(build(R"({"key": {"b": 1}, "name": "x"})"), 86);
    EXPECT_EQ(build(R"({"key": {"a": 1}, "name": "y"})"), 85);
    EXPECT_EQ(code(R"({"createIndexes": "c", "indexes": []})"), 2);
}

class Administration : public CommandTest {};

TEST_F(Administration, AnswersWhatDriversAndShellsAsk) {
    const auto build = run(R"({"buildInfo": 1})");
    EXPECT_EQ(build.body.view()["versionArray"].as_document().count(), 4u);
    EXPECT_EQ(run(R"({"buildinfo": 1})").at("version").substr(0, 4), R"("7.0)");
    EXPECT_EQ(result(R"({"getParameter": 1, "featureCompatibilityVersion": 1})", "admin"),
              R"({"featureCompatibilityVersion":{"version":"7.0"}})");
    EXPECT_EQ(run(R"({"getParameter": "*"})", "admin").at("enableTestCommands"), "true");
    EXPECT_EQ(code(R"({"getParameter": 1, "wings": 1})", "admin"), 72);
    EXPECT_NE(run(R"({"getCmdLineOpts": 1})", "admin").at("argv").find("enableTestCommands=1"),
              std::string::npos);
    EXPECT_EQ(result(R"({"whatsmyuri": 1})"), R"({"you":"127.0.0.1:40000"})");
    EXPECT_EQ(run(R"({"connectionStatus": 1})").at("authInfo.authenticatedUsers"), "[]");
    EXPECT_EQ(run(R"({"getLog": "startupWarnings"})", "admin").at("log"), "[]");
    EXPECT_EQ(run(R"({"hostInfo": 1})", "admin").at("system.cpuAddrSize"), "64");
    EXPECT_EQ(run(R"({"listCommands": 1})").at("commands.ping.adminOnly"), "false");
    EXPECT_EQ(run(R"({"replSetGetStatus": 1})", "admin").at("members.0.stateStr"), R"("PRIMARY")");
    EXPECT_EQ(run(R"({"replSetGetConfig": 1})", "admin").at("config.members.0.host"),
              R"("127.0.0.1:27027")");
}

TEST_F(Administration, CountsInServerStatus) {
    run(R"({"insert": "c", "documents": [{}, {}]})");
    run(R"({"fly": 1})");
    const auto status = run(R"({"serverStatus": 1})");
    EXPECT_EQ(status.at("opcounters.insert"), "2");
    EXPECT_EQ(status.at("metrics.commands.insert.total"), "1");
    EXPECT_EQ(status.at("metrics.commands.<UNKNOWN>"), "1");
    EXPECT_EQ(status.at("storageEngine.name"), R"("rocksdb")");
    EXPECT_EQ(status.at("angelia.durability"), R"("memory")");
    EXPECT_NE(status.at("angelia.engine"), "missing");
}

TEST_F(Administration, SetsParametersThatExist) {
    EXPECT_EQ(result(R"({"setParameter": 1, "ttlMonitorSleepSecs": 7})", "admin"),
              R"({"was":3600})");
    EXPECT_EQ(engine->ttl_interval(), milliseconds(7000));
    EXPECT_EQ(result(R"({"getParameter": 1, "ttlMonitorSleepSecs": 1})", "admin"),
              R"({"ttlMonitorSleepSecs":7})");
    EXPECT_EQ(code(R"({"setParameter": 1, "ttlMonitorSleepSecs": 0})", "admin"), 2);
    EXPECT_EQ(code(R"({"setParameter": 1, "wings": 2})", "admin"), 72);
    EXPECT_EQ(code(R"({"setParameter": 1, "enableTestCommands": true})", "admin"), 72);
    EXPECT_EQ(code(R"({"setParameter": 1, "notablescan": true})", "admin"), 2);
    EXPECT_EQ(code(R"({"setParameter": 1, "notablescan": false})", "admin"), 0);
    EXPECT_EQ(result(R"({"setParameter": 1, "transactionLifetimeLimitSeconds": 5})", "admin"),
              R"({"was":60})");
    EXPECT_EQ(engine->settings().transaction_lifetime_seconds.load(), 5);
    EXPECT_EQ(result(R"({"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 7})", "admin"),
              R"({"was":60})");
    EXPECT_EQ(engine->settings().snapshot_window_seconds.load(), 7);
    EXPECT_EQ(result(R"({"setParameter": 1, "logLevel": 2})", "admin"), R"({"was":0})");
    for (const char* refused : {R"({"setParameter": 1, "transactionLifetimeLimitSeconds": 0})",
                                R"({"setParameter": 1, "minSnapshotHistoryWindowInSeconds": -1})",
                                R"({"setParameter": 1, "logLevel": 9})"})
        EXPECT_EQ(code(refused, "admin"), 2) << refused;
    for (const char* refused : {R"({"setParameter": 1, "transactionLifetimeLimitSeconds": "x"})",
                                R"({"setParameter": 1, "logLevel": "x"})"})
        EXPECT_EQ(code(refused, "admin"), 14) << refused;
    EXPECT_EQ(code(R"({"setParameter": 1})", "admin"), 72);
    EXPECT_EQ(engine->settings().transaction_lifetime_seconds.load(), 5);
}

TEST_F(Administration, ListsAllParametersThatTestRunnersAskFor) {
    const auto all = run(R"({"getParameter": "*"})", "admin");
    for (const char* name :
         {"acceptApiVersion2", "authenticationMechanisms", "cursorTimeoutMillis",
          "enableTestCommands", "featureCompatibilityVersion", "localLogicalSessionTimeoutMinutes",
          "logicalSessionTimeoutMinutes", "requireApiVersion", "transactionLifetimeLimitSeconds",
          "ttlMonitorEnabled", "ttlMonitorSleepSecs"})
        EXPECT_NE(all.at(name), "missing") << name;
    EXPECT_EQ(run(R"({"getParameter": {"allParameters": true}})", "admin").result(), all.result());
    const auto details =
        run(R"({"getParameter": {"showDetails": true, "allParameters": true}})", "admin");
    EXPECT_EQ(details.at("transactionLifetimeLimitSeconds"),
              R"({"value":60,"settableAtRuntime":true,"settableAtStartup":false})");
    EXPECT_EQ(details.at("featureCompatibilityVersion.value"), R"({"version":"7.0"})");
    EXPECT_EQ(
        result(R"({"getParameter": {"showDetails": true}, "requireApiVersion": 1})", "admin"),
        R"({"requireApiVersion":{"value":false,"settableAtRuntime":false,"settableAtStartup":false}})");
    EXPECT_EQ(code(R"({"getParameter": {"wings": true}})", "admin"), 40415);
    EXPECT_EQ(code(R"({"getParameter": {"showDetails": "x"}})", "admin"), 14);
    EXPECT_EQ(code(R"({"getParameter": 1})", "admin"), 72);
    EXPECT_EQ(code(R"({"getParameter": "*"})", "app"), 13);
}

TEST_F(Administration, TellsTestRunnersThatTestCommandsAreOn) {
    const auto started = run(R"({"getCmdLineOpts": 1})", "admin");
    EXPECT_EQ(started.at("argv"), R"(["angelia","serve","--setParameter","enableTestCommands=1"])");
    EXPECT_EQ(started.at("parsed"), R"({"setParameter":{"enableTestCommands":"1"}})");
    EXPECT_EQ(code(R"({"getCmdLineOpts": 1})", "app"), 13);
}

TEST_F(Administration, AcceptsSessionsAsTheyCome) {
    const auto started = run(R"({"startSession": 1})");
    EXPECT_EQ(started.body.view().find_path("id.id").as_binary().subtype, 4);
    EXPECT_EQ(started.at("timeoutMinutes"), "30");
    EXPECT_EQ(run(bson::make("endSessions", bson::array(started.body.view()["id"].as_document())))
                  .result(),
              "{}");
    EXPECT_EQ(result(R"({"refreshSessions": []})"), "{}");
    EXPECT_EQ(result(R"({"killAllSessions": []})"), "{}");
    EXPECT_EQ(code(R"({"endSessions": 1})"), 14);
    EXPECT_EQ(code(R"({"ping": 1, "lsid": {"id": 5}})"), 72);
    EXPECT_EQ(code(R"({"ping": 1, "lsid": {}})"), 40414);
}

TEST_F(Administration, ReportsSizesAndValidates) {
    run(R"({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]})");
    EXPECT_EQ(run(R"({"collStats": "c"})").at("count"), "2");
    EXPECT_EQ(run(R"({"collStats": "nowhere"})").at("count"), "0");
    EXPECT_EQ(run(R"({"dbStats": 1})").at("objects"), "2");
    EXPECT_EQ(run(R"({"validate": "c"})").at("valid"), "true");
    EXPECT_EQ(code(R"({"validate": "nowhere"})"), 26);
}

}  // namespace
}  // namespace angelia::engine::command::test
