// The window case by case, and against a simple model over random histories.
#include "outbox/window.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace angelia::outbox {
namespace {

std::vector<std::uint64_t> start_all(Window& window) {
    std::vector<std::uint64_t> started;
    while (auto seq = window.start_next()) started.push_back(*seq);
    return started;
}
using Numbers = std::vector<std::uint64_t>;

TEST(Window, NumbersGoOnBehindTheCheckpointWithoutHoles) {
    Window window(DispatchMode::Unordered, {}, 41);
    EXPECT_EQ(window.push("a", 1), 42u);
    EXPECT_EQ(window.push("b", 1), 43u);
    EXPECT_EQ(window.checkpoint(), 41u);
}

TEST(Window, SerialSendsOneAtATime) {
    Window window(DispatchMode::Serial, {}, 0);
    for (const char* key : {"a", "b", "c"}) window.push(key, 1);
    EXPECT_EQ(start_all(window), Numbers{1});
    window.failed(1);
    EXPECT_EQ(start_all(window), Numbers{});
    window.ready(1);
    EXPECT_EQ(start_all(window), Numbers{1});
    window.settle(1);
    EXPECT_EQ(start_all(window), Numbers{2});
}

TEST(Window, KeysOverlapAndOneKeyDoesNot) {
    Window window(DispatchMode::OrderedByKey, {}, 0);
    for (const char* key : {"a", "a", "b", "", ""}) window.push(key, 1);
    EXPECT_EQ(start_all(window), (Numbers{1, 3, 4}));
    window.settle(1);
    EXPECT_EQ(start_all(window), Numbers{2});
    window.failed(2);
    window.settle(3);
    window.settle(4);
    EXPECT_EQ(start_all(window), Numbers{5});
    EXPECT_EQ(window.settled_through(), 1u);
}

TEST(Window, TheCheckpointIsContiguousInEveryMode) {
    Window window(DispatchMode::Unordered, {}, 0);
    for (int i = 0; i < 5; ++i) window.push("k", 1);
    EXPECT_EQ(start_all(window), (Numbers{1, 2, 3, 4, 5}));
    window.settle(3);
    window.settle(2);
    EXPECT_EQ(window.settled_through(), 0u);
    window.settle(1);
    EXPECT_EQ(window.settled_through(), 3u);
    window.settle(5);
    EXPECT_EQ(window.settled_through(), 3u);
    EXPECT_FALSE(window.idle());
    window.settle(4);
    EXPECT_EQ(window.settled_through(), 5u);
    EXPECT_TRUE(window.idle());
}

TEST(Window, ASlotIsFreeWhenItsCheckpointIsDurable) {
    Window window(DispatchMode::Unordered, {.messages_max = 2, .bytes_max = 100}, 0);
    window.push("a", 1);
    window.push("b", 1);
    EXPECT_FALSE(window.has_room());
    start_all(window);
    window.settle(1);
    EXPECT_FALSE(window.has_room());
    window.checkpointed(1);
    EXPECT_TRUE(window.has_room());
    EXPECT_EQ(window.push("c", 500), 3u);
    EXPECT_FALSE(window.has_room());
    EXPECT_EQ(window.bytes(), 501u);
}

TEST(Window, OneMessageFitsHoweverLargeItIs) {
    Window window(DispatchMode::Serial, {.messages_max = 10, .bytes_max = 10}, 0);
    EXPECT_TRUE(window.has_room());
    window.push("a", 1000);
    EXPECT_FALSE(window.has_room());
}

TEST(Window, ABlockedKeyHandsOutWhatWaitsAndStartsNothing) {
    Window window(DispatchMode::OrderedByKey, {}, 0);
    for (const char* key : {"a", "b", "a", "a"}) window.push(key, 1);
    EXPECT_EQ(start_all(window), (Numbers{1, 2}));
    window.failed(1);
    EXPECT_EQ(window.block_key("a"), (Numbers{1, 3, 4}));
    window.ready(1);
    EXPECT_EQ(start_all(window), Numbers{});
    for (const auto seq : {1, 3, 4}) window.settle(static_cast<std::uint64_t>(seq));  // parked
    window.settle(2);
    EXPECT_EQ(window.settled_through(), 4u);
    window.push("a", 1);
    EXPECT_EQ(start_all(window), Numbers{});
    window.release_key("a");
    EXPECT_EQ(start_all(window), Numbers{5});
}

/// A message may run when no earlier unsettled one of its line is there; checked after every step.
class WindowHistory : public ::testing::TestWithParam<std::tuple<DispatchMode, int>> {};

TEST_P(WindowHistory, KeepsOrderAndContiguity) {
    const auto [mode, seed] = GetParam();
    std::mt19937 random(static_cast<unsigned>(seed));
    Window window(mode, {.messages_max = 16, .bytes_max = 1000}, 0);
    struct Known {
        std::string key;
        enum { Waiting, Running, Retrying, Settled } state = Waiting;
    };
    std::map<std::uint64_t, Known> known;
    const auto pick = [&](auto state) -> std::optional<std::uint64_t> {
        Numbers of_state;
        for (const auto& [seq, k] : known)
            if (k.state == state) of_state.push_back(seq);
        if (of_state.empty()) return std::nullopt;
        return of_state[random() % of_state.size()];
    };
    for (int step = 0; step < 3000; ++step) {
        switch (random() % 6) {
            case 0:
                if (window.has_room()) {
                    const std::string key(1, static_cast<char>('a' + random() % 4));
                    known[window.push(key, 1 + random() % 100)].key = key;
                }
                break;
            case 1:
                while (auto seq = window.start_next()) {
                    auto& k = known.at(*seq);
                    ASSERT_EQ(k.state, Known::Waiting);
                    for (const auto& [other, o] : known) {
                        if (other >= *seq || o.state == Known::Settled) continue;
                        const bool same_line =
                            mode == DispatchMode::Serial ||
                            (mode == DispatchMode::OrderedByKey && o.key == k.key);
                        ASSERT_FALSE(same_line)
                            << other << " is not settled, " << *seq << " starts";
                    }
                    k.state = Known::Running;
                }
                break;
            case 2:
            case 3:
                if (const auto seq = pick(Known::Running)) {
                    window.settle(*seq);
                    known[*seq].state = Known::Settled;
                }
                break;
            case 4:
                if (const auto seq = pick(Known::Running)) {
                    window.failed(*seq);
                    known[*seq].state = Known::Retrying;
                }
                if (const auto seq = pick(Known::Retrying)) {
                    window.ready(*seq);
                    known[*seq].state = Known::Waiting;
                }
                break;
            default:
                window.checkpointed(window.settled_through());
        }
        std::uint64_t through = 0;
        while (known.count(through + 1) != 0 && known[through + 1].state == Known::Settled)
            ++through;
        ASSERT_EQ(window.settled_through(), through);
        ASSERT_LE(window.messages(), 16u);
    }
    EXPECT_GT(window.settled_through(), 50u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WindowHistory,
                         ::testing::Combine(::testing::Values(DispatchMode::Serial,
                                                              DispatchMode::OrderedByKey,
                                                              DispatchMode::Unordered),
                                            ::testing::Range(1, 6)));

}  // namespace
}  // namespace angelia::outbox
