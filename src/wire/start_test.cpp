// The door on a real engine: what only shows when bytes, connections and commands work together.
#include "engine/testing/test_engine.h"
#include "wire/server.h"
#include "wire/test_client.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace angelia::wire {
namespace {

using engine::testing_support::doc;
using test::Client;

class StartedServer : public testing::Test {
  protected:
    engine::testing_support::TestEngine engine;
    std::unique_ptr<Server> server =
        Server::start(*engine, {.port = 0, .enable_test_commands = true}).value_or_throw();

    static std::string text(const bson::Document& document, std::string_view path) {
        const auto value = document.view().find_path(path);
        return value.is_missing() ? "missing" : bson::to_json(value);
    }
    /// A hello that waits for a change of the server.
    static bson::Document waiting_hello(Client& client) {
        const auto now = client.command(doc(R"({"hello": 1, "$db": "admin"})"));
        return bson::make("hello", std::int32_t{1}, "$db", "admin", "topologyVersion",
                          now["topologyVersion"], "maxAwaitTimeMS", std::int32_t{600'000});
    }
};

TEST_F(StartedServer, InsertsFromASequenceAndFinds) {
    Client client(server->port());
    const auto first = doc(R"({"_id": 1, "a": "x"})");
    const auto second = doc(R"({"_id": 2, "a": "y"})");
    client.send_command(doc(R"({"insert": "c", "$db": "app"})"), 0,
                        {{"documents", {first.view(), second.view()}}});
    EXPECT_EQ(text(client.receive()->body, "n"), "2");
    const auto found = client.command(doc(R"({"find": "c", "$db": "app", "filter": {"a": "y"}})"));
    EXPECT_EQ(text(found, "cursor.firstBatch"), R"([{"_id":2,"a":"y"}])");
}

TEST_F(StartedServer, RefusesAnUnknownSequence) {
    Client client(server->port());
    const auto document = doc(R"({"_id": 1})");
    client.send_command(doc(R"({"insert": "c", "documents": [{"_id": 5}], "$db": "app"})"), 0,
                        {{"wings", {document.view()}}});
    EXPECT_EQ(text(client.receive()->body, "code"), "40415");
    EXPECT_EQ(text(client.command(doc(R"({"count": "c", "$db": "app"})")), "n"), "0");
}

TEST_F(StartedServer, AppliesUnacknowledgedWrites) {
    Client client(server->port());
    client.send_command(
        doc(R"({"insert": "c", "$db": "app", "documents": [{"_id": 1}], "writeConcern": {"w": 0}})"),
        flag::kMoreToCome);
    client.send_command(
        doc(R"({"insert": "c", "$db": "app", "documents": [{"_id": 1}], "writeConcern": {"w": 0}})"),
        flag::kMoreToCome);
    EXPECT_EQ(text(client.command(doc(R"({"count": "c", "$db": "app"})")), "n"), "1");
}

TEST_F(StartedServer, KeepsOrderAcrossCommandsThatRunElsewhere) {
    Client client(server->port());
    const auto insert = doc(R"({"insert": "c", "$db": "app", "documents": [{"a": 1}]})");
    const auto aggregate = doc(
        R"({"aggregate": "c", "$db": "app", "pipeline": [{"$count": "n"}], "cursor": {}})");  // on
                                                                                              // a
                                                                                              // worker
    const auto ping = doc(R"({"ping": 1, "$db": "app"})");
    for (int i = 0; i < 20; ++i) {
        client.send_command(insert);
        client.send_command(aggregate);
        client.send_command(ping);
    }
    for (int i = 1; i <= 20; ++i) {
        EXPECT_EQ(text(client.receive()->body, "n"), "1");
        EXPECT_EQ(text(client.receive()->body, "cursor.firstBatch"),
                  "[{\"n\":" + std::to_string(i) + "}]");
        EXPECT_EQ(text(client.receive()->body, "cursor"), "missing");
    }
}

TEST_F(StartedServer, StopEndsWhatWaitsAndSaysThatItShutsDown) {
    Client monitor(server->port());
    monitor.send_command(waiting_hello(monitor), flag::kExhaustAllowed);
    Client watcher(server->port());
    const auto opened = watcher.command(doc(
        R"({"aggregate": "c", "$db": "app", "pipeline": [{"$changeStream": {}}], "cursor": {}})"));
    watcher.send_command(bson::make("getMore", opened.view().find_path("cursor.id"), "collection",
                                    "c", "$db", "app", "maxTimeMS", std::int32_t{600'000}));
    EXPECT_TRUE(monitor.silent(20));
    EXPECT_TRUE(watcher.silent(20));

    server->stop();

    const auto goodbye = monitor.receive();
    ASSERT_TRUE(goodbye.has_value());
    EXPECT_EQ(text(goodbye->body, "code"), "91");
    EXPECT_EQ(text(goodbye->body, "topologyVersion.counter"), "1");
    EXPECT_EQ(goodbye->flags, 0u);
    const auto ended = watcher.receive();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(text(ended->body, "code"), "91");
    EXPECT_EQ(text(ended->body, "errorLabels"), R"(["ResumableChangeStreamError"])");
    EXPECT_TRUE(monitor.closed_by_server());
    EXPECT_TRUE(watcher.closed_by_server());
}

TEST_F(StartedServer, AFailPointHangsUp) {
    Client client(server->port());
    EXPECT_EQ(
        text(client.command(
                 doc(R"({"configureFailPoint": "failCommand", "$db": "admin", "mode": {"times": 1},
                                          "data": {"failCommands": ["insert"], "closeConnection": true}})")),
             "count"),
        "0");
    client.send_command(doc(R"({"insert": "c", "$db": "app", "documents": [{"_id": 1}]})"));
    EXPECT_TRUE(client.closed_by_server());
    Client again(server->port());
    EXPECT_EQ(text(again.command(doc(R"({"count": "c", "$db": "app"})")), "n"), "0");
}

TEST_F(StartedServer, OffersTheCompressorsThatBothKnow) {
    Client client(server->port());
    const auto hello = client.command(doc(
        R"({"hello": 1, "$db": "admin", "compression": ["lz4", "zlib", "snappy", "zstd", "zlib"]})"));
    EXPECT_EQ(text(hello, "compression"), R"(["zlib","snappy","zstd"])");
    EXPECT_EQ(text(client.command(doc(R"({"hello": 1, "$db": "admin"})")), "compression"),
              "missing");
    EXPECT_EQ(text(client.command(doc(R"({"hello": 1, "$db": "admin", "compression": ["lz4"]})")),
                   "compression"),
              "missing");
    for (const char* bad : {R"({"hello": 1, "$db": "admin", "compression": "zlib"})",
                            R"({"hello": 1, "$db": "admin", "compression": [3]})"})
        EXPECT_EQ(text(client.command(doc(bad)), "code"), "14");
}

TEST_F(StartedServer, AnswersAPackedCommandPackedTheSameWay) {
    Client client(server->port());
    const auto document = bson::make("_id", std::int32_t{1}, "pad", std::string(100'000, 'x'));
    client.command(bson::make("insert", "c", "$db", "app", "documents", bson::array(document)));
    const auto pad = std::string(200, ' ');
    const auto find = bson::make("find", "c", "$db", "app", "comment", pad);
    for (const auto compressor : {Compressor::Snappy, Compressor::Zlib, Compressor::Zstd}) {
        const auto id = client.send_packed(compressor, find);
        const auto reply = client.receive();
        ASSERT_TRUE(reply.has_value());
        EXPECT_EQ(reply->packed_with, compressor);
        EXPECT_EQ(reply->header.response_to, id);
        EXPECT_EQ(reply->body.view().find_path("cursor.firstBatch.0.pad").as_string().size(),
                  100'000u);
        client.send_command(find);
        EXPECT_EQ(client.receive()->packed_with, std::nullopt) << "a plain request, a plain reply";
        client.send_packed(compressor,
                           bson::make("hello", std::int32_t{1}, "$db", "admin", "comment", pad));
        EXPECT_EQ(client.receive()->packed_with, std::nullopt) << "hello";
    }
}

TEST_F(StartedServer, PackedRequestsMayWantNoAnswerAndCarryAChecksum) {
    Client client(server->port());
    const auto insert = doc(
        R"({"insert": "c", "$db": "app", "documents": [{"_id": 1, "pad": "                                                                                "}], "writeConcern": {"w": 0}})");
    client.send_packed(Compressor::Zlib, insert, flag::kMoreToCome | flag::kChecksumPresent);
    EXPECT_EQ(text(client.command(doc(R"({"count": "c", "$db": "app"})")), "n"), "1");
    const auto wrong = bson::make("ping", std::int32_t{1}, "pad", std::string(100, ' '));
    client.send_packed(Compressor::Zlib, wrong);
    EXPECT_EQ(text(client.receive()->body, "code"), "40571") << "malformed inside: answered";
}

TEST_F(StartedServer, DamagedPackedMessagesEndTheConnectionAndOnlyThat) {
    const std::string plain =
        encode_request(1, 0,
                       bson::make("insert", "c", "$db", "app", "documents",
                                  bson::array(bson::make("pad", std::string(500, 'x')))));
    for (const auto compressor : {Compressor::Snappy, Compressor::Zlib, Compressor::Zstd}) {
        std::string packed = pack_message(compressor, plain, "").value();
        packed[kHeaderBytes + 4] = static_cast<char>(packed[kHeaderBytes + 4] ^ 1);  // the size
        Client client(server->port());
        client.send_bytes(packed);
        EXPECT_TRUE(client.closed_by_server());
    }
    Client client(server->port());
    EXPECT_EQ(text(client.command(doc(R"({"count": "c", "$db": "app"})")), "n"), "0");
}

TEST(StartServer, WritesItsAddressIntoTheDataFolder) {
    const engine::testing_support::TempFolder folder;
    engine::testing_support::TestEngine engine(
        engine::testing_support::folder_options(folder.path()));
    const auto server = Server::start(*engine, {.port = 0}).value_or_throw();
    std::ifstream file(folder.path() + "/endpoint");
    std::stringstream content;
    content << file.rdbuf();
    EXPECT_NE(content.str().find(server->uri()), std::string::npos) << content.str();
}

}  // namespace
}  // namespace angelia::wire
