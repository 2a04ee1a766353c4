// Transactions of the simulated store under faults, with time in the hand of the test. What they do
// without faults is tests/contract.
#include "store/testing/simulated_store.h"

#include <angelia/base/manual_executor.h>
#include <angelia/bson/json.h>

#include <gtest/gtest.h>

namespace angelia::store::testing {
namespace {

using namespace std::chrono_literals;

/// A server with two clients; pauses of with_transaction turn the clock.
struct Bank {
    ManualClock clock;
    ManualExecutor lane{clock};
    SimulatedServer server{lane, clock};
    std::shared_ptr<SimulatedStore> one = server.connect("one");
    Store store{one, "db"};
    Store other{server.connect("two"), "db"};
    CollectionName c = store.collection("c");
    int runs = 0;

    Bank() { EXPECT_TRUE(store.insert(c, bson::from_json(R"({"_id": 1, "n": 0})").value())); }
    TransactionOptions options() {
        TransactionOptions out;
        out.clock = &clock;
        out.pause = [this](microseconds pause) { clock.advance(pause); };
        out.jitter_seed = 7;
        return out;
    }
    static Result<UpdateResult> add(Store& s, const CollectionName& name, const CallOptions& o) {
        return s.update_one(name, bson::make("_id", std::int32_t{1}),
                            bson::make("$inc", bson::make("n", std::int32_t{1})), false, o);
    }
    Result<void> add_one() {
        return store.with_transaction(
            [this](Session& tx) -> Result<void> {
                ++runs;
                ANGELIA_TRY(add(store, c, {.session = &tx}));
                return {};
            },
            options());
    }
    std::string content() {
        std::string out;
        for (const auto& d : other.find({c, {}, {}, {}, 0, 0}).value_or_throw())
            out += bson::to_json(d);
        return out;
    }
};

template <class T>
std::string code_of(const Result<T>& result) {
    return result ? "ok" : error_code_name(result.error().code);
}

SimulatedStore::Fault once(std::string verb, ErrorCode code) {
    return [verb = std::move(verb), code,
            left = std::make_shared<int>(1)](const SimulatedCall& call) -> std::optional<Error> {
        if (call.verb != verb || *left == 0) return std::nullopt;
        --*left;
        return Error(code, "planned");
    };
}

TEST(SimulatedTransactions, ACommitWhoseReplyIsLostIsCommittedOnce) {
    Bank b;
    b.one->set_fault_after(once("commit_transaction", ErrorCode::NetworkTimeout));
    EXPECT_EQ(code_of(b.add_one()), "ok");
    EXPECT_EQ(b.runs, 1);
    EXPECT_EQ(b.server.call_counts()["commit_transaction"], 2);
    EXPECT_EQ(b.content(), R"({"_id":1,"n":1})");
}

TEST(SimulatedTransactions, AStatementThatIsLostRunsTheWholeAgain) {
    Bank b;
    b.one->set_fault_before(once("update", ErrorCode::HostUnreachable));
    EXPECT_EQ(code_of(b.add_one()), "ok");
    EXPECT_EQ(b.runs, 2);
    b.one->set_fault_before({});
    b.one->set_fault_after(once("update", ErrorCode::HostUnreachable));
    EXPECT_EQ(code_of(b.add_one()), "ok");
    EXPECT_EQ(b.runs, 4);
    EXPECT_EQ(b.content(), R"({"_id":1,"n":2})");
}

TEST(SimulatedTransactions, AServerThatStaysAwayIsGivenUp) {
    Bank b;
    const auto began = b.clock.steady_now();
    b.one->set_fault_before([](const SimulatedCall&) -> std::optional<Error> {
        return Error(ErrorCode::HostUnreachable, "planned");
    });
    const auto done = b.add_one();
    EXPECT_EQ(code_of(done), "HostUnreachable");
    EXPECT_TRUE(done.error().has_label("TransientTransactionError"));
    EXPECT_LT(b.clock.steady_now() - began, 120s);
    EXPECT_GT(b.clock.steady_now() - began, 119s) << "half a second is the longest pause";
    EXPECT_GT(b.runs, 240);
}

TEST(SimulatedTransactions, APlainWriteThatMeetsOneDoesNothing) {
    Bank b;
    const auto tx = b.store.start_session().value_or_throw();
    ASSERT_TRUE(tx->start_transaction());
    ASSERT_TRUE(Bank::add(b.store, b.c, {.session = tx.get()}));
    std::vector<UpdateOp> ops(2);
    ops[0].filter = bson::make("_id", std::int32_t{2});
    ops[0].update = bson::make("$set", bson::make("n", std::int32_t{2}));
    ops[0].upsert = true;
    ops[1].filter = bson::make("_id", std::int32_t{1});
    ops[1].update = bson::make("$set", bson::make("n", std::int32_t{5}));
    EXPECT_EQ(code_of(b.other.update(b.c, std::move(ops), false)), "MaxTimeMSExpired");
    EXPECT_EQ(code_of(b.other.drop(b.c)), "MaxTimeMSExpired");
    EXPECT_EQ(b.content(), R"({"_id":1,"n":0})");
    ASSERT_TRUE(tx->commit_transaction());
    EXPECT_EQ(code_of(Bank::add(b.other, b.c, {})), "ok");
    EXPECT_EQ(b.content(), R"({"_id":1,"n":2})");
}

TEST(SimulatedTransactions, WhatACrashedClientHoldsIsFreeAfterAMinute) {
    Bank b;
    const auto tx = b.store.start_session().value_or_throw();
    ASSERT_TRUE(tx->start_transaction());
    ASSERT_TRUE(Bank::add(b.store, b.c, {.session = tx.get()}));
    b.one->crash();
    EXPECT_EQ(code_of(tx->commit_transaction()), "ShutdownInProgress");
    b.clock.advance(59s);
    EXPECT_EQ(code_of(Bank::add(b.other, b.c, {})), "MaxTimeMSExpired");
    b.clock.advance(1s);
    EXPECT_EQ(code_of(Bank::add(b.other, b.c, {})), "ok");
    EXPECT_EQ(b.content(), R"({"_id":1,"n":1})");
}

TEST(SimulatedTransactions, OneThatIsOpenForAMinuteIsAborted) {
    Bank b;
    const auto tx = b.store.start_session().value_or_throw();
    ASSERT_TRUE(tx->start_transaction());
    ASSERT_TRUE(Bank::add(b.store, b.c, {.session = tx.get()}));
    b.clock.advance(60s);
    EXPECT_EQ(code_of(tx->commit_transaction()), "NoSuchTransaction");
    EXPECT_EQ(b.content(), R"({"_id":1,"n":0})");
}

}  // namespace
}  // namespace angelia::store::testing
