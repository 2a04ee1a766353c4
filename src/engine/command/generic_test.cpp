// What all commands have in common: the shape of replies, unknown things, concerns, sessions,
// labels.
#include "engine/command/command_table.h"
#include "engine/command/test_commands.h"

namespace angelia::engine::command::test {
namespace {

class Generic : public CommandTest {};

TEST_F(Generic, EveryReplyCarriesOkAndTimes) {
    for (const char* json : {R"({"ping": 1})", R"({"fly": 1})", R"({"ping": 1, "wings": 2})",
                             R"({"insert": "c", "documents": [{"a": 1}]})"}) {
        const auto answer = run(json);
        const auto view = answer.body.view();
        EXPECT_TRUE(view["ok"].is(bson::Type::Double)) << json;
        EXPECT_TRUE(view["operationTime"].is(bson::Type::Timestamp)) << json;
        EXPECT_TRUE(view.find_path("$clusterTime.clusterTime").is(bson::Type::Timestamp)) << json;
        EXPECT_EQ(view.find_path("$clusterTime.signature.hash").as_binary().bytes.size(), 20u)
            << json;
        EXPECT_TRUE(view.find_path("$clusterTime.signature.keyId").is(bson::Type::Int64)) << json;
    }
}

TEST_F(Generic, OperationTimeOfAWriteIsItsOwnAndGrows) {
    const auto first = run(R"({"insert": "c", "documents": [{"a": 1}]})");
    const auto second = run(R"({"insert": "c", "documents": [{"a": 1}]})");
    EXPECT_LT(first.body.view()["operationTime"].as_timestamp(),
              second.body.view()["operationTime"].as_timestamp());
}

TEST_F(Generic, RefusesWhatItDoesNotKnow) {
    EXPECT_EQ(run(R"({"fly": 1})").message(), "no such command: 'fly'");
    EXPECT_EQ(code(R"({"fly": 1})"), 59);
    EXPECT_EQ(code(R"({"Ping": 1})"), 59);
    EXPECT_EQ(code(R"({"atlasVersion": 1})", "admin"), 59);
    const auto unknown = run(R"({"find": "c", "wings": 2})");
    EXPECT_EQ(unknown.code(), 40415);
    EXPECT_EQ(unknown.body.view()["codeName"].as_string(), "Location40415");
    EXPECT_NE(unknown.message().find("find.wings"), std::string::npos);
    EXPECT_EQ(code(R"({"insert": "c"})"), 40414);
    EXPECT_EQ(code(R"({"find": "c", "filter": 3})"), 14);
    EXPECT_EQ(code(R"({"find": "c", "limit": "x"})"), 14);
    EXPECT_EQ(code(R"({"find": 3})"), 2);
    EXPECT_EQ(code(R"({"listDatabases": 1})", "app"), 13);
}

TEST_F(Generic, IgnoresGenericArgumentsWithoutMeaning) {
    EXPECT_EQ(
        result(
            R"({"ping": 1, "comment": "x", "$readPreference": {"mode": "primary"}, "$client": {}, "apiVersion": "1",
                         "apiStrict": true, "maxTimeMS": 10, "$audit": {}, "rawData": true})"),
        "{}");
}

TEST_F(Generic, ChecksTheVersionedApi) {
    EXPECT_EQ(code(R"({"ping": 1, "apiVersion": "2"})"), 322);
    EXPECT_EQ(code(R"({"distinct": "c", "key": "a", "apiVersion": "1", "apiStrict": true})"), 323);
    EXPECT_EQ(code(R"({"ping": 1, "apiStrict": true})"), 72);
}

TEST_F(Generic, AppliesTheWriteAndReportsAConcernThatOneNodeCannotMeet) {
    const auto two = run(R"({"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 2}})");
    EXPECT_TRUE(two.ok());
    EXPECT_EQ(two.at("writeConcernError.code"), "100");
    EXPECT_EQ(two.at("writeConcernError.codeName"), R"("UnsatisfiableWriteConcern")");
    EXPECT_EQ(two.at("writeConcernError.errInfo.writeConcern.provenance"), R"("clientSupplied")");
    EXPECT_EQ(run(R"({"insert": "c", "documents": [{"_id": 2}], "writeConcern": {"w": "dc1"}})")
                  .at("writeConcernError.code"),
              "79");
    EXPECT_EQ(result(R"({"count": "c"})"), R"({"n":2})");
    EXPECT_EQ(
        result(
            R"({"insert": "c", "documents": [{}], "writeConcern": {"w": "majority", "j": true, "wtimeout": 5}})"),
        R"({"n":1})");
}

