#include "wire/server.h"

#include "wire/test_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace angelia::wire {
namespace {

using engine::command::Reply;
using engine::command::ReplyFunction;
using engine::command::Request;
using test::Client;

/// Commands that only the wire sees: `echo` answers at once, `later` when told, `thread` from
/// another thread, `twice` as an exhaust stream, `hang` ends the connection.
class FakeService final : public engine::command::CommandService {
  public:
    ~FakeService() override {
        for (auto& thread : threads_) thread.join();
    }
    void run(const std::shared_ptr<engine::command::Connection>& connection, Request request,
             ReplyFunction reply) override {
        const std::string name((*request.body.begin()).key);
        auto answer =
            bson::make("ok", 1.0, "name", name, "value", (*request.body.begin()).value,
                       "connection", connection->id, "documents",
                       static_cast<std::int64_t>(
                           request.sequences.empty() ? 0 : request.sequences[0].documents.size()));
        if (name == "later") {
            const std::lock_guard lock(mutex_);
            ++running_;
            running_max_ = std::max(running_max_, running_.load());
            held_.push_back(
                [this, reply, body = std::make_shared<bson::Document>(std::move(answer))] {
                    --running_;
                    reply({.body = body->copy()});
                });
            changed_.notify_all();
        } else if (name == "thread") {
            threads_.emplace_back(
                [reply, body = std::move(answer)]() mutable { reply({.body = std::move(body)}); });
        } else if (name == "twice") {
            reply({.body = answer.copy(), .more_to_come = request.exhaust_allowed});
            if (request.exhaust_allowed) reply({.body = std::move(answer)});
        } else if (name == "hang") {
            reply({.close_connection = true, .send = false});
        } else if (name == "big") {
            reply({.body = bson::make("ok", 1.0, "pad",
                                      std::string(static_cast<std::size_t>(
                                                      (*request.body.begin()).value.as_int32()),
                                                  'x'))});
        } else {
            reply({.body = std::move(answer)});
        }
    }
    void connection_closed(const std::shared_ptr<engine::command::Connection>&) override {
        const std::lock_guard lock(mutex_);
        ++closed_;
        changed_.notify_all();
    }
    void begin_shutdown() override { release_all(); }

    bool wait_for_held(std::size_t count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(20),
                                 [&] { return held_.size() >= count; });
    }
    bool wait_for_closed(int count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return closed_ >= count; });
    }
    void release_all() {
        std::vector<std::function<void()>> held;
        {
            const std::lock_guard lock(mutex_);
            held.swap(held_);
        }
        for (auto& f : held) f();
    }
    int running_max() const { return running_max_; }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::function<void()>> held_;
    std::vector<std::thread> threads_;
    std::atomic<int> running_{0};
    int running_max_ = 0;
    int closed_ = 0;
};

class ServerTest : public testing::Test {
  protected:
    std::shared_ptr<FakeService> service = std::make_shared<FakeService>();
    std::unique_ptr<Server> server = Server::open(service, {.port = 0}).value_or_throw();

    static bson::Document command(std::string_view name, std::int32_t value) {
        bson::Builder b;
        b.add(name, value).add("$db", "app");
        return b.take();
    }
};

TEST_F(ServerTest, AnswersWithTheRequestsId) {
    Client client(server->port());
    const auto id = client.send_command(command("echo", 5));
    const auto reply = client.receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->header.response_to, id);
    EXPECT_EQ(reply->header.op_code, opcode::kMessage);
    EXPECT_EQ(reply->body["value"].as_int32(), 5);
    EXPECT_EQ(server->uri(),
              "mongodb://127.0.0.1:" + std::to_string(server->port()) + "/?replicaSet=rs0");
}

TEST_F(ServerTest, TakesMessagesByteByByte) {
    Client client(server->port());
    const auto bytes = encode_request(9, 0, command("echo", 1));
    for (const char c : bytes) client.send_bytes({&c, 1});
    const auto reply = client.receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->header.response_to, 9);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
    Client client(server->port());
    std::string all;
    for (std::int32_t i = 0; i < 500; ++i)
        all += encode_request(i, 0, command(i % 3 == 0 ? "thread" : "echo", i));
    client.send_bytes(all);
    for (std::int32_t i = 0; i < 500; ++i) {
        const auto reply = client.receive();
        ASSERT_TRUE(reply.has_value()) << i;
        ASSERT_EQ(reply->header.response_to, i);
    }
}

