#include "cli/demo_proof.h"

#include <gtest/gtest.h>

namespace angelia::cli::demo {
namespace {

bson::ObjectId id(std::uint8_t n) {
    bson::ObjectId i;
    i.bytes[11] = n;
    return i;
}

/// Two listeners; broadcast 1; work 2 (worker-1) and 3 (worker-1 killed at 100, worker-2 again at
/// 2200); request 4.
Records good() {
    Records r;
    r.broadcast_listeners = {"b1", "b2"};
    r.published = {
        {id(1), Kind::Broadcast}, {id(2), Kind::Work}, {id(3), Kind::Work}, {id(4), Kind::Request}};
    r.effects = {{id(1), "b1", 0, 50, 0},      {id(1), "b2", 0, 50, 0},
                 {id(2), "w1", 1, 60, 2060},   {id(3), "w1", 1, 90, 2090},
                 {id(3), "w2", 2, 2200, 4200}, {id(4), "r", 0, 70, 0}};
    r.kills = {{"w1", 100}};
    r.answered = {id(4)};
    return r;
}

TEST(DemoProof, HoldsForAGoodRun) {
    const Proof p = check(good());
    EXPECT_TRUE(p.holds()) << p.violations.front();
    EXPECT_EQ(p.later_attempts, 1u);
    EXPECT_EQ(p.missing, 0u);
    EXPECT_EQ(p.broadcasts, 1u);
    EXPECT_EQ(p.work, 2u);
    EXPECT_EQ(p.requests, 1u);
}

TEST(DemoProof, AnyRemovedEffectBreaksIt) {
    for (const std::size_t i : {0u, 1u, 2u, 5u}) {
        Records r = good();
        r.effects.erase(r.effects.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_EQ(check(r).violation_count, 1u) << i;
        EXPECT_EQ(check(r).missing, 1u) << i;
    }
}

TEST(DemoProof, AnyRepeatedEffectBreaksIt) {
    for (std::size_t i = 0; i < good().effects.size(); ++i) {
        Records r = good();
        r.effects.push_back(r.effects[i]);
        EXPECT_EQ(check(r).violation_count, 1u) << i;
    }
}

TEST(DemoProof, ASecondAttemptNeedsADeadOrLateHolder) {
    Records r = good();
    r.kills.clear();  // its lease had run out at 2090, the second attempt began at 2200
    EXPECT_TRUE(check(r).holds());
    r.effects[4].at_ms = 2000;
    EXPECT_EQ(check(r).violation_count, 1u);
    r.kills = {{"w1", 100}};
    EXPECT_TRUE(check(r).holds());
    r.kills = {{"w1", 2100}};  // killed only afterwards
    EXPECT_EQ(check(r).violation_count, 1u);
}

TEST(DemoProof, AFirstAttemptWithoutEffectNeedsAKill) {
    Records r = good();
    r.effects.erase(r.effects.begin() + 3);
    EXPECT_TRUE(check(r).holds());
    r.kills.clear();
    EXPECT_EQ(check(r).violation_count, 1u);
}

TEST(DemoProof, UnansweredRequestsAndUnknownEffectsBreakIt) {
    Records r = good();
    r.answered.clear();
    EXPECT_EQ(check(r).violation_count, 1u);
    r = good();
    r.effects.push_back({id(9), "w1", 1, 1, 2});
    EXPECT_EQ(check(r).violation_count, 1u);
}

}  // namespace
}  // namespace angelia::cli::demo
