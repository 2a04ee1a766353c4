// A thousand connections with a change stream each, all waiting at once: no thread each, an insert
// reaches only the stream that wants it, the end reaches all.
#include "engine/testing/test_engine.h"
#include "wire/server.h"
#include "wire/test_client.h"

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

namespace angelia::wire {
namespace {

using engine::testing_support::doc;
using test::Client;

constexpr int kStreams = 1000;
/// Event loops, workers, the engine's own, the store's: far from one per stream.
constexpr int kThreadsMax = 64;

int threads_of_this_process() {
    std::ifstream status("/proc/self/status");
    std::string word;
    int threads = -1;
    while (threads < 0 && status >> word)
        if (word == "Threads:") status >> threads;
    return threads;
}

bson::Document command_on(std::string_view json) {
    bson::Builder b;
    const auto body = doc(json);
    b.add_all(body.view()).add("$db", "app");
    return b.take();
}

class ManyStreams : public ::testing::Test {
  protected:
    ManyStreams()
        : server_(Server::start(*engine_, {.bind = "127.0.0.1", .port = 0}).value_or_throw()),
          writer_(server_->port()) {}

    /// Opens a stream that wants topic t<i>, and waits in a getMore.
    std::unique_ptr<Client> open_stream(int i) {
        auto client = std::make_unique<Client>(server_->port());
        const auto opened = client->command(command_on(fmt::format(
            R"({{"aggregate": "c", "pipeline": [{{"$changeStream": {{}}}},
                {{"$match": {{"fullDocument.topic": "t{}"}}}}], "cursor": {{}}}})",
            i)));
        const std::int64_t id = opened.view().find_path("cursor.id").to_int64().value_or(0);
        EXPECT_NE(id, 0) << bson::to_json(opened.view());
        client->send_command(bson::make("getMore", id, "collection", "c", "maxTimeMS",
                                        std::int32_t{600'000}, "$db", "app"));
        return client;
    }
    std::int64_t counter(std::string_view name) {
        const auto status = writer_.command(command_on(R"({"serverStatus": 1})"));
        return status.view()
            .find_path(fmt::format("angelia.engine.streams.{}", name))
            .to_int64()
            .value_or(-1);
    }
    bool all_wait(std::int64_t count) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (counter("waiting") != count && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
        return counter("waiting") == count;
    }

    engine::testing_support::TestEngine engine_;
    std::unique_ptr<Server> server_;
    Client writer_;
};

TEST_F(ManyStreams, WaitWithoutAThreadEachAndWakeOnlyWhoIsMeant) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < kStreams; ++i) clients.push_back(open_stream(i));
    ASSERT_TRUE(all_wait(kStreams));
    EXPECT_EQ(server_->connection_count(), kStreams + 1);
    EXPECT_LT(threads_of_this_process(), kThreadsMax);

    const std::int64_t candidates = counter("candidates");
    for (int i = 0; i < 20; ++i)
        writer_.command(command_on(
            fmt::format(R"({{"insert": "c", "documents": [{{"_id": {}, "topic": "x"}}]}})", i)));
    EXPECT_EQ(counter("candidates"), candidates);
    EXPECT_EQ(counter("eventsEncoded"), 0);

    writer_.command(command_on(R"({"insert": "c", "documents": [{"_id": 100, "topic": "t500"}]})"));
    const auto event = clients[500]->receive();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(bson::to_json(event->body.view().find_path("cursor.nextBatch.0.documentKey")),
              R"({"_id":100})");
    EXPECT_EQ(counter("candidates"), candidates + 1);
    EXPECT_EQ(counter("eventsEncoded"), 1);
    EXPECT_EQ(counter("waiting"), kStreams - 1);

    writer_.command(command_on(R"({"drop": "c"})"));
    int ended = 0;
    for (const auto& client : clients) {
        if (client == clients[500]) continue;
        const auto last = client->receive();
        ASSERT_TRUE(last.has_value());
        ended += last->body.view().find_path("cursor.id").to_int64() == 0 ? 1 : 0;
    }
    EXPECT_EQ(ended, kStreams - 1);
    EXPECT_LT(threads_of_this_process(), kThreadsMax);
}

}  // namespace
}  // namespace angelia::wire
