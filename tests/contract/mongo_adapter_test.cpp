#include "store_under_test.h"

#include "engine/engine.h"
#include "store_mongo/driver_log.h"
#include "store_mongo/mongo_store.h"
#include "wire/server.h"

#include <cstdlib>

namespace angelia::store::contract {
namespace {

/// Servers that go down at the end of each test are no news.
[[maybe_unused]] const bool kQuietDriver = [] {
    mongo::set_driver_log({});
    return true;
}();

Store connect_to(const std::string& uri) {
    const auto address = StoreAddress::parse(uri).value_or_throw();
    return Store(mongo::MongoStore::open(address, {}).value_or_throw(), address.database);
}

/// libmongoc over loopback to a server in this process.
class ServedUnderTest final : public StoreUnderTest {
  public:
    ServedUnderTest() {
        engine::EngineOptions options;
        options.storage.memory = true;
        engine_ = engine::Engine::open(std::move(options)).value_or_throw();
        wire::ServerOptions server;
        server.port = 0;
        server_ = wire::Server::start(*engine_, server).value_or_throw();
    }
    ~ServedUnderTest() override {
        server_->stop();
        server_.reset();
        EXPECT_TRUE(engine_->close());
    }
    Store connect() override {
        return connect_to("mongodb://127.0.0.1:" + std::to_string(server_->port()) +
                          "/contract?replicaSet=rs0");
    }
    void expire_documents() override { EXPECT_TRUE(engine_->run_ttl_pass()); }

  private:
    std::unique_ptr<engine::Engine> engine_;
    std::unique_ptr<wire::Server> server_;
};

INSTANTIATE_TEST_SUITE_P(mongo_served, StoreContract,
                         ::testing::Values(Adapter{
                             "mongo_served", [] { return std::make_unique<ServedUnderTest>(); }}),
                         ::testing::PrintToStringParamName());

/// Any server, named by ANGELIA_TEST_MONGODB_URI. Its user must be allowed to set
/// ttlMonitorSleepSecs.
class OutsideUnderTest final : public StoreUnderTest {
  public:
    explicit OutsideUnderTest(std::string uri) : uri_(std::move(uri)) {}
    Store connect() override { return connect_to(uri_); }
    void expire_documents() override {
        Store store = connect();
        EXPECT_TRUE(store.diagnostics()->run_command(
            "admin",
            bson::make("setParameter", std::int32_t{1}, "ttlMonitorSleepSecs", std::int32_t{1})));
    }

  private:
    const std::string uri_;
};

std::vector<Adapter> outside() {
    const char* uri = std::getenv("ANGELIA_TEST_MONGODB_URI");
    if (uri == nullptr) return {};
    return {Adapter{"mongo_outside", [uri] { return std::make_unique<OutsideUnderTest>(uri); }}};
}

INSTANTIATE_TEST_SUITE_P(mongo_outside, StoreContract, ::testing::ValuesIn(outside()),
                         ::testing::PrintToStringParamName());
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContract);

}  // namespace
}  // namespace angelia::store::contract
