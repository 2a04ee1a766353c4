#include "store_under_test.h"

#include "store/testing/simulated_store.h"

#include <angelia/base/threads.h>

namespace angelia::store::contract {
namespace {

class SimulatedUnderTest final : public StoreUnderTest {
  public:
    SimulatedUnderTest() : server_(lane_, real_clock()) { EXPECT_TRUE(lane_.start()); }
    ~SimulatedUnderTest() override { lane_.stop(StopMode::Drop); }
    Store connect() override {
        return Store(server_.connect("client" + std::to_string(++clients_)), "contract");
    }
    void expire_documents() override { EXPECT_EQ(server_.run_ttl_pass(), 1); }

  private:
    SerialExecutor lane_;
    testing::SimulatedServer server_;
    int clients_ = 0;
};

INSTANTIATE_TEST_SUITE_P(simulated, StoreContract,
                         ::testing::Values(Adapter{
                             "simulated", [] { return std::make_unique<SimulatedUnderTest>(); }}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace angelia::store::contract
