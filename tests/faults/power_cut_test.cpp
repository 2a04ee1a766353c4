// Power cuts at random instants under mixed load through the engine: what was acknowledged is
// there, everything agrees, and streams go on from the tokens they handed out.
#include "faults/drill.h"

#include <gtest/gtest.h>

#include <iostream>

namespace angelia::engine::faults {
namespace {

using Survivors = storage::testing::FaultEnvironment::Survivors;

class PowerCuts : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(PowerCuts, TakeNothingThatWasAcknowledged) {
    const auto seed = GetParam();
    std::cout << "seed " << seed << std::endl;
    std::mt19937_64 random(seed);
    Drill drill(seed);
    drill.open();
    for (int round = 0; round < 3; ++round) {
        drill.start_load();
        drill.wait_for(30 + random() % 300);
        drill.power_cut_and_on(random() % 2 == 0 ? Survivors::Nothing : Survivors::RandomPrefix);
        EXPECT_EQ(shown(drill.check()), "") << "seed " << seed << " round " << round;
        drill.clock().jump_system(-std::chrono::seconds(random() % 100));
    }
    EXPECT_GE(drill.acknowledged(), 90u);
    std::size_t delivered = 0;
    for (const auto& reader : drill.readers()) delivered += reader->delivered();
    EXPECT_GT(delivered, 0u);
}

TEST_P(PowerCuts, WhileTheOplogIsTrimmedLeaveNoStreamSilentlyShorter) {
    const auto seed = GetParam();
    std::cout << "seed " << seed << std::endl;
    std::mt19937_64 random(seed + 500);
    Drill drill(seed, 256 << 10);
    drill.open();
    for (int round = 0; round < 2; ++round) {
        drill.start_load();
        drill.wait_for(100 + random() % 300);
        drill.power_cut_and_on(random() % 2 == 0 ? Survivors::Nothing : Survivors::RandomPrefix);
        EXPECT_EQ(shown(drill.check()), "") << "seed " << seed << " round " << round;
    }
    std::size_t forgotten = 0;
    for (const auto& reader : drill.readers()) forgotten += reader->forgotten();
    EXPECT_GT(forgotten, 0u);  // there was something to trim
}

INSTANTIATE_TEST_SUITE_P(Seeds, PowerCuts, ::testing::ValuesIn(seeds(12, 100)));

// ---- the check can fail

TEST(PowerCutsCheck, FindsAnAcknowledgementBeforeTheSync) {
    Drill drill(1);
    drill.open();
    drill.start_load();
    drill.wait_for(100);
    drill.power_cut_and_on(Survivors::Nothing);
    ASSERT_EQ(shown(drill.check()), "");
    drill.disk().hold_log_syncs();
    drill.start_load(false);
    drill.wait_for(100);
    drill.disk().power_cut();
    drill.disk().release_log_syncs();
    drill.power_cut_and_on(Survivors::Nothing);
    EXPECT_NE(shown(drill.check()).find("was acknowledged as"), std::string::npos);
}

TEST(PowerCutsCheck, FindsAnEventThatVanished) {
    Drill drill(2);
    drill.open();
    drill.start_load();
    drill.wait_for(100);
    drill.power_cut_and_on(Survivors::Nothing);
    ASSERT_EQ(shown(drill.check()), "");
    drill.readers()[0]->pretend({"{}", "insert", 7, 0});
    EXPECT_NE(shown(drill.check()).find("was delivered and is not there any more"),
              std::string::npos);
}

TEST(PowerCutsCheck, FindsAStreamThatIsSilentlyShorter) {
    Drill drill(4);
    drill.open();
    drill.start_load();
    drill.wait_for(100);
    drill.power_cut_and_on(Survivors::Nothing);
    auto& reader = *drill.readers()[0];
    ASSERT_GT(reader.delivered(), 0u);
    ASSERT_EQ(shown(reader.check_trimmed(drill.engine())), "");
    reader.pretend({"{}", "insert", 7, 0});
    EXPECT_NE(shown(reader.check_trimmed(drill.engine())).find("is silently shorter"),
              std::string::npos);
}

TEST(PowerCutsCheck, FindsATimestampUsedTwice) {
    Times times;
    times.told(bson::Timestamp{5, 1});
    times.told(bson::Timestamp{5, 2});
    EXPECT_TRUE(times.take_violations().empty());
    times.told(bson::Timestamp{5, 1});
    EXPECT_EQ(times.take_violations().size(), 1u);
}

}  // namespace
}  // namespace angelia::engine::faults
