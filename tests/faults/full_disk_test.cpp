// A disk that is full for a while, and one whose sync fails once: writes say so, reads and streams
// go on, nothing acknowledged is lost.
#include "faults/drill.h"

#include <gtest/gtest.h>

#include <iostream>

namespace angelia::engine::faults {
namespace {

using namespace testing_support;
using Survivors = storage::testing::FaultEnvironment::Survivors;

/// True once `condition` holds; gives up after half a minute.
template <class Condition>
bool eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
        if (condition()) return true;
        std::this_thread::yield();
    }
    return false;
}

const Namespace kProbe{"probe", "probe"};

class FullDisk : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(FullDisk, RefusesWritesUntilThereIsSpaceAgainAndReadsGoOn) {
    const auto seed = GetParam();
    std::cout << "seed " << seed << std::endl;
    std::mt19937_64 random(seed);
    Drill drill(seed);
    drill.open();
    auto& engine = drill.engine();
    ASSERT_EQ(code_of(engine.insert(kProbe, R"({"_id": "before", "a": 1})")), "ok");
    StreamReader probe(kProbe);
    probe.start(engine);
    drill.start_load();
    drill.wait_for(50 + random() % 100);
    drill.disk().fill_disk_after(random() % 300'000);
    drill.join_load();

    // Full: every kind of change is refused by name ...
    EXPECT_EQ(code_of(engine.insert(kProbe, R"({"_id": "refused"})")), "OutOfDiskSpace");
    EXPECT_EQ(code_of(engine.update(kProbe, R"({"_id": "before"})", R"({"$set": {"a": 2}})")),
              "OutOfDiskSpace");
    EXPECT_EQ(code_of(engine.remove(kProbe, R"({"_id": "before"})")), "OutOfDiskSpace");
    EXPECT_EQ(code_of(engine.create({"probe", "refused"})), "OutOfDiskSpace");
    EXPECT_EQ(code_of(engine.create_index(kProbe, index_spec("a_1", R"({"a": 1})"))),
              "OutOfDiskSpace");
    EXPECT_EQ(code_of(engine.drop(kProbe)), "OutOfDiskSpace");
    // ... reads answer, and streams stay.
    EXPECT_EQ(engine.find(kProbe), (std::vector<std::string>{R"({"_id":"before","a":1})"}));
    EXPECT_EQ(engine->list_indexes(kProbe).value_or_throw().size(), 1u);
    EXPECT_EQ(engine->list_collections("probe").size(), 1u);
    for (int c = 0; c < kCollections; ++c)
        EXPECT_EQ(engine.count(loaded(c)),
                  static_cast<std::int64_t>(engine.find(loaded(c)).size()));
    EXPECT_FALSE(probe.error().has_value());
    for (const auto& reader : drill.readers()) EXPECT_FALSE(reader->error().has_value());

    // Space again: writes go on without a restart, and the same streams tell of them.
    drill.disk().free_disk();
    EXPECT_TRUE(eventually([&] { return engine->storage().statistics().writable; }))
        << engine->storage().statistics().write_error;
    EXPECT_EQ(code_of(engine.insert(kProbe, R"({"_id": "after", "a": 3})")), "ok");
    EXPECT_TRUE(eventually([&] { return probe.delivered() == 1; }));
    EXPECT_EQ(engine.validate(kProbe), "valid");
    EXPECT_EQ(engine.find(kProbe),
              (std::vector<std::string>{R"({"_id":"before","a":1})", R"({"_id":"after","a":3})"}));
    probe.stop();
    for (const auto& reader : drill.readers()) {
        EXPECT_FALSE(reader->error().has_value());
        reader->stop();
    }
    EXPECT_EQ(shown(drill.check()), "") << "seed " << seed << " after space came back";

    drill.start_load();
    drill.wait_for(50);
    drill.power_cut_and_on(Survivors::Nothing);
    EXPECT_EQ(shown(drill.check()), "") << "seed " << seed << " after a power cut";
    EXPECT_EQ(drill.engine().find(kProbe),
              (std::vector<std::string>{R"({"_id":"before","a":1})", R"({"_id":"after","a":3})"}));
}

TEST_P(FullDisk, PowerCutWhileItIsFullTakesNothingThatWasAcknowledged) {
    const auto seed = GetParam();
    std::mt19937_64 random(seed + 5000);
    Drill drill(seed + 5000);
    drill.open();
    drill.start_load();
    drill.wait_for(50);
    drill.disk().fill_disk_after(random() % 200'000);
    drill.join_load();
    drill.disk().power_cut();
    drill.disk().free_disk();
    drill.power_cut_and_on(Survivors::RandomPrefix);
    EXPECT_EQ(shown(drill.check()), "") << "seed " << seed;
}

TEST_P(FullDisk, AFailedSyncStopsWritesUntilARestart) {
    const auto seed = GetParam();
    std::mt19937_64 random(seed + 9000);
    Drill drill(seed + 9000);
    drill.open();
    drill.start_load();
    drill.wait_for(20 + random() % 200);
    drill.disk().fail_next_log_sync();
    drill.join_load();
    const auto refused = drill.engine().insert(kProbe, R"({"_id": 1})");
    EXPECT_EQ(code_of(refused), "InternalError");
    EXPECT_NE(refused.error.value_or(Error(ErrorCode::Ok, ""))
                  .message.find("until the process is restarted"),
              std::string::npos);
    EXPECT_EQ(drill.engine().count(kExpiring, R"({"_id": {"$exists": false}})"), 0);  // reads go on
    drill.restart();
    EXPECT_EQ(shown(drill.check()), "") << "seed " << seed << " after the restart";
    drill.start_load();
    drill.wait_for(20);
    drill.power_cut_and_on(Survivors::Nothing);
    EXPECT_EQ(shown(drill.check()), "") << "seed " << seed << " after a power cut";
}

INSTANTIATE_TEST_SUITE_P(Seeds, FullDisk, ::testing::ValuesIn(seeds(6, 60)));

}  // namespace
}  // namespace angelia::engine::faults
