#include "engine/command/test_commands.h"

namespace angelia::engine::command::test {
namespace {

class Hello : public CommandTest {
  protected:
    /// A hello that waits, on top of what the server last said.
    bson::Document waiting(std::int32_t max_ms) {
        const auto version = run(R"({"hello": 1})").body.copy();
        return bson::make("hello", std::int32_t{1}, "topologyVersion",
                          version.view()["topologyVersion"], "maxAwaitTimeMS", max_ms);
    }
    static constexpr const char* kClient =
        R"({"hello": 1, "client": {"application": {"name": "app1"}, "driver": {"name": "d", "version": "1"}, "os": {"type": "Linux"}}})";
};

TEST_F(Hello, DescribesASetWithOnePrimary) {
    const auto answer = run(R"({"hello": 1, "helloOk": true})");
    const auto v = answer.body.view();
    EXPECT_TRUE(v["helloOk"].as_bool());
    EXPECT_TRUE(v["isWritablePrimary"].as_bool());
    EXPECT_FALSE(v.has("ismaster"));
    EXPECT_EQ(answer.at("hosts"), R"(["127.0.0.1:27027"])");
    for (const auto& [key, expected] : std::initializer_list<std::pair<const char*, const char*>>{
             {"setName", R"("rs0")"},
             {"primary", R"("127.0.0.1:27027")"},
             {"me", R"("127.0.0.1:27027")"},
             {"secondary", "false"},
             {"readOnly", "false"}})
        EXPECT_EQ(answer.at(key), expected) << key;
    for (const auto& [key, expected] : std::initializer_list<std::pair<const char*, std::int32_t>>{
             {"setVersion", 1},
             {"maxBsonObjectSize", 16777216},
             {"maxMessageSizeBytes", 48000000},
             {"maxWriteBatchSize", 100000},
             {"logicalSessionTimeoutMinutes", 30},
             {"connectionId", 1},
             {"minWireVersion", 0},
             {"maxWireVersion", 21}})
        EXPECT_EQ(v[key].as_int32(), expected) << key;
    EXPECT_TRUE(v.find_path("topologyVersion.counter").is(bson::Type::Int64));
    EXPECT_TRUE(v.find_path("lastWrite.opTime.ts").is(bson::Type::Timestamp));
    EXPECT_TRUE(v["electionId"].is(bson::Type::ObjectId));
    EXPECT_FALSE(v.has("msg"));
}

TEST_F(Hello, OldSpellingsAnswerIsMaster) {
    for (const char* json : {R"({"isMaster": 1})", R"({"ismaster": 1})"}) {
        const auto answer = run(json);
        EXPECT_TRUE(answer.body.view()["ismaster"].as_bool());
        EXPECT_FALSE(answer.body.view().has("isWritablePrimary"));
        EXPECT_FALSE(answer.body.view().has("helloOk"));
    }
}

TEST_F(Hello, RemembersTheClientAndRefusesAChange) {
    EXPECT_TRUE(run(kClient).ok());
    EXPECT_EQ(connection->application_name, "app1");
    EXPECT_EQ(code(kClient), 186);
    EXPECT_TRUE(run(R"({"hello": 1})").ok());
}

TEST_F(Hello, RefusesMalformedClients) {
    const auto first = [this](const std::string& client) {
        connection = std::make_shared<Connection>();
        return code(R"({"hello": 1, "client": )" + client + "}");
    };
    EXPECT_EQ(first(R"({"driver": {"name": "d", "version": "1"}})"), 183);
    EXPECT_EQ(first(R"({"driver": {"name": "d"}, "os": {"type": "x"}})"), 183);
    EXPECT_EQ(first(R"({"application": {"name": ")" + std::string(129, 'x') +
                    R"("}, "driver": {"name": "d", "version": "1"}, "os": {"type": "x"}})"),
              184);
    EXPECT_EQ(first(R"({"driver": {"name": "d", "version": "1"}, "os": {"type": ")" +
                    std::string(600, 'x') + R"("}})"),
              185);
    EXPECT_EQ(first("3"), 14);
}

TEST_F(Hello, NeedsBothHalvesOfAWait) {
    EXPECT_EQ(code(R"({"hello": 1, "maxAwaitTimeMS": 10})"), 72);
    EXPECT_EQ(
        code(
            R"({"hello": 1, "topologyVersion": {"processId": {"$oid": "7fffffff0000000000000001"}, "counter": {"$numberLong": "0"}}})"),
        72);
}

TEST_F(Hello, AnswersAtOnceWhenTheClientKnowsAnotherProcess) {
    EXPECT_TRUE(
        run(R"({"hello": 1, "maxAwaitTimeMS": 100000, "topologyVersion": {"processId": {"$oid": "7fffffff0000000000000001"}, "counter": {"$numberLong": "0"}}})")
            .ok());
}

TEST_F(Hello, WaitsForItsTimeWhenNothingChanges) {
    const auto started = std::chrono::steady_clock::now();
    EXPECT_TRUE(run(waiting(30)).ok());
    EXPECT_GE(std::chrono::steady_clock::now() - started, std::chrono::milliseconds(30));
}

TEST_F(Hello, WaitingEndsWithShutdown) {
    auto future = begin(waiting(100'000), "admin");
    EXPECT_EQ(future.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    service->begin_shutdown();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    const auto answer = future.get();
    EXPECT_EQ(answer.code(), 91);
    EXPECT_EQ(answer.at("topologyVersion.counter"), "1");
}

TEST_F(Hello, WaitingEndsWithItsConnection) {
    auto future = begin(waiting(100'000), "admin");
    service->connection_closed(connection);
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_TRUE(future.get().closed);
}

TEST_F(Hello, ExhaustKeepsTheStreamOpen) {
    auto future = begin(waiting(20), "admin", true);
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_TRUE(future.get().more_to_come);
    service->connection_closed(connection);
    auto plain = begin(waiting(20), "admin");
    ASSERT_EQ(plain.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_FALSE(plain.get().more_to_come);
}

}  // namespace
}  // namespace angelia::engine::command::test