TEST_F(Generic, RefusesImpossibleConcernsBeforeWriting) {
    for (const auto& [concern, expected] :
         std::initializer_list<std::pair<const char*, int>>{{R"({"w": -1})", 9},
                                                            {R"({"w": 51})", 9},
                                                            {R"({"w": 0, "j": true})", 9},
                                                            {R"({"w": []})", 9},
                                                            {R"({"x": 1})", 40415},
                                                            {R"("majority")", 14}}) {
        EXPECT_EQ(code(std::string(R"({"insert": "c", "documents": [{}], "writeConcern": )") +
                       concern + "}"),
                  expected)
            << concern;
    }
    EXPECT_EQ(result(R"({"count": "c"})"), R"({"n":0})");
    EXPECT_EQ(code(R"({"find": "c", "writeConcern": {"w": 1}})"), 72);
    EXPECT_EQ(code(R"({"find": "c", "readConcern": {"level": "best"}})"), 9);
    EXPECT_EQ(code(R"({"count": "c", "readConcern": {"level": "snapshot"}})"), 72);
    EXPECT_EQ(code(R"({"insert": "c", "documents": [{}], "readConcern": {"level": "majority"}})"),
              72);
    EXPECT_EQ(
        code(
            R"({"find": "c", "readConcern": {"level": "linearizable", "afterClusterTime": {"$timestamp": {"t": 1, "i": 1}}}})"),
        72);
    EXPECT_EQ(
        code(
            R"({"find": "c", "readConcern": {"level": "majority", "afterClusterTime": {"$timestamp": {"t": 1, "i": 1}}}})"),
        0);
}

TEST_F(Generic, AdoptsClusterTimeWithinReason) {
    const auto now =
        static_cast<std::uint32_t>(engine->options().storage.clock->system_millis() / 1000);
    const auto send = [&](std::uint32_t seconds) {
        return run(bson::make("insert", "c", "documents", bson::array(bson::make("a", 1.0)),
                              "$clusterTime",
                              bson::make("clusterTime", bson::Timestamp{seconds, 7})));
    };
    const auto near = send(now + 30);
    EXPECT_GT(near.body.view()["operationTime"].as_timestamp(), (bson::Timestamp{now + 30, 7}));
    EXPECT_TRUE(send(now + 3600).ok());
    const auto later = run(R"({"ping": 1})");
    EXPECT_LT(later.body.view()["operationTime"].as_timestamp().seconds, now + 3600);
    EXPECT_EQ(send(now + 800 * 24 * 3600).code(), 205);
}

TEST_F(Generic, CommandTableIsSortedAndFindsAliases) {
    const auto table = command_table();
    for (std::size_t i = 1; i < table.size(); ++i) EXPECT_LT(table[i - 1]->name, table[i]->name);
    for (const auto* entry : table) EXPECT_FALSE(entry->help.empty()) << entry->name;
    EXPECT_EQ(find_command("ismaster"), find_command("hello"));
    EXPECT_EQ(find_command("findandmodify"), find_command("findAndModify"));
    EXPECT_EQ(command_index(*table.back()), table.size() - 1);
}

TEST_F(Generic, RefusesNewCommandsDuringShutdown) {
    service->begin_shutdown();
    const auto answer = run(R"({"find": "c"})");
    EXPECT_EQ(answer.code(), 91);
    EXPECT_EQ(answer.at("topologyVersion.counter"), "1");
}

}  // namespace
}  // namespace angelia::engine::command::test
