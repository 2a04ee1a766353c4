// Standard messaging under a random schedule. A failure prints its seed: ANGELIA_SIM_SEED=<seed>
// plays exactly that one again.
#include "world.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace angelia::simulation {
namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::vector<std::uint64_t> seeds() {
    if (const auto one = number_from_environment("ANGELIA_SIM_SEED", 0)) return {one};
    std::vector<std::uint64_t> all(
        number_from_environment("ANGELIA_SIM_SEEDS", std::getenv("ANGELIA_LONG") ? 3000 : 300));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i + 1;
    return all;
}

/// The first seed whose history breaks a promise; 0 when none of the first hundred does.
std::uint64_t first_seed_that_finds(Mutant mutant) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        if (!play(seed, mutant).broken.empty()) return seed;
    }
    return 0;
}

TEST(Simulation, PromisesHoldOnEverySeed) {
    Report total;
    for (const auto seed : seeds()) {
        const auto report = play(seed);
        for (const auto& broken : report.broken) ADD_FAILURE() << "seed " << seed << ": " << broken;
        total.executions += report.executions;
        total.crashes += report.crashes;
        total.take_overs += report.take_overs;
        total.stale_outcomes += report.stale_outcomes;
        total.answers += report.answers;
    }
    std::printf("executions %zu, crashes %zu, take-overs %zu, stale outcomes %zu, answers %zu\n",
                total.executions, total.crashes, total.take_overs, total.stale_outcomes,
                total.answers);
    EXPECT_GT(total.executions, 0u);
}

TEST(Simulation, SchedulesReachTheCornersTheyAreFor) {
    Report total;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const auto report = play(seed);
        total.crashes += report.crashes;
        total.take_overs += report.take_overs;
        total.stale_outcomes += report.stale_outcomes;
        total.answers += report.answers;
    }
    EXPECT_GT(total.crashes, 0u);
    EXPECT_GT(total.take_overs, 0u);
    EXPECT_GT(total.stale_outcomes, 0u);
    EXPECT_GT(total.answers, 0u);
}

TEST(Simulation, SameSeedIsTheSameHistory) {
    const auto a = play(42), b = play(42);
    EXPECT_EQ(a.executions, b.executions);
    EXPECT_EQ(a.take_overs, b.take_overs);
    EXPECT_EQ(a.stale_outcomes, b.stale_outcomes);
}

TEST(Simulation, FindsAPlantedDoubleClaim) {
    EXPECT_NE(first_seed_that_finds(Mutant::ClaimsOfOthersCount), 0u);
}
TEST(Simulation, FindsAPlantedLoss) {
    EXPECT_NE(first_seed_that_finds(Mutant::MessagesVanish), 0u);
}
TEST(Simulation, FindsAForgottenMark) {
    EXPECT_NE(first_seed_that_finds(Mutant::EventsAndPollsRepeat), 0u);
}

}  // namespace
}  // namespace angelia::simulation
