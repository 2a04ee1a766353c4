// Runs commands against an engine in memory, as a client would: JSON in, JSON out.
#pragma once

#include "engine/command/command.h"
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

namespace angelia::engine::command::test {

using testing_support::doc;

/// What came back for one request.
struct Answer {
    bson::Document body;
    bool closed = false;
    bool more_to_come = false;

    std::string json() const { return bson::to_json(body.view()); }
    std::int32_t code() const {
        return body.view()["code"].is_missing() ? 0 : body.view()["code"].as_int32();
    }
    std::string message() const {
        return std::string(body.view()["errmsg"].get_string().value_or(""));
    }
    bool ok() const { return body.view()["ok"].truthy(); }
    /// The value at a dotted path as relaxed JSON; "missing".
    std::string at(std::string_view path) const {
        const auto value = body.view().find_path(path);
        return value.is_missing() ? "missing" : bson::to_json(value);
    }
    /// The reply without what every reply has.
    std::string result() const {
        bson::Builder b;
        for (const auto& [key, value] : body.view())
            if (key != "ok" && key != "$clusterTime" && key != "operationTime") b.add(key, value);
        const auto rest = b.take();
        return bson::to_json(rest.view());
    }
};

class CommandTest : public ::testing::Test {
  protected:
    explicit CommandTest(EngineOptions options = test_options())
        : engine(std::move(options)), service(CommandService::create(*engine)) {
        connection->id = 1;
        connection->peer = "127.0.0.1:40000";
        connection->advertised_host = "127.0.0.1:27027";
    }
    static EngineOptions test_options() {
        auto options = testing_support::memory_options();
        options.enable_test_commands = true;
        return options;
    }

    /// A request whose answers arrive in a queue; the answer may come later.
    std::future<Answer> begin(const bson::Document& body, std::string_view database = "app",
                              bool exhaust = false) {
        auto bytes = std::make_shared<const bson::Document>(body.copy());
        Request request;
        request.body = bytes->view();
        request.database = database;
        request.bytes = bytes;
        request.exhaust_allowed = exhaust;
        auto promise = std::make_shared<std::promise<Answer>>();
        auto first = std::make_shared<std::atomic<bool>>(true);
        auto future = promise->get_future();
        service->run(connection, std::move(request), [promise, first](Reply reply) {
            if (first->exchange(false))
                promise->set_value(
                    {std::move(reply.body), reply.close_connection, reply.more_to_come});
        });
        return future;
    }
    Answer run(const bson::Document& body, std::string_view database = "app") {
        auto future = begin(body, database);
        EXPECT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready)
            << bson::to_json(body.view());
        return future.get();
    }
    Answer run(std::string_view json, std::string_view database = "app") {
        return run(doc(json), database);
    }
    std::string result(std::string_view json, std::string_view database = "app") {
        return run(json, database).result();
    }
    std::int32_t code(std::string_view json, std::string_view database = "app") {
        return run(json, database).code();
    }

    testing_support::TestEngine engine;
    std::unique_ptr<CommandService> service;
    std::shared_ptr<Connection> connection = std::make_shared<Connection>();
};

}  // namespace angelia::engine::command::test
