// A server, a proxy that can spoil the conversation, a store through the proxy and one beside it.
#pragma once

#include "faulty_proxy.h"
#include "watch_log.h"

#include "engine/engine.h"
#include "store_mongo/driver_log.h"
#include "store_mongo/mongo_store.h"
#include "wire/server.h"

#include <angelia/bson/json.h>

#include <gtest/gtest.h>

namespace angelia::regressions {

using namespace std::chrono_literals;
using test_support::error_reply;
using test_support::FaultyProxy;
using test_support::WatchLog;
using Fault = FaultyProxy::Fault;
using Command = FaultyProxy::Command;

/// The driver logs every fault that the proxy makes: silence, before the first store is opened.
inline const bool kQuietDriver = [] {
    store::mongo::set_driver_log({});
    return true;
}();

inline store::Store connect_mongo(std::uint16_t port,
                                  milliseconds reply_grace = store::mongo::kReplyGrace) {
    const auto address =
        store::StoreAddress::parse("mongodb://127.0.0.1:" + std::to_string(port) +
                                   "/db?directConnection=true&serverSelectionTimeoutMS=2000")
            .value_or_throw();
    return store::Store(store::mongo::MongoStore::open(address, {}, reply_grace).value_or_throw(),
                        "db");
}

struct MongoScene {
    explicit MongoScene(milliseconds reply_grace = store::mongo::kReplyGrace)
        : engine(start_engine()),
          server(start_server(*engine)),
          proxy(FaultyProxy::start(server->port())),
          faulty(connect_mongo(proxy->port(), reply_grace)),
          direct(connect_mongo(server->port())) {}
    ~MongoScene() {
        proxy->set_rule({});
        proxy->release();
        EXPECT_TRUE(faulty.close());
        EXPECT_TRUE(direct.close());
        faulty = store::Store();
        direct = store::Store();
        proxy.reset();
        server->stop();
        server.reset();
        EXPECT_TRUE(engine->close());
    }
    static std::unique_ptr<engine::Engine> start_engine() {
        engine::EngineOptions options;
        options.storage.memory = true;
        return engine::Engine::open(std::move(options)).value_or_throw();
    }
    static std::unique_ptr<wire::Server> start_server(engine::Engine& engine) {
        wire::ServerOptions options;
        options.port = 0;
        return wire::Server::start(engine, options).value_or_throw();
    }

    std::unique_ptr<store::Watch> watch(WatchLog& log, milliseconds max_wait = 200ms,
                                        std::int32_t batch_size = 100) {
        store::WatchRequest request;
        request.collection = c;
        request.max_wait = max_wait;
        request.batch_size = batch_size;
        return faulty.watch(std::move(request), log.events()).value_or_throw();
    }
    void put(std::int32_t id) { EXPECT_TRUE(direct.insert(c, bson::make("_id", id))); }
    void put_many(std::int32_t from, std::int32_t to) {
        for (std::int32_t id = from; id <= to; ++id) put(id);
    }
    /// Change stream cursors open at the server.
    std::int64_t open_cursors() {
        return engine->status()["cursors"].as_document()["open"].to_int64().value_or(-1);
    }

    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<wire::Server> server;
    std::unique_ptr<FaultyProxy> proxy;
    store::Store faulty, direct;
    store::CollectionName c{"db", "messages"};
};

inline bool is_stream(const Command& command) {
    return command.name == "aggregate" &&
           bson::to_json(command.body).find("$changeStream") != std::string::npos;
}

inline std::string inserts(std::int32_t from, std::int32_t to) {
    std::string out;
    for (std::int32_t id = from; id <= to; ++id) out += "insert " + std::to_string(id) + "\n";
    return out;
}

}  // namespace angelia::regressions
