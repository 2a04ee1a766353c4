// Random transactions by many clients on one engine, and the check of what they saw; with faults
// planted in the engine, each of which must be found.
#include "transactions/workload.h"

#include "support/seeds.h"

#include <gtest/gtest.h>

#include <iostream>

namespace angelia::transactions {
namespace {

using namespace engine;
using namespace engine::testing_support;

struct Played {
    Report report;
    std::string validity;
};

/// One run on a new engine, checked.
Played play(const Plan& plan, EngineOptions options) {
    TestEngine engine(std::move(options));
    make_lists(engine);
    Recorder recorder;
    run(
        plan, [&](std::int64_t number) { return engine_session(*engine, number); }, recorder);
    auto report = check(recorder.take(all_lists(engine)));
    std::cout << "seed " << plan.seed << ": " << report.committed << " committed, "
              << report.aborted << " aborted, " << report.write_skews << " write skews"
              << std::endl;
    return {std::move(report), engine.validate(kLists)};
}

Report play_well(const Plan& plan, EngineOptions options) {
    auto played = play(plan, std::move(options));
    EXPECT_EQ(played.report.text(), "") << "seed " << plan.seed;
    EXPECT_EQ(played.validity, "valid") << "seed " << plan.seed;
    EXPECT_EQ(played.report.unknown, 0u);
    return std::move(played.report);
}

Plan meeting_clients(std::uint64_t seed) {
    Plan plan;
    plan.seed = seed;
    return plan;
}

/// One transaction after the other over many lists, and readers who try to see a half of one.
Plan wide_transactions(std::uint64_t seed) {
    Plan plan;
    plan.seed = seed;
    plan.wide = true;
    plan.clients = 1;
    plan.plain_writers = 0;
    plan.plain_readers = 3;
    plan.plain_per_turn = 20;
    plan.keys = 30;
    plan.turns = 60;
    plan.turns_per_epoch = 15;
    return plan;
}

class Isolation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Isolation, HoldsInMemory) {
    const auto report = play_well(meeting_clients(GetParam()), memory_options());
    EXPECT_GT(report.committed, 100u);
    EXPECT_GT(report.aborted, 10u);
}

TEST_P(Isolation, HoldsOnDisk) {
    auto plan = meeting_clients(GetParam());
    plan.turns = 200;
    TempFolder folder;
    const auto report = play_well(plan, folder_options(folder.path()));
    EXPECT_GT(report.committed, 50u);
}

TEST_P(Isolation, HoldsForWideTransactions) {
    EXPECT_GT(play_well(wide_transactions(GetParam()), memory_options()).committed, 30u);
    auto plan = wide_transactions(GetParam());
    plan.turns = 30;
    TempFolder folder;
    EXPECT_GT(play_well(plan, folder_options(folder.path())).committed, 15u);
}

TEST_P(Isolation, LetsWriteSkewBe) {
    Plan plan;
    plan.seed = GetParam();
    plan.pairs = true;
    plan.clients = 2;
    plan.plain_writers = 0;
    plan.turns = 120;
    EXPECT_GT(play_well(plan, memory_options()).write_skews, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Isolation, ::testing::ValuesIn(test::seeds(4, 40)));

// ---- planted faults: the plans are those that hold above

struct Planted {
    const char* name;
    TransactionMutant mutant;
    Anomaly found_as;
    Plan (*plan)(std::uint64_t seed);
};

class PlantedFaults : public ::testing::TestWithParam<Planted> {};

constexpr std::uint64_t kRunsMax = 30;

TEST_P(PlantedFaults, IsFound) {
    const auto& planted = GetParam();
    const auto start = std::chrono::steady_clock::now();
    Report report;
    std::uint64_t runs = 0;
    while (!report.has(planted.found_as) && runs < kRunsMax) {
        auto options = memory_options();
        options.transaction_mutant = planted.mutant;
        report = play(planted.plan(++runs), std::move(options)).report;
    }
    const auto took =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
    std::cout << planted.name << ": " << took.count() << " ms, " << runs << " runs\n"
              << report.text().substr(0, 1500) << std::endl;
    EXPECT_TRUE(report.has(planted.found_as));
    EXPECT_NE(report.text().find(name_of(planted.found_as)), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedFaults,
    ::testing::Values(Planted{"NoConflictCheck", TransactionMutant::NoConflictCheck,
                              Anomaly::LostAppend, meeting_clients},
                      Planted{"LateSnapshot", TransactionMutant::LateSnapshot,
                              Anomaly::MovedSnapshot, meeting_clients},
                      Planted{"IntentsFreedEarly", TransactionMutant::IntentsFreedEarly,
                              Anomaly::LostAppend, meeting_clients},
                      Planted{"IndexChangesIgnored", TransactionMutant::IndexChangesIgnored,
                              Anomaly::OwnWriteMissing, meeting_clients},
                      Planted{"CommitInTwoBatches", TransactionMutant::CommitInTwoBatches,
                              Anomaly::FracturedRead, wide_transactions}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace angelia::transactions
