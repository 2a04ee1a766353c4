#include <angelia/base/manual_executor.h>

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace angelia {
namespace {

using std::chrono::seconds;

TEST(ManualExecutor, RunsOnlyWhenTold) {
    ManualClock clock;
    ManualExecutor lane(clock);
    std::string seen;
    lane.post([&] {
        seen += 'a';
        lane.post([&] { seen += 'c'; });
    });
    lane.post([&] { seen += 'b'; });
    EXPECT_EQ(seen, "");
    EXPECT_EQ(lane.run_ready(), 3U);
    EXPECT_EQ(seen, "abc");
}

TEST(ManualExecutor, TimersSeeTheClockAtTheirOwnTime) {
    ManualClock clock;
    ManualExecutor lane(clock);
    const auto start = clock.steady_now();
    std::vector<std::int64_t> fired_at;
    const auto note = [&] {
        fired_at.push_back(std::chrono::duration_cast<seconds>(clock.steady_now() - start).count());
    };
    lane.post_after(seconds(5), note);
    lane.post_after(seconds(2), [&] {
        note();
        lane.post_after(seconds(1), note);
    });
    lane.post_after(seconds(60), note);
    lane.advance(seconds(10));
    EXPECT_EQ(fired_at, (std::vector<std::int64_t>{2, 3, 5}));
    EXPECT_EQ(clock.steady_now() - start, seconds(10));
}

TEST(ManualExecutor, CancelsTimers) {
    ManualClock clock;
    ManualExecutor lane(clock);
    bool ran = false;
    const auto timer = lane.post_after(seconds(1), [&] { ran = true; });
    EXPECT_TRUE(lane.cancel(timer));
    EXPECT_FALSE(lane.cancel(timer));
    lane.advance(seconds(2));
    EXPECT_FALSE(ran);
}

TEST(ManualExecutor, StopIsACrash) {
    ManualClock clock;
    ManualScheduler scheduler(clock);
    ManualExecutor crashing(scheduler);
    ManualExecutor living(scheduler);
    std::string seen;
    crashing.post([&] { seen += 'x'; });
    crashing.post_after(seconds(1), [&] { seen += 'y'; });
    living.post_after(seconds(1), [&] { seen += 'z'; });
    crashing.stop();
    crashing.post([&] { seen += 'w'; });
    scheduler.advance(seconds(2));
    EXPECT_EQ(seen, "z");
}

std::string interleaving(std::uint64_t seed) {
    ManualClock clock;
    ManualScheduler scheduler(clock, seed);
    ManualExecutor a(scheduler);
    ManualExecutor b(scheduler);
    std::string seen;
    for (const char c : {'1', '2', '3', '4'}) {
        a.post([&seen, c] { seen += c; });
        b.post([&seen, c] { seen += static_cast<char>(c - '1' + 'a'); });
    }
    scheduler.run_ready();
    return seen;
}

TEST(ManualScheduler, WithoutASeedRunsInTheOrderOfPosting) {
    EXPECT_EQ(interleaving(0), "1a2b3c4d");
}

TEST(ManualScheduler, ASeedDrawsAnOrderThatKeepsEachLane) {
    std::set<std::string> orders;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const std::string order = interleaving(seed);
        EXPECT_EQ(order, interleaving(seed)) << "the same seed gives the same order";
        std::string lane_a;
        for (const char c : order) lane_a += c <= '4' ? std::string(1, c) : "";
        EXPECT_EQ(lane_a, "1234");
        orders.insert(order);
    }
    EXPECT_GT(orders.size(), 10U);
}

TEST(ManualSchedulerDeathTest, EndlessWorkAborts) {
    ManualClock clock;
    ManualScheduler scheduler(clock);
    ManualExecutor other(scheduler);
    std::function<void()> forever = [&] { other.post(forever); };
    forever();
    EXPECT_DEATH(scheduler.run_ready(1000), "broken promise");
}

}  // namespace
}  // namespace angelia
