#include "engine/collection/gap_cache.h"

#include <gtest/gtest.h>

namespace angelia::engine {
namespace {

constexpr std::uint64_t kNow = UINT64_MAX;

TEST(GapCache, SkipsWhatAReaderFoundEmpty) {
    GapCache cache;
    cache.learn(cache.begin().lesson, "b", "f");
    EXPECT_EQ(cache.skip("a", kNow), "");
    EXPECT_EQ(cache.skip("b", kNow), "f");
    EXPECT_EQ(cache.skip("ezz", kNow), "f");
    EXPECT_EQ(cache.skip("f", kNow), "");
}

TEST(GapCache, GapsThatTouchBecomeOne) {
    GapCache cache;
    const auto ticket = cache.begin();
    cache.learn(ticket.lesson, "b", "d");
    cache.learn(ticket.lesson, "g", "i");
    cache.learn(ticket.lesson, "d", "e");
    EXPECT_EQ(cache.skip("b", kNow), "e");
    cache.learn(ticket.lesson, "a", "h");
    EXPECT_EQ(cache.size(), 1u);
    EXPECT_EQ(cache.skip("a", kNow), "i");
}

TEST(GapCache, APutEndsTheGapBeforeIt) {
    GapCache cache;
    cache.learn(cache.begin().lesson, "b", "z");
    cache.put("m");
    EXPECT_EQ(cache.skip("b", kNow), "m");
    EXPECT_EQ(cache.skip("m", kNow), "");
    cache.put("b");
    EXPECT_EQ(cache.skip("b", kNow), "");
    EXPECT_EQ(cache.size(), 0u);
}

TEST(GapCache, APutWhileReadingIsNotSwallowed) {
    GapCache cache;
    const auto ticket = cache.begin();
    cache.put("m");
    cache.end_section();
    cache.learn(ticket.lesson, "b", "z");
    EXPECT_EQ(cache.skip("b", kNow), "m");
}

TEST(GapCache, NothingIsLearntFromAReaderThatBeganWhileSomebodyWrote) {
    GapCache cache;
    cache.put("m");
    const auto ticket = cache.begin();
    cache.end_section();
    cache.learn(ticket.lesson, "b", "z");
    EXPECT_EQ(cache.size(), 0u);
    EXPECT_NE(cache.begin().lesson, nullptr);
}

TEST(GapCache, AnOlderReaderDoesNotUseNewerGaps) {
    GapCache cache;
    const auto older = cache.begin();
    cache.learn(cache.begin().lesson, "b", "z");
    EXPECT_EQ(cache.skip("b", older.epoch), "");
    EXPECT_EQ(cache.skip("b", cache.begin().epoch), "z");
}

TEST(GapCache, TooManyPutsMakeALessonUseless) {
    GapCache cache;
    const auto ticket = cache.begin();
    for (std::size_t i = 0; i <= kLessonPutsMax; ++i) cache.put("zz");
    cache.learn(ticket.lesson, "b", "c");
    EXPECT_EQ(cache.size(), 0u);
}

TEST(GapCache, KeepsABoundedNumber) {
    GapCache cache;
    const auto ticket = cache.begin();
    for (int i = 0; i < 200; ++i) {
        const auto start = std::to_string(1000 + i);
        cache.learn(ticket.lesson, start, start + "5");
    }
    EXPECT_EQ(cache.size(), kGapsMax);
    EXPECT_EQ(cache.skip("1199", kNow), "11995");
    EXPECT_EQ(cache.skip("1000", kNow), "");
}

}  // namespace
}  // namespace angelia::engine
