#include "store_under_test.h"

#include "store_embedded/embedded_store.h"

#include <filesystem>
#include <random>

namespace angelia::store::contract {
namespace {

/// An engine of its own for each test; the folder goes with it.
class EmbeddedUnderTest final : public StoreUnderTest {
  public:
    explicit EmbeddedUnderTest(engine::storage::Options storage) : folder_(storage.path) {
        engine::EngineOptions options;
        options.storage = std::move(storage);
        auto opened = engine::Engine::open(std::move(options));
        engine_ = std::move(opened).value_or_throw();
    }
    ~EmbeddedUnderTest() override {
        EXPECT_TRUE(engine_->close());
        engine_.reset();
        std::error_code ignored;
        if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
    }
    Store connect() override { return store_embedded::open_embedded(engine_, "contract"); }
    void expire_documents() override { EXPECT_TRUE(engine_->run_ttl_pass()); }

  private:
    const std::string folder_;
    std::shared_ptr<engine::Engine> engine_;
};

std::unique_ptr<StoreUnderTest> in_memory() {
    engine::storage::Options options;
    options.memory = true;
    return std::make_unique<EmbeddedUnderTest>(std::move(options));
}

std::unique_ptr<StoreUnderTest> strict() {
    engine::storage::Options options;
    std::random_device random;
    options.path = ::testing::TempDir() + "/angelia_contract_" + std::to_string(random()) +
                   std::to_string(random());
    return std::make_unique<EmbeddedUnderTest>(std::move(options));
}

INSTANTIATE_TEST_SUITE_P(embedded_memory, StoreContract,
                         ::testing::Values(Adapter{"embedded_memory", in_memory}),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(embedded_strict, StoreContract,
                         ::testing::Values(Adapter{"embedded_strict", strict}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace angelia::store::contract