TEST_F(ServerTest, RunsOneCommandAtATimePerConnection) {
    Client client(server->port());
    client.send_command(command("later", 1));
    client.send_command(command("later", 2));
    client.send_command(command("echo", 3));
    for (std::int32_t i = 1; i <= 2; ++i) {
        ASSERT_TRUE(service->wait_for_held(1));
        EXPECT_TRUE(client.silent(20));
        service->release_all();
        const auto reply = client.receive();
        ASSERT_TRUE(reply.has_value());
        EXPECT_EQ(reply->body["value"].as_int32(), i);
    }
    EXPECT_EQ(client.receive()->body["value"].as_int32(), 3);
    EXPECT_EQ(service->running_max(), 1);
}

TEST_F(ServerTest, OneSlowConnectionDoesNotHoldUpOthers) {
    Client slow(server->port());
    slow.send_command(command("later", 1));
    ASSERT_TRUE(service->wait_for_held(1));
    Client a(server->port());
    Client b(server->port());
    EXPECT_EQ(a.command(command("echo", 1))["value"].as_int32(), 1);
    EXPECT_EQ(b.command(command("echo", 2))["value"].as_int32(), 2);
    service->release_all();
    EXPECT_TRUE(slow.receive().has_value());
}

TEST_F(ServerTest, StopsReadingBehindARunningCommandUntilItIsAnswered) {
    Client client(server->port());
    client.send_command(command("later", 1));
    ASSERT_TRUE(service->wait_for_held(1));
    const std::int64_t before = service->bytes_in.load();
    const auto document = bson::make("pad", std::string(1'000'000, 'x'));
    std::thread sender([&] {
        for (int i = 0; i < 40; ++i)
            client.send_command(command("echo", i), 0, {{"documents", {document.view()}}});
    });
    Client other(server->port());
    for (int i = 0; i < 50; ++i)
        EXPECT_EQ(other.command(command("echo", i))["value"].as_int32(), i);
    EXPECT_LT(service->bytes_in.load() - before, 2'000'000);
    service->release_all();
    ASSERT_TRUE(client.receive().has_value());
    for (int i = 0; i < 40; ++i) ASSERT_EQ(client.receive()->body["documents"].as_int64(), 1) << i;
    sender.join();
}

TEST_F(ServerTest, HoldsBackCommandsOfAClientThatDoesNotRead) {
    Client client(server->port());
    for (std::int32_t i = 0; i < 60; ++i) client.send_command(command("big", 1'000'000));
    Client other(server->port());
    EXPECT_EQ(other.command(command("echo", 1))["value"].as_int32(), 1);
    EXPECT_LT(service->requests.load(), 50);
    for (int i = 0; i < 60; ++i)
        ASSERT_EQ(client.receive()->body["pad"].as_string().size(), 1'000'000u);
}

TEST_F(ServerTest, TakesAndGivesLargeMessages) {
    Client client(server->port());
    const auto document = bson::make("pad", std::string(16'000'000, 'x'));
    client.send_command(command("echo", 1), 0, {{"documents", {document.view(), document.view()}}});
    EXPECT_EQ(client.receive()->body["documents"].as_int64(), 2);
    EXPECT_EQ(client.command(command("big", 16'000'000))["pad"].as_string().size(), 16'000'000u);
    EXPECT_EQ(client.command(command("echo", 3))["value"].as_int32(), 3);
}

