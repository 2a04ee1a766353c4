// The check itself, on histories made by hand: what is allowed is clean, and each violation is
// found and told.
#include "transactions/history.h"

#include <gtest/gtest.h>

namespace angelia::transactions {
namespace {

Transaction committed(std::vector<Step> steps, std::uint64_t began = 0,
                      std::uint64_t ended = kNever) {
    Transaction t;
    t.who = "client";
    t.steps = std::move(steps);
    t.began = began;
    t.ended = ended;
    return t;
}
Transaction with(Outcome outcome, std::vector<Step> steps) {
    auto t = committed(std::move(steps));
    t.outcome = outcome;
    return t;
}
Step r(ListKey key, List list) { return read_step(key, std::move(list)); }
Step a(ListKey key, ListValue value) { return append_step(key, value); }

std::string kinds(const History& history) {
    std::string out;
    for (const auto& finding : check(history).findings)
        out += (out.empty() ? "" : ", ") + std::string(name_of(finding.anomaly));
    return out;
}
using Lists = std::map<ListKey, List>;

// ---- allowed

TEST(HistoryCheck, IsCleanForTransactionsOneAfterTheOther) {
    EXPECT_EQ(kinds({{committed({a(1, 10), a(2, 20)}, 1, 2),
                      committed({r(1, {10}), a(1, 11), r(1, {10, 11}), r(2, {20})}, 3, 4),
                      committed({r(1, {10, 11}), r(2, {20}), r(3, {})}, 5, 6)},
                     Lists{{1, {10, 11}}, {2, {20}}}}),
              "");
}

TEST(HistoryCheck, AllowsWriteSkewAndCountsIt) {
    const auto report = check({{committed({r(1, {}), r(2, {}), a(1, 10)}, 1, 5),
                                committed({r(1, {}), r(2, {}), a(2, 20)}, 2, 6)},
                               Lists{{1, {10}}, {2, {20}}}});
    EXPECT_EQ(report.text(), "");
    EXPECT_EQ(report.write_skews, 1u);
    EXPECT_EQ(report.committed, 2u);
}

TEST(HistoryCheck, AllowsAnAbortedTransactionThatNobodySaw) {
    EXPECT_EQ(kinds({{with(Outcome::Aborted, {a(1, 10), r(1, {10})}), committed({r(1, {})})},
                     Lists{{1, {}}}}),
              "");
}

TEST(HistoryCheck, AllowsAnUnknownOutcomeWholeOrNotAtAll) {
    const auto unknown = [] { return with(Outcome::Unknown, {a(1, 10), a(2, 20)}); };
    EXPECT_EQ(kinds({{unknown()}, Lists{}}), "");
    EXPECT_EQ(kinds({{unknown()}, Lists{{1, {10}}, {2, {20}}}}), "");
    EXPECT_EQ(kinds({{unknown()}, Lists{{1, {10}}, {2, {}}}}), "broken atomicity");
}

TEST(HistoryCheck, AllowsAConcurrentTransactionNotToSeeTheOther) {
    EXPECT_EQ(kinds({{committed({a(1, 10), a(2, 20)}, 1, 4), committed({r(1, {}), r(2, {})}, 2, 5)},
                     Lists{{1, {10}}, {2, {20}}}}),
              "");
}

// ---- violations of lists

TEST(HistoryCheck, FindsADirtyRead) {
    EXPECT_EQ(kinds({{with(Outcome::Aborted, {a(1, 10)}), committed({r(1, {10})})}, {}}),
              "dirty read");
    EXPECT_EQ(kinds({{with(Outcome::Aborted, {a(1, 10)})}, Lists{{1, {10}}}}), "dirty read");
}

TEST(HistoryCheck, FindsAnIntermediateRead) {
    EXPECT_EQ(
        kinds({{committed({a(1, 10), a(1, 11)}), committed({r(1, {10})})}, Lists{{1, {10, 11}}}}),
        "intermediate read");
}

TEST(HistoryCheck, FindsALostAppend) {
    EXPECT_EQ(kinds({{committed({r(1, {}), a(1, 10)}), committed({r(1, {}), a(1, 11)})},
                     Lists{{1, {11}}}}),
              "lost append");
}

TEST(HistoryCheck, FindsListsThatDiverge) {
    EXPECT_EQ(kinds({{committed({a(1, 10)}), committed({a(1, 11)}), committed({r(1, {10})}),
                      committed({r(1, {11})})},
                     {}}),
              "divergent lists");
}

TEST(HistoryCheck, FindsValuesFromNowhereAndTwice) {
    EXPECT_EQ(kinds({{committed({r(1, {7})})}, {}}), "phantom value");
    EXPECT_EQ(kinds({{committed({a(2, 7)}), committed({r(1, {7})})}, {}}), "phantom value");
    EXPECT_EQ(kinds({{committed({a(1, 7)}), committed({r(1, {7, 7})})}, {}}), "repeated value");
}

TEST(HistoryCheck, FindsAnOwnWriteThatIsNotSeen) {
    EXPECT_EQ(kinds({{committed({a(1, 10), r(1, {})})}, Lists{{1, {10}}}}), "own write missing");
}

TEST(HistoryCheck, FindsASnapshotThatMoves) {
    EXPECT_EQ(kinds({{committed({a(1, 10)}), committed({r(1, {}), r(1, {10})})}, {}}),
              "moved snapshot");
    EXPECT_EQ(kinds({{committed({a(1, 10)}), with(Outcome::Aborted, {r(1, {}), r(1, {10})})}, {}}),
              "moved snapshot");
}

// ---- cycles

TEST(HistoryCheck, FindsACycleOfWrites) {
    // G0: the lists say two orders.
    EXPECT_EQ(kinds({{committed({a(1, 10), a(2, 20)}), committed({a(1, 11), a(2, 21)})},
                     Lists{{1, {10, 11}}, {2, {21, 20}}}}),
              "write cycle");
    // G1c: each saw the other.
    EXPECT_EQ(kinds({{committed({a(1, 10), r(2, {20})}), committed({a(2, 20), r(1, {10})})},
                     Lists{{1, {10}}, {2, {20}}}}),
              "write cycle");
}

TEST(HistoryCheck, FindsAReaderThatSawHalfOfATransaction) {
    EXPECT_EQ(kinds({{committed({a(1, 10), a(2, 20)}), committed({r(1, {10}), r(2, {})})},
                     Lists{{1, {10}}, {2, {20}}}}),
              "fractured read");
}

TEST(HistoryCheck, FindsReadSkewOverSeveralTransactions) {
    // The last reader sees T1's append, which came after T0's, but not T0's.
    EXPECT_EQ(kinds({{committed({a(1, 10)}), committed({r(1, {10}), a(2, 20)}),
                      committed({r(2, {20}), r(1, {})})},
                     Lists{{1, {10}}, {2, {20}}}}),
              "read skew");
}

TEST(HistoryCheck, FindsTwoReadersThatDisagreeAboutTheOrder) {
    // "Long fork": two rw, but not in a row.
    EXPECT_EQ(kinds({{committed({a(1, 10)}), committed({a(2, 20)}),
                      committed({r(1, {10}), r(2, {})}), committed({r(2, {20}), r(1, {})})},
                     Lists{{1, {10}}, {2, {20}}}}),
              "read skew");
}

TEST(HistoryCheck, FindsAReadThatMissesWhatWasAcknowledgedBefore) {
    EXPECT_EQ(kinds({{committed({a(1, 10)}, 1, 2), committed({r(1, {})}, 3, 4)}, Lists{{1, {10}}}}),
              "stale read");
    // Over a third one in between.
    EXPECT_EQ(kinds({{committed({a(1, 10)}, 1, 2), committed({a(2, 20)}, 3, 4),
                      committed({r(1, {})}, 5, 6)},
                     Lists{{1, {10}}, {2, {20}}}}),
              "stale read");
}

// ---- telling

TEST(HistoryCheck, TellsWhoDidWhat) {
    const auto report =
        check({{committed({a(1, 10), a(2, 20)}, 1, 4), committed({r(1, {10}), r(2, {})}, 2, 5)},
               Lists{{1, {10}}, {2, {20}}}});
    EXPECT_EQ(report.text(),
              "fractured read: T1 did not see what T0 appended to list 2, T1 saw what T0 appended "
              "to list 1:\n"
              "  T1 (client, from 2 to 5, committed); reads 1 as [10]; reads 2 as []\n"
              "  T0 (client, from 1 to 4, committed); appends 10 to 1; appends 20 to 2\n");
}

}  // namespace
}  // namespace angelia::transactions
