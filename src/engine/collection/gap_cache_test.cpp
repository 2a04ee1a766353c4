#include "engine/collection/gap_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace angelia::engine {
namespace {

/// What readers that begin now have at least, when every commit is published at once.
constexpr std::uint64_t kNothingOlder = UINT64_MAX;

std::string skip_now(GapCache& cache, std::string_view key) {
    return cache.skip(key, GapCache::inside());
}

TEST(GapCache, SkipsWhatAReaderFoundEmpty) {
    GapCache cache;
    cache.learn(cache.begin(7).lesson, "b", "f");
    EXPECT_EQ(skip_now(cache, "a"), "");
    EXPECT_EQ(skip_now(cache, "b"), "f");
    EXPECT_EQ(skip_now(cache, "ezz"), "f");
    EXPECT_EQ(skip_now(cache, "f"), "");
}

TEST(GapCache, GapsThatTouchBecomeOne) {
    GapCache cache;
    const auto ticket = cache.begin(7);
    cache.learn(ticket.lesson, "b", "d");
    cache.learn(ticket.lesson, "g", "i");
    cache.learn(ticket.lesson, "d", "e");
    EXPECT_EQ(skip_now(cache, "b"), "e");
    cache.learn(ticket.lesson, "a", "h");
    EXPECT_EQ(cache.size(), 1u);
    EXPECT_EQ(skip_now(cache, "a"), "i");
}

TEST(GapCache, APutEndsTheGapBeforeIt) {
    GapCache cache;
    cache.learn(cache.begin(7).lesson, "b", "z");
    cache.put("m", 8, kNothingOlder);
    EXPECT_EQ(skip_now(cache, "b"), "m");
    EXPECT_EQ(skip_now(cache, "m"), "");
    cache.put("b", 9, kNothingOlder);
    EXPECT_EQ(skip_now(cache, "b"), "");
    EXPECT_EQ(cache.size(), 0u);
}

TEST(GapCache, WhatWasPutAfterTheViewOfAReaderIsNotSwallowed) {
    GapCache cache;
    cache.put("p", 8, 6);
    const auto ticket = cache.begin(7);  // it lags behind
    cache.put("m", 9, 7);
    cache.learn(ticket.lesson, "b", "z");
    EXPECT_EQ(skip_now(cache, "b"), "m");
    EXPECT_EQ(skip_now(cache, "n"), "");
}

TEST(GapCache, WhatWasPutBeforeTheViewIsTheReadersToSee) {
    GapCache cache;
    cache.put("m", 7, 6);
    cache.learn(cache.begin(7).lesson, "n", "z");
    EXPECT_EQ(skip_now(cache, "n"), "z");
}

TEST(GapCache, AnOlderViewDoesNotUseNewerGaps) {
    GapCache cache;
    const auto older = cache.begin(6);
    cache.learn(cache.begin(7).lesson, "b", "z");
    EXPECT_EQ(cache.skip("b", older), "");
    EXPECT_EQ(cache.skip("b", cache.begin(7)), "z");
    EXPECT_EQ(cache.skip("b", cache.begin(8)), "z");
}

TEST(GapCache, ATicketOfNoViewNeitherSkipsNorLearns) {
    GapCache cache;
    cache.learn(cache.begin(0).lesson, "b", "z");
    cache.learn(GapCache::Ticket{}.lesson, "0", "1");
    EXPECT_EQ(cache.skip("b", GapCache::Ticket{}), "");
    EXPECT_EQ(cache.size(), 1u);
}

TEST(GapCache, APolledQueueUnderWritesLearnsAlthoughItsViewLags) {
    GapCache cache;
    for (std::uint64_t sequence = 1; sequence < 10'000; ++sequence) {
        const auto published = sequence - std::min<std::uint64_t>(sequence, 100);
        cache.put("q" + std::to_string(1'000'000 + sequence), sequence, published);
        const auto ticket = cache.begin(published);
        ASSERT_NE(ticket.lesson, nullptr);
        cache.learn(ticket.lesson, "q", "q1");
        ASSERT_EQ(cache.skip("q", cache.begin(published)), "q1");
    }
    EXPECT_LE(cache.recent_puts(), 101u);
}

TEST(GapCache, PutsAreKeptForWhoLearnsAndForNobodyElse) {
    GapCache cache;
    auto ticket = cache.begin(0);
    for (std::uint64_t sequence = 1; sequence <= 100; ++sequence)
        cache.put("m", sequence, sequence - 1);
    EXPECT_EQ(cache.recent_puts(), 100u);
    ticket = {};
    cache.put("m", 101, 100);
    EXPECT_EQ(cache.recent_puts(), 1u);
    EXPECT_EQ(cache.begin(99).lesson, nullptr);
    EXPECT_NE(cache.begin(100).lesson, nullptr);
}

TEST(GapCache, TooManyPutsMakeALessonUseless) {
    GapCache cache;
    const auto ticket = cache.begin(0);
    for (std::size_t i = 0; i <= kRecentPutsMax; ++i) cache.put("zz", i + 1, 0);
    cache.learn(ticket.lesson, "b", "c");
    EXPECT_EQ(cache.size(), 0u);
    EXPECT_EQ(cache.recent_puts(), kRecentPutsMax);
}

TEST(GapCache, KeepsABoundedNumber) {
    GapCache cache;
    const auto ticket = cache.begin(0);
    for (int i = 0; i < 200; ++i) {
        const auto start = std::to_string(1000 + i);
        cache.learn(ticket.lesson, start, start + "5");
    }
    EXPECT_EQ(cache.size(), kGapsMax);
    EXPECT_EQ(skip_now(cache, "1199"), "11995");
    EXPECT_EQ(skip_now(cache, "1000"), "");
}

/// Random puts and deletes, and scans of views of many ages that skip and learn as CandidateScan
/// does, against the sets of keys of all moments.
class GapCacheModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(GapCacheModel, NoScanMissesAKeyOfItsView) {
    std::mt19937_64 random(GetParam());
    constexpr int kKeys = 60;
    const auto name = [](int key) { return std::string(1, static_cast<char>('0' + key)); };
    const std::string end = name(kKeys);
    GapCache cache;
    std::vector<std::set<std::string>> moments(1);
    struct Scan {
        std::size_t view;
        GapCache::Ticket ticket;
        std::string at;
        std::vector<std::string> found;
    };
    std::vector<Scan> scans;
    std::size_t published = 0, skipped = 0, finished = 0;
    // One move of a scan: over a known gap or not, to the next key of its view, learning what lay
    // between.
    const auto move = [&](Scan& scan) {
        const auto& keys = moments[scan.view];
        const auto gap = cache.skip(scan.at, scan.ticket);
        skipped += gap.empty() ? 0 : 1;
        const auto key = keys.lower_bound(gap.empty() ? scan.at : std::min(gap, end));
        const auto stop = key == keys.end() ? end : *key;
        cache.learn(scan.ticket.lesson, scan.at, stop);
        if (key != keys.end()) scan.found.push_back(*key);
        scan.at = key == keys.end() ? end : *key + '\0';
    };
    for (int step = 0; step < 20'000; ++step) {
        const auto choice = random() % 100;
        if (choice < 30) {
            auto next = moments.back();
            for (auto changes = random() % 4; changes-- > 0;) {
                const auto key = name(static_cast<int>(random() % kKeys));
                if (random() % 3 == 0) {
                    cache.put(key, moments.size(), published);
                    next.insert(key);
                } else {
                    next.erase(key);
                }
            }
            moments.push_back(std::move(next));
        } else if (choice < 40) {
            published += random() % (moments.size() - published);
        } else if (choice < 55 && scans.size() < 20) {
            // Mostly what is published, sometimes the newest moment, sometimes an old one.
            const auto kind = random() % 4;
            const auto view = kind == 0 ? moments.size() - 1
                              : kind == 1
                                  ? published - random() % std::min(published + 1, std::size_t{50})
                                  : published;
            scans.push_back({view, cache.begin(view), "0", {}});
        } else if (!scans.empty()) {
            auto& scan = scans[random() % scans.size()];
            move(scan);
            if (scan.at < end) continue;
            const auto& keys = moments[scan.view];
            ASSERT_EQ(scan.found, std::vector<std::string>(keys.begin(), keys.end()))
                << "step " << step << " view " << scan.view;
            ++finished;
            std::swap(scan, scans.back());
            scans.pop_back();
        }
    }
    EXPECT_GT(finished, 300u);
    EXPECT_GT(skipped, 300u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GapCacheModel, ::testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace angelia::engine