TEST_F(ServerTest, PacksAndUnpacksLargeMessagesInOrder) {
    Client client(server->port());
    const std::string pad(3'000'000, 'p');
    for (const auto compressor : {Compressor::Snappy, Compressor::Zlib, Compressor::Zstd}) {
        client.send_packed(compressor, bson::make("echo", pad, "$db", "x"));
        client.send_packed(compressor, bson::make("big", std::int32_t{8'000'000}, "$db", "x", "pad",
                                                  std::string(100, ' ')));
        client.send_command(bson::make("echo", std::int32_t{7}, "$db", "x"));
        const auto echoed = client.receive();
        ASSERT_TRUE(echoed.has_value());
        EXPECT_EQ(echoed->packed_with, compressor);
        EXPECT_EQ(echoed->body["value"].as_string(), pad);
        const auto big = client.receive();
        ASSERT_TRUE(big.has_value());
        EXPECT_EQ(big->packed_with, compressor);
        EXPECT_EQ(big->body["pad"].as_string().size(), 8'000'000u);
        EXPECT_LT(big->header.response_to, client.receive()->header.response_to);
    }
}

TEST_F(ServerTest, AClientThatLeavesWhileItsMessageIsUnpackedIsForgotten) {
    {
        Client client(server->port());
        client.send_packed(Compressor::Zlib,
                           bson::make("echo", std::string(9'000'000, 'p'), "$db", "x"));
    }
    Client other(server->port());
    EXPECT_EQ(other.command(bson::make("echo", std::int32_t{1}, "$db", "x"))["name"].as_string(),
              "echo");
    EXPECT_TRUE(service->wait_for_closed(1));
}

TEST_F(ServerTest, AnswersNothingToUnacknowledgedRequests) {
    Client client(server->port());
    client.send_command(command("echo", 1), flag::kMoreToCome);
    client.send_command(bson::make("echo", std::int32_t{1}),
                        flag::kMoreToCome);  // an error ($db is missing) stays unanswered too
    const auto id = client.send_command(command("echo", 2));
    EXPECT_EQ(client.receive()->header.response_to, id);
}

TEST_F(ServerTest, AnswersMalformedMessagesAndGoesOn) {
    Client client(server->port());
    auto bytes = encode_request(77, 0, command("echo", 1));
    bytes[kHeaderBytes + 5] = 3;  // the body's length
    client.send_bytes(bytes);
    const auto reply = client.receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->header.response_to, 77);
    EXPECT_EQ(reply->body["code"].as_int32(), 22);
    EXPECT_EQ(reply->body["codeName"].as_string(), "InvalidBSON");
    EXPECT_EQ(client.command(command("echo", 2))["value"].as_int32(), 2);
}

TEST_F(ServerTest, AnswersAndClosesOnDamagedMessages) {
    Client client(server->port());
    auto bytes = encode_request(1, flag::kChecksumPresent, command("echo", 1));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    client.send_bytes(bytes);
    EXPECT_EQ(client.receive()->body["code"].as_int32(), 288);
    EXPECT_TRUE(client.closed_by_server());
}

TEST_F(ServerTest, ClosesOnImpossibleLengthsAndOpcodes) {
    for (const std::string_view bytes :
         {std::string_view("\x0F\0\0\0\1\0\0\0\0\0\0\0\xDD\7\0\0", 16),
          std::string_view("\1\x6C\xDC\2\1\0\0\0\0\0\0\0\xDD\7\0\0", 16),
          std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
          std::string_view("\x10\0\0\0\1\0\0\0\0\0\0\0\xD2\7\0\0", 16)}) {
        Client client(server->port());
        client.send_bytes(bytes);
        EXPECT_TRUE(client.closed_by_server());
    }
    Client client(server->port());
    EXPECT_EQ(client.command(command("echo", 2))["value"].as_int32(), 2);
}

TEST_F(ServerTest, AnswersLegacyQueriesWithLegacyReplies) {
    Client client(server->port());
    const auto query = bson::make("isMaster", std::int32_t{1});
    std::string payload("\0\0\0\0admin.$cmd\0\0\0\0\0\xFF\xFF\xFF\xFF", 23);
    payload.append(query.bytes());
    std::string bytes(16, '\0');
    const std::int32_t header[] = {static_cast<std::int32_t>(16 + payload.size()), 5, 0, 2004};
    std::memcpy(bytes.data(), header, 16);
    client.send_bytes(bytes + payload);
    const auto reply = client.receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->header.op_code, opcode::kReply);
    EXPECT_EQ(reply->flags, 8u);
    EXPECT_EQ(reply->body["name"].as_string(), "isMaster");
}

