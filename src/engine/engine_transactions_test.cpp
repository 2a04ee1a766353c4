// Transactions at their edges: limits, waiting, shutdown, changes of the catalog, what is left
// after a restart. What isolation promises under load is tested in tests/transactions.
#include "engine/testing/test_transaction.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

namespace angelia::engine {
namespace {

using namespace testing_support;
using Found = std::vector<std::string>;
const Namespace kBooks{"app", "books"};
const std::string kTake = R"({"$inc": {"n": 1}})";

struct TransactionsFixture {
    ManualClock clock;
    TestEngine engine{options()};

    EngineOptions options() {
        auto o = memory_options();
        o.storage.clock = &clock;
        o.slow_move = microseconds(0);
        return o;
    }
    TransactionsFixture() {
        engine.create_index(kBooks, index_spec("n_1", R"({"n": 1})")).value_or_throw();
        for (int i = 1; i <= 3; ++i)
            engine.insert(kBooks, bson::make("_id", std::int32_t{i}, "n", std::int32_t{i}));
    }
    TestTransaction begin(std::int64_t session, std::int64_t number = 1) {
        return {engine, session, number};
    }
    std::int64_t status(std::string_view path) {
        const auto all = engine->status();
        return all.view().find_path(path).to_int64().value_or(-1);
    }
    /// A plain write whose answer may come later.
    std::future<std::string> later(ConditionalWrite write,
                                   SteadyTime deadline = SteadyTime::max()) {
        auto answer = std::make_shared<std::promise<std::string>>();
        auto future = answer->get_future();
        WriteRequest request;
        request.writes.push_back(std::move(write));
        request.deadline = deadline;
        engine->write(std::move(request), [answer](Result<WriteResult> result) {
            answer->set_value(result ? code_of(result->outcomes[0]) : code_of(result));
        });
        return future;
    }
};

bool is_waiting(const std::future<std::string>& answer) {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
}

// ---- isolation, directly

TEST(EngineTransactions, RepeatAnIndexRangeAndSeeOnlyTheirOwnWritesMore) {
    TransactionsFixture t;
    auto a = t.begin(1);
    const auto range = [&] {
        return a.find(kBooks, R"({"n": {"$gte": 2, "$lt": 10}})", R"({"n": 1})",
                      bson::value("n_1"));
    };
    const Found before{R"({"_id":2,"n":2})", R"({"_id":3,"n":3})"};
    EXPECT_EQ(range(), before);
    auto b = t.begin(2);
    EXPECT_EQ(b.insert(kBooks, R"({"_id": 4, "n": 4})"), "ok");
    EXPECT_EQ(b.update(kBooks, R"({"_id": 2})", R"({"$set": {"n": 20}})"), "ok");
    EXPECT_EQ(b.remove(kBooks, R"({"_id": 3})"), "ok");
    EXPECT_EQ(b.commit(), "ok");
    EXPECT_EQ(range(), before);
    EXPECT_EQ(a.update(kBooks, R"({"_id": 1})", R"({"$set": {"n": 5}})"), "ok");
    EXPECT_EQ(a.insert(kBooks, R"({"_id": 6, "n": 2.5})"), "ok");
    EXPECT_EQ(range(), (Found{before[0], R"({"_id":6,"n":2.5})", before[1], R"({"_id":1,"n":5})"}));
    EXPECT_EQ(a.commit(), "ok");
    EXPECT_EQ(t.engine.find(kBooks, R"({"n": {"$gte": 2, "$lt": 10}})", R"({"n": 1})"),
              (Found{R"({"_id":6,"n":2.5})", R"({"_id":4,"n":4})", R"({"_id":1,"n":5})"}));
    EXPECT_EQ(t.engine.validate(kBooks), "valid");
}

TEST(EngineTransactions, LeaveTheGapsOfAQueueTrue) {
    TransactionsFixture t;
    const auto queue = [&] {
        return t.engine.find(kBooks, "{}", R"({"n": 1})", R"({"_id": 1})", bson::value("n_1"));
    };
    EXPECT_EQ(t.engine.remove(kBooks, R"({"n": {"$lte": 2}})").matched, 2);
    auto old = t.begin(1);
    EXPECT_EQ(old.find(kBooks, "{}", R"({"n": 1})").size(), 1u);
    EXPECT_EQ(queue(), (Found{R"({"_id":3})"}));  // the gap is known now
    auto writer = t.begin(2);
    EXPECT_EQ(writer.insert(kBooks, R"({"_id": 9, "n": 1})"), "ok");
    EXPECT_EQ(writer.find(kBooks, "{}", R"({"n": 1})"),
              (Found{R"({"_id":9,"n":1})", R"({"_id":3,"n":3})"}));
    EXPECT_EQ(queue(), (Found{R"({"_id":3})"}));
    EXPECT_EQ(writer.commit(), "ok");
    EXPECT_EQ(old.find(kBooks, "{}", R"({"n": 1})").size(), 1u);  // still a gap for this one only
    EXPECT_EQ(queue(), (Found{R"({"_id":9})", R"({"_id":3})"}));
    auto taker = t.begin(3);
    EXPECT_EQ(taker.remove(kBooks, R"({"_id": 9})"), "ok");
    EXPECT_EQ(taker.find(kBooks, "{}", R"({"n": 1})"), (Found{R"({"_id":3,"n":3})"}));
    EXPECT_EQ(queue(), (Found{R"({"_id":9})", R"({"_id":3})"}));
    EXPECT_EQ(taker.abort(), "ok");
    EXPECT_EQ(queue(), (Found{R"({"_id":9})", R"({"_id":3})"}));
    EXPECT_EQ(t.engine.validate(kBooks), "valid");
}

TEST(EngineTransactions, AreOneMomentInTheOplogInTheOrderOfTheirStatements) {
    TransactionsFixture t;
    const auto before = t.engine->operation_time();
    auto a = t.begin(1);
    EXPECT_EQ(a.insert({"app", "fresh"}, R"({"_id": 1})"), "ok");
    EXPECT_EQ(a.update(kBooks, R"({"_id": 1})", kTake), "ok");
    EXPECT_EQ(a.insert({"app", "fresh"}, R"({"_id": 2})"), "ok");
    EXPECT_EQ(a.remove(kBooks, R"({"_id": 1})"), "ok");
    EXPECT_EQ(a.commit(), "ok");
    const auto entries =
        t.engine->oplog().read({before}, 100, std::size_t{1} << 20).value_or_throw();
    std::string told;
    std::set<std::uint64_t> times;
    std::uint32_t sub = 0;
    for (const auto& entry : entries) {
        told += static_cast<char>(entry->kind()) + std::string(entry->collection()) + " ";
        times.insert(entry->time().as_uint64());
        EXPECT_EQ(entry->sub(), sub++);
        EXPECT_EQ(entry->txn_number(), 1);
        EXPECT_TRUE(entry->in_transaction());
    }
    EXPECT_EQ(told, "cfresh ifresh ubooks ifresh dbooks ");
    EXPECT_EQ(times.size(), 1u);
}

// ---- limits

TEST(EngineTransactions, EndWhenTheyAreOpenTooLong) {
    TransactionsFixture t;
    auto a = t.begin(1), b = t.begin(2);
    EXPECT_EQ(a.update(kBooks, R"({"_id": 1})", kTake), "ok");
    auto waiting = t.later(update_write(kBooks, R"({"_id": 1})", kTake));
    EXPECT_TRUE(is_waiting(waiting));
    const auto running = b.statement().value_or_throw();
    t.clock.advance(std::chrono::seconds(59));
    t.engine->sweep_sessions();
    EXPECT_TRUE(is_waiting(waiting));
    t.clock.advance(std::chrono::seconds(1));
    t.engine->sweep_sessions();
    EXPECT_EQ(waiting.get(), "ok");
    EXPECT_EQ(b.write_in(running, update_write(kBooks, R"({"_id": 2})", kTake)),
              "TransactionExceededLifetimeLimitSeconds");
    EXPECT_EQ(a.find(kBooks), (Found{"NoSuchTransaction"}));
    EXPECT_EQ(a.commit(), "NoSuchTransaction");
    EXPECT_EQ(t.engine.find(kBooks, R"({"_id": 1})"), (Found{R"({"_id":1,"n":2})"}));
    EXPECT_EQ(t.status("transactions.currentOpen"), 0);
}

TEST(EngineTransactions, MayHoldSixtyFourMebibytesOfChanges) {
    TransactionsFixture t;
    const std::string eight(8u << 20, 'x');
    auto a = t.begin(1);
    std::string last = "ok";
    int written = 0;
    for (; written < 9 && last == "ok"; ++written)
        last = a.write(
            insert_write(kBooks, bson::make("_id", std::int32_t{100 + written}, "pad", eight)));
    EXPECT_EQ(last, "TransactionTooLarge");
    EXPECT_GT(written, 3);
    EXPECT_EQ(a.commit(), "NoSuchTransaction");
    EXPECT_EQ(t.status("transactions.bytes"), 0);
    EXPECT_EQ(t.engine.count(kBooks), 3);
    EXPECT_EQ(code_of(t.engine.insert(kBooks, R"({"_id": 100})")), "ok");
    EXPECT_EQ(t.engine.validate(kBooks), "valid");
}

TEST(EngineTransactions, MayHoldTwoHundredFiftySixMebibytesTogether) {
    TransactionsFixture t;
    const std::string eight(8u << 20, 'x');
    std::deque<TestTransaction> all;
    std::string last = "ok";
    std::int32_t id = 100;
    for (int i = 0; i < 33 && last == "ok"; ++i) {
        all.emplace_back(t.engine, i + 1);
        last = all.back().write(insert_write(kBooks, bson::make("_id", ++id, "pad", eight)));
    }
    EXPECT_EQ(last, "TransactionTooLargeForCache");
    EXPECT_EQ(all.back().commit(), "NoSuchTransaction");
    all.pop_back();
    const auto committed = static_cast<std::int64_t>(all.size());
    EXPECT_GT(committed, 10);
    for (auto& transaction : all) EXPECT_EQ(transaction.commit(), "ok");
    EXPECT_EQ(t.status("transactions.bytes"), 0);
    EXPECT_EQ(t.engine.count(kBooks), 3 + committed);
    EXPECT_EQ(t.begin(99).write(insert_write(kBooks, bson::make("_id", id, "pad", eight))), "ok");
}

// ---- who waits

TEST(EngineTransactions, LetGoOfWhatTheyHeldHoweverTheyEnd) {
    TransactionsFixture t;
    auto aborted = t.begin(1), failed = t.begin(2);
    EXPECT_EQ(aborted.update(kBooks, R"({"_id": 1})", kTake), "ok");
    EXPECT_EQ(failed.update(kBooks, R"({"_id": 2})", kTake), "ok");
    auto first = t.later(update_write(kBooks, R"({"_id": 1})", kTake));
    auto second = t.later(update_write(kBooks, R"({"_id": 2})", kTake));
    EXPECT_TRUE(is_waiting(first));
    EXPECT_TRUE(is_waiting(second));
    EXPECT_EQ(aborted.abort(), "ok");
    EXPECT_EQ(first.get(), "ok");
    EXPECT_EQ(failed.insert(kBooks, R"({"_id": 3})"), "DuplicateKey");
    EXPECT_EQ(second.get(), "ok");
    EXPECT_EQ(t.engine.find(kBooks, R"({"_id": {"$lte": 2}})"),
              (Found{R"({"_id":1,"n":2})", R"({"_id":2,"n":3})"}));
    EXPECT_EQ(t.status("transactions.waiting"), 0);
}

TEST(EngineTransactions, AreFollowedByWhoWaitsInTheOrderOfComing) {
    TransactionsFixture t;
    auto a = t.begin(1);
    EXPECT_EQ(a.update(kBooks, R"({"_id": 1})", R"({"$push": {"who": "transaction"}})"), "ok");
    std::vector<std::future<std::string>> waiting;
    for (int i = 1; i <= 5; ++i)
        waiting.push_back(t.later(update_write(
            kBooks, R"({"_id": 1})", "{\"$push\": {\"who\": " + std::to_string(i) + "}}")));
    EXPECT_EQ(t.status("transactions.waiting"), 5);
    EXPECT_EQ(a.commit(), "ok");
    for (auto& answer : waiting) EXPECT_EQ(answer.get(), "ok");
    EXPECT_EQ(t.engine.find(kBooks, R"({"_id": 1})"),
              (Found{R"({"_id":1,"n":1,"who":["transaction",1,2,3,4,5]})"}));
}

TEST(EngineTransactions, AreWaitedForUntilMaxTime) {
    TransactionsFixture t;
    auto a = t.begin(1);
    EXPECT_EQ(a.update(kBooks, R"({"_id": 1})", kTake), "ok");
    // Over already: it is found out before it would be parked.
    auto late = t.later(update_write(kBooks, R"({"_id": 1})", kTake), t.clock.steady_now());
    EXPECT_EQ(late.get(), "MaxTimeMSExpired");
    EXPECT_EQ(t.status("transactions.waiting"), 0);
    EXPECT_EQ(a.commit(), "ok");
    EXPECT_EQ(t.engine.find(kBooks, R"({"_id": 1})"), (Found{R"({"_id":1,"n":2})"}));
}

TEST(EngineTransactions, AreLeftAloneByTheTtlMonitor) {
    TransactionsFixture t;
    const Namespace leases{"app", "leases"};
    auto spec = index_spec("ttl", R"({"until": 1})");
    spec.expire_after_seconds = 0;
    t.engine.create_index(leases, std::move(spec)).value_or_throw();
    const bson::Date over{t.clock.system_millis() - 1000};
    for (std::int32_t i = 1; i <= 3; ++i)
        t.engine.insert(leases, bson::make("_id", i, "until", over));
    auto a = t.begin(1);
    EXPECT_EQ(a.update(leases, R"({"_id": 2})", R"({"$set": {"seen": true}})"), "ok");
    EXPECT_EQ(t.engine->run_ttl_pass().value_or_throw(), 2);
    EXPECT_EQ(t.engine.count(leases), 1);
    EXPECT_EQ(a.commit(), "ok");
    EXPECT_EQ(t.engine->run_ttl_pass().value_or_throw(), 1);
    EXPECT_EQ(t.engine.validate(leases), "valid");
}

TEST(EngineTransactions, DoNotKeepTheEngineFromClosing) {
    TransactionsFixture t;
    auto a = t.begin(1);
    EXPECT_EQ(a.update(kBooks, R"({"_id": 1})", kTake), "ok");
    auto first = t.later(update_write(kBooks, R"({"_id": 1})", kTake));
    auto second = t.later(delete_write(kBooks, R"({"_id": 1})"));
    EXPECT_TRUE(is_waiting(first));
    t.engine.close();
    EXPECT_EQ(first.get(), "ShutdownInProgress");
    EXPECT_EQ(second.get(), "ShutdownInProgress");
}

// ---- the catalog

TEST(EngineTransactions, CannotUseACollectionWhoseIndexesChangedSince) {
    TransactionsFixture t;
    auto a = t.begin(1);
    EXPECT_EQ(a.find(kBooks).size(), 3u);
    t.engine.create_index(kBooks, index_spec("m_1", R"({"m": 1})")).value_or_throw();
    EXPECT_EQ(a.update(kBooks, R"({"_id": 1})", kTake), "SnapshotUnavailable");
    EXPECT_EQ(a.commit(), "NoSuchTransaction");
}

TEST(EngineTransactions, CannotReadACollectionThatWasMadeAgain) {
    TransactionsFixture t;
    auto a = t.begin(1);
    EXPECT_EQ(a.find(kBooks).size(), 3u);
    t.engine.drop(kBooks).value_or_throw();
    t.engine.insert(kBooks, R"({"_id": 7})");
    EXPECT_EQ(a.find(kBooks), (Found{"SnapshotUnavailable"}));
    EXPECT_EQ(t.engine.find(kBooks), (Found{R"({"_id":7})"}));
}

// ---- the end, and after it

TEST(EngineTransactions, WithoutChangesCommitToo) {
    TransactionsFixture t;
    const auto before = t.engine->operation_time();
    auto a = t.begin(1);
    EXPECT_EQ(a.find(kBooks).size(), 3u);
    EXPECT_EQ(a.commit(), "ok");
    EXPECT_EQ(a.commit(), "ok");
    EXPECT_EQ(a.abort(), "TransactionCommitted");
    EXPECT_EQ(t.engine->operation_time(), before);
}

TEST(EngineTransactions, AreRememberedByTheirCommitAfterARestart) {
    TempFolder folder;
    {
        TestEngine engine(folder_options(folder.path()));
        TestTransaction a(engine, 1), b(engine, 2);
        EXPECT_EQ(a.insert(kBooks, R"({"_id": 1})"), "ok");
        EXPECT_EQ(b.insert({"app", "other"}, R"({"_id": 1})"), "ok");
        EXPECT_EQ(a.commit(), "ok");
        engine.close();
    }
    TestEngine engine(folder_options(folder.path()));
    TestTransaction a(engine, 1), b(engine, 2), again(engine, 1, 1), older(engine, 1, 0);
    TestTransaction a_goes_on(engine, 1, 1, true), b_goes_on(engine, 2, 1, true);
    EXPECT_EQ(a_goes_on.find(kBooks), (Found{"TransactionCommitted"}));
    EXPECT_EQ(b_goes_on.find(kBooks), (Found{"NoSuchTransaction"}));
    EXPECT_EQ(a.commit(), "ok");
    EXPECT_EQ(a.abort(), "TransactionCommitted");
    EXPECT_EQ(b.commit(), "NoSuchTransaction");
    EXPECT_EQ(older.commit(), "TransactionTooOld");
    EXPECT_EQ(again.find(kBooks), (Found{"ConflictingOperationInProgress"}));
    EXPECT_EQ(engine.find(kBooks), (Found{R"({"_id":1})"}));
    EXPECT_TRUE(engine.find({"app", "other"}).empty());
    EXPECT_EQ(code_of(engine.insert({"app", "other"}, R"({"_id": 1})")), "ok");
    EXPECT_EQ(engine.validate(kBooks), "valid");
}

}  // namespace
}  // namespace angelia::engine