TEST_F(ServerTest, StreamsExhaustReplies) {
    Client client(server->port());
    const auto id = client.send_command(command("twice", 1), flag::kExhaustAllowed);
    const auto first = client.receive();
    const auto second = client.receive();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->flags, flag::kMoreToCome);
    EXPECT_EQ(first->header.response_to, id);
    EXPECT_EQ(second->flags, 0u);
    EXPECT_EQ(second->header.response_to, first->header.request_id);
    EXPECT_NE(second->header.request_id, first->header.request_id);
    EXPECT_EQ(client.command(command("twice", 2))["value"].as_int32(), 2);
}

TEST_F(ServerTest, HangsUpWhenACommandSaysSo) {
    Client client(server->port());
    client.send_command(command("hang", 1));
    EXPECT_TRUE(client.closed_by_server());
}

TEST_F(ServerTest, NoticesAClosedConnectionWhileACommandRuns) {
    {
        Client client(server->port());
        client.send_command(command("later", 1));
        ASSERT_TRUE(service->wait_for_held(1));
    }
    EXPECT_TRUE(service->wait_for_closed(1));
    service->release_all();
    Client client(server->port());
    EXPECT_EQ(client.command(command("echo", 2))["value"].as_int32(), 2);
}

TEST_F(ServerTest, StopAnswersWhatRunsAndCloses) {
    Client idle(server->port());
    EXPECT_EQ(idle.command(command("echo", 1))["value"].as_int32(), 1);
    Client busy(server->port());
    busy.send_command(command("later", 7));
    ASSERT_TRUE(service->wait_for_held(1));
    server->stop();
    const auto reply = busy.receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->body["value"].as_int32(), 7);
    EXPECT_TRUE(busy.closed_by_server());
    EXPECT_TRUE(idle.closed_by_server());
    EXPECT_FALSE(Client(server->port()).connected());
}

TEST_F(ServerTest, LateRepliesAfterStopAreHarmless) {
    Client client(server->port());
    client.send_command(command("later", 1));
    ASSERT_TRUE(service->wait_for_held(1));
    client.stop_sending();  // ends the connection while its command runs
    EXPECT_TRUE(service->wait_for_closed(1));
    server.reset();
    service->release_all();
    EXPECT_EQ(service->connections_current.load(), 0);
}

TEST(ServerOpen, RefusesMoreConnectionsThanAllowed) {
    auto service = std::make_shared<FakeService>();
    const auto server = Server::open(service, {.port = 0, .connections_max = 1}).value_or_throw();
    Client first(server->port());
    EXPECT_EQ(first.command(bson::make("echo", std::int32_t{1}, "$db", "a"))["value"].as_int32(),
              1);
    Client second(server->port());
    EXPECT_TRUE(second.closed_by_server());
    EXPECT_EQ(first.command(bson::make("echo", std::int32_t{2}, "$db", "a"))["value"].as_int32(),
              2);
}

TEST(ServerOpen, BindsOnlyLoopbackAndSaysWhy) {
    for (const char* address : {"0.0.0.0", "::", "192.0.2.1"}) {
        const auto refused =
            Server::open(std::make_shared<FakeService>(), {.bind = address, .port = 0});
        ASSERT_FALSE(refused) << address;
        EXPECT_EQ(refused.error().code, ErrorCode::CommandNotSupported);
        EXPECT_NE(refused.error().message.find("no authentication yet"), std::string::npos)
            << refused.error().message;
    }
    const auto nonsense =
        Server::open(std::make_shared<FakeService>(), {.bind = "here", .port = 0});
    ASSERT_FALSE(nonsense);
    EXPECT_EQ(nonsense.error().code, ErrorCode::BadValue);
}

TEST(ServerOpen, NamesAPortInUse) {
    const auto first = Server::open(std::make_shared<FakeService>(), {.port = 0}).value_or_throw();
    const auto second = Server::open(std::make_shared<FakeService>(), {.port = first->port()});
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find(std::to_string(first->port())), std::string::npos);
    EXPECT_NE(second.error().message.find("in use"), std::string::npos);
}

}  // namespace
}  // namespace angelia::wire
