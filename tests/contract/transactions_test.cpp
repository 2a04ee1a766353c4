// Sessions and transactions: what an application may count on, whatever the store is.
#include "store_under_test.h"

#include <angelia/base/threads.h>

#include <atomic>
#include <thread>

namespace angelia::store::contract {
namespace {

constexpr const char* kTransient = "TransientTransactionError";

/// "WriteConflict, TransientTransactionError": the code and the labels.
template <class T>
std::string outcome(const Result<T>& result) {
    if (result) return "ok";
    std::string out = error_code_name(result.error().code);
    for (const auto& label : result.error().labels) out += ", " + label;
    return out;
}

CallOptions in(Session& session) {
    CallOptions options;
    options.session = &session;
    return options;
}

}  // namespace

std::unique_ptr<Session> StoreContract::session() {
    return store_.start_session().value_or_throw();
}

std::unique_ptr<Session> StoreContract::transaction() {
    auto made = session();
    EXPECT_EQ(outcome(made->start_transaction()), "ok");
    return made;
}

std::string StoreContract::put_in(Session& s, const CollectionName& name, const char* document) {
    return outcome(store_.insert(name, json(document), in(s)));
}

std::string StoreContract::set_in(Session& s, const CollectionName& name, const char* filter,
                                  const char* update) {
    return outcome(store_.update_one(name, json(filter), json(update), false, in(s)));
}

std::string StoreContract::content_in(Session& s, const CollectionName& name) {
    FindRequest request;
    request.collection = name;
    request.sort = json(R"({"_id": 1})");
    const auto found = store_.find(request, in(s));
    return found ? text(*found) : outcome(found);
}

namespace {

TEST_P(StoreContract, TransactionsAreACapability) {
    EXPECT_TRUE(store_.capabilities().value_or_throw().transactions);
}

TEST_P(StoreContract, TransactionsCommitShowsBothWritesAndAbortNeither) {
    const auto a = collection("a"), b = collection("b");
    put(a, {R"({"_id": 1})"});
    put(b, {R"({"_id": 1})"});
    const auto tx = transaction();
    EXPECT_TRUE(tx->in_transaction());
    EXPECT_EQ(put_in(*tx, a, R"({"_id": 2})"), "ok");
    EXPECT_EQ(set_in(*tx, b, R"({"_id": 1})", R"({"$set": {"x": 1}})"), "ok");
    EXPECT_EQ(content(a) + content(b), "{\"_id\":1}\n{\"_id\":1}\n") << "not yet";
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_FALSE(tx->in_transaction());
    EXPECT_EQ(content(a) + content(b), "{\"_id\":1}\n{\"_id\":2}\n{\"_id\":1,\"x\":1}\n");

    EXPECT_EQ(outcome(tx->start_transaction()), "ok") << "one session, many transactions";
    EXPECT_EQ(put_in(*tx, a, R"({"_id": 3})"), "ok");
    EXPECT_EQ(outcome(store_.remove(
                  b,
                  [] {
                      std::vector<DeleteOp> all;
                      all.push_back(removal("{}", true));
                      return all;
                  }(),
                  true, in(*tx))),
              "ok");
    EXPECT_EQ(outcome(tx->abort_transaction()), "ok");
    EXPECT_EQ(content(a) + content(b), "{\"_id\":1}\n{\"_id\":2}\n{\"_id\":1,\"x\":1}\n");
}

TEST_P(StoreContract, TransactionsReadTheirOwnWrites) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 1})", R"({"_id": 2, "n": 2})"});
    const auto tx = transaction();
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 0, "n": 9})"), "ok");
    EXPECT_EQ(set_in(*tx, c, R"({"_id": 2})", R"({"$inc": {"n": 10}})"), "ok");
    EXPECT_EQ(content_in(*tx, c),
              "{\"_id\":0,\"n\":9}\n{\"_id\":1,\"n\":1}\n{\"_id\":2,\"n\":12}\n");
    EXPECT_EQ(store_.count(c, json(R"({"n": {"$gt": 5}})"), in(*tx)).value_or_throw(), 2);
    EXPECT_EQ(store_.count(c, json(R"({"n": 77})"), in(*tx)).value_or_throw(), 0);
    FindAndModifyRequest modify;
    modify.collection = c;
    modify.filter = json(R"({"_id": 0})");
    modify.update = json(R"({"$set": {"n": 8}})");
    modify.return_new = true;
    const auto modified = store_.find_and_modify(std::move(modify), in(*tx)).value_or_throw();
    ASSERT_TRUE(modified);
    EXPECT_EQ((*modified)["n"].to_int64(), 8);
    std::vector<BulkOp> bulk(2);
    bulk[0].collection = c;
    bulk[0].document = json(R"({"_id": 3})");
    bulk[1].kind = BulkOp::Kind::Delete;
    bulk[1].collection = c;
    bulk[1].remove = removal(R"({"_id": 1})");
    EXPECT_EQ(outcome(store_.bulk_write(std::move(bulk), true, in(*tx))), "ok");
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":0,\"n\":8}\n{\"_id\":2,\"n\":12}\n{\"_id\":3}\n");
}

TEST_P(StoreContract, TransactionsReadManyDocumentsOfOneMoment) {
    const auto c = collection();
    std::vector<bson::Document> many;
    std::vector<bson::DocumentView> views;
    for (std::int32_t i = 0; i < 500; ++i) many.push_back(bson::make("_id", i));
    for (const auto& d : many) views.push_back(d.view());
    ASSERT_EQ(store_.insert(c, views).value_or_throw().inserted, 500);
    const auto tx = transaction();
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 500})"), "ok");
    EXPECT_EQ(store_.find({c, {}, {}, {}, 0, 0}, in(*tx)).value_or_throw().size(), 501u);
}

TEST_P(StoreContract, TransactionsSeeTheirSnapshotWhateverOthersCommit) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 1})", R"({"_id": 2})"});
    const auto tx = transaction();
    EXPECT_EQ(content_in(*tx, c), "{\"_id\":1,\"n\":1}\n{\"_id\":2}\n");
    put(c, {R"({"_id": 3})"});
    EXPECT_EQ(outcome(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$set": {"n": 5}})"))),
              "ok");
    EXPECT_EQ(content_in(*tx, c), "{\"_id\":1,\"n\":1}\n{\"_id\":2}\n");
    EXPECT_EQ(store_.count(c, {}, in(*tx)).value_or_throw(), 2);
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_EQ(content_in(*tx, c), "{\"_id\":1,\"n\":5}\n{\"_id\":2}\n{\"_id\":3}\n")
        << "after it, the session reads what is there";
}

TEST_P(StoreContract, TransactionsConflictAtOnceWithWhatChangedMeanwhile) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 1})"});
    const auto tx = transaction();
    EXPECT_EQ(content_in(*tx, c), "{\"_id\":1,\"n\":1}\n");
    EXPECT_EQ(outcome(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$inc": {"n": 1}})"))),
              "ok");
    EXPECT_EQ(set_in(*tx, c, R"({"_id": 1})", R"({"$inc": {"n": 1}})"),
              std::string("WriteConflict, ") + kTransient);
    EXPECT_TRUE(tx->in_transaction()) << "it is to be aborted";
    EXPECT_EQ(content_in(*tx, c), std::string("NoSuchTransaction, ") + kTransient);
    EXPECT_EQ(outcome(tx->abort_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":1,\"n\":2}\n");
}

TEST_P(StoreContract, OfTwoSessionsTheFirstWriterWins) {
    const auto c = collection();
    put(c, {R"({"_id": 1})", R"({"_id": 2})"});
    const auto first = transaction(), second = transaction();
    EXPECT_EQ(set_in(*first, c, R"({"_id": 1})", R"({"$set": {"by": "first"}})"), "ok");
    EXPECT_EQ(set_in(*second, c, R"({"_id": 2})", R"({"$set": {"by": "second"}})"), "ok");
    EXPECT_EQ(set_in(*second, c, R"({"_id": 1})", R"({"$set": {"by": "second"}})"),
              std::string("WriteConflict, ") + kTransient);
    EXPECT_EQ(outcome(second->commit_transaction()),
              std::string("NoSuchTransaction, ") + kTransient);
    EXPECT_EQ(outcome(first->commit_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":1,\"by\":\"first\"}\n{\"_id\":2}\n");
}

TEST_P(StoreContract, TransactionsConflictOverANewIdAndAUniqueKey) {
    const auto c = collection();
    std::vector<IndexDefinition> unique(1);
    unique[0].name = "u_1";
    unique[0].key = json(R"({"u": 1})");
    unique[0].unique = unique[0].sparse = true;
    ASSERT_EQ(outcome(store_.ensure_indexes(c, std::move(unique))), "ok");
    const auto first = transaction(), second = transaction();
    EXPECT_EQ(put_in(*first, c, R"({"_id": 1, "u": 1})"), "ok");
    EXPECT_EQ(put_in(*second, c, R"({"_id": 2, "u": 1})"),
              std::string("WriteConflict, ") + kTransient);
    EXPECT_EQ(outcome(second->abort_transaction()), "ok");
    EXPECT_EQ(outcome(second->start_transaction()), "ok");
    EXPECT_EQ(put_in(*second, c, R"({"_id": 1})"), std::string("WriteConflict, ") + kTransient);
    EXPECT_EQ(outcome(first->commit_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":1,\"u\":1}\n");
}

TEST_P(StoreContract, ADuplicateKeyEndsATransactionWithoutALabel) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    const auto tx = transaction();
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 2})"), "ok");
    const std::vector<bson::Document> documents = [] {
        std::vector<bson::Document> out;
        for (const char* d : {R"({"_id": 3})", R"({"_id": 1})", R"({"_id": 4})"})
            out.push_back(json(d));
        return out;
    }();
    std::vector<bson::DocumentView> views(documents.begin(), documents.end());
    EXPECT_EQ(outcome(store_.insert(c, views, false, in(*tx))), "DuplicateKey")
        << "the whole call fails: nothing of the batch remains";
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 5})"), std::string("NoSuchTransaction, ") + kTransient);
    EXPECT_EQ(outcome(tx->abort_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":1}\n");
}

TEST_P(StoreContract, AStatementThatMakesNoSenseEndsATransaction) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    const auto tx = transaction();
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 2})"), "ok");
    EXPECT_EQ(set_in(*tx, c, R"({"_id": 1})", R"({"$frobnicate": {"n": 1}})"), "FailedToParse");
    EXPECT_EQ(outcome(tx->commit_transaction()), std::string("NoSuchTransaction, ") + kTransient);
    EXPECT_EQ(content(c), "{\"_id\":1}\n");
}

TEST_P(StoreContract, TransactionsHaveAnOrderOfCalls) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    const auto tx = session();
    EXPECT_EQ(outcome(tx->commit_transaction()), "NoSuchTransaction");
    EXPECT_EQ(outcome(tx->abort_transaction()), "NoSuchTransaction");
    EXPECT_EQ(outcome(tx->start_transaction()), "ok");
    EXPECT_EQ(outcome(tx->start_transaction()), "ConflictingOperationInProgress");
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok") << "nothing was in it";
    EXPECT_EQ(outcome(tx->abort_transaction()), "TransactionCommitted");
    EXPECT_EQ(outcome(tx->start_transaction()), "ok");
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 2})"), "ok");
    EXPECT_EQ(outcome(tx->abort_transaction()), "ok");
    EXPECT_EQ(outcome(tx->abort_transaction()), "NoSuchTransaction");
    EXPECT_EQ(outcome(tx->commit_transaction()), "NoSuchTransaction");
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 3})"), "ok") << "a session without a transaction";
    EXPECT_EQ(outcome(tx->commit_transaction()), "NoSuchTransaction");
    EXPECT_EQ(content(c), "{\"_id\":1}\n{\"_id\":3}\n");
}

TEST_P(StoreContract, ACommitMayBeCommittedAgain) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    const auto tx = transaction();
    EXPECT_EQ(set_in(*tx, c, R"({"_id": 1})", R"({"$inc": {"n": 1}})"), "ok");
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":1,\"n\":1}\n");
}

TEST_P(StoreContract, TransactionsMakeCollections) {
    const auto fresh = collection("fresh");
    const auto tx = transaction();
    EXPECT_EQ(put_in(*tx, fresh, R"({"_id": 1})"), "ok");
    EXPECT_EQ(content_in(*tx, fresh), "{\"_id\":1}\n");
    EXPECT_EQ(content(fresh), "");
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_EQ(content(fresh), "{\"_id\":1}\n");
}

TEST_P(StoreContract, TransactionsRefuseWhatDoesNotBelongInThemAndGoOn) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    const auto tx = transaction();
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 2})"), "ok");
    const auto refused = "OperationNotSupportedInTransaction";
    EXPECT_EQ(outcome(store_.drop(c, in(*tx))), refused);
    EXPECT_EQ(outcome(store_.list_collections(in(*tx))), refused);
    std::vector<IndexDefinition> index(1);
    index[0].name = "x_1";
    index[0].key = json(R"({"x": 1})");
    EXPECT_EQ(outcome(store_.ensure_indexes(c, std::move(index), in(*tx))), refused);
    ClaimRequest claim;
    claim.locks = collection("locks");
    claim.documents = c;
    claim.candidates.resize(1);
    claim.candidates[0].lock = json(R"({"_id": 1})");
    claim.candidates[0].condition = json(R"({"_id": 1})");
    claim.candidates[0].update = json(R"({"$set": {"x": 1}})");
    EXPECT_EQ(outcome(store_.claim(std::move(claim), in(*tx))), refused);
    CallOptions options = in(*tx);
    options.acknowledge = Acknowledge::Majority;
    EXPECT_EQ(outcome(store_.insert(c, json(R"({"_id": 3})"), options)), "InvalidOptions");
    options.acknowledge = Acknowledge::None;
    EXPECT_EQ(outcome(store_.insert(c, json(R"({"_id": 3})"), options)), "InvalidOptions");
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":1}\n{\"_id\":2}\n");
}

TEST_P(StoreContract, AskingForTheTimeIsNoStatement) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    const auto tx = transaction();
    EXPECT_EQ(outcome(store_.server_time(in(*tx))), "ok");
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 2})"), "ok") << "which begins the transaction";
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    EXPECT_EQ(content(c), "{\"_id\":1}\n{\"_id\":2}\n");
}

TEST_P(StoreContract, TransactionOptionsAreChecked) {
    const auto tx = session();
    TransactionOptions options;
    options.acknowledge = Acknowledge::None;
    EXPECT_EQ(outcome(tx->start_transaction(options)), "InvalidOptions");
    options.acknowledge = Acknowledge::Majority;
    options.max_commit_time = 0ms;
    EXPECT_EQ(outcome(tx->start_transaction(options)), "InvalidOptions");
    options.max_commit_time = 10s;
    options.read_concern = ReadConcern::Majority;
    EXPECT_EQ(outcome(tx->start_transaction(options)), "ok");
    EXPECT_EQ(put_in(*tx, collection(), R"({"_id": 1})"), "ok");
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
}

TEST_P(StoreContract, ASessionIsOfOneStore) {
    Store other = running_->connect();
    const auto foreign = other.start_session().value_or_throw();
    EXPECT_EQ(put_in(*foreign, collection(), R"({"_id": 1})"), "BadValue");
    EXPECT_TRUE(other.close());
}

TEST_P(StoreContract, ASessionReadsWhatItWrote) {
    const auto c = collection();
    const auto s = session();
    for (std::int32_t i = 0; i < 20; ++i) {
        ASSERT_EQ(outcome(store_.insert(c, bson::make("_id", i), in(*s))), "ok");
        ASSERT_EQ(store_.count(c, bson::make("_id", i), in(*s)).value_or_throw(), 1);
    }
}

TEST_P(StoreContract, ASessionIsForOneCallAtATime) {
    const auto c = collection();
    std::vector<bson::Document> many;
    std::vector<bson::DocumentView> views;
    for (std::int32_t i = 0; i < 300; ++i) many.push_back(bson::make("_id", i));
    for (const auto& d : many) views.push_back(d.view());
    ASSERT_TRUE(store_.insert(c, views));
    const auto tx = transaction();
    ASSERT_EQ(put_in(*tx, c, R"({"_id": -1})"), "ok");
    std::atomic<int> refused{0}, wrong{0};
    const auto until = std::chrono::steady_clock::now() + kPatience;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] {
            while (refused == 0 && wrong == 0 && std::chrono::steady_clock::now() < until) {
                const auto found = store_.find({c, {}, {}, {}, 0, 0}, in(*tx));
                if (found && found->size() == 301) continue;
                ++(outcome(found) == "ConflictingOperationInProgress" ? refused : wrong);
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_GE(refused, 1);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok") << "the one that was there first goes on";
    EXPECT_EQ(store_.count(c, {}).value_or_throw(), 301);
}

TEST_P(StoreContract, TransactionsEndWithTheirSession) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    auto tx = transaction();
    EXPECT_EQ(set_in(*tx, c, R"({"_id": 1})", R"({"$set": {"x": 1}})"), "ok");
    tx.reset();
    EXPECT_EQ(outcome(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$set": {"x": 2}})"))),
              "ok")
        << "nothing holds the document";
    EXPECT_EQ(content(c), "{\"_id\":1,\"x\":2}\n");
}

TEST_P(StoreContract, TransactionsEndWithTheirStore) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    Store other = running_->connect();
    const auto tx = other.start_session().value_or_throw();
    ASSERT_EQ(outcome(tx->start_transaction()), "ok");
    ASSERT_EQ(outcome(other.update_one(c, json(R"({"_id": 1})"), json(R"({"$set": {"x": 1}})"),
                                       false, in(*tx))),
              "ok");
    EXPECT_TRUE(other.close());
    EXPECT_EQ(outcome(tx->commit_transaction()), "ShutdownInProgress");
    EXPECT_EQ(outcome(other.start_session()), "ShutdownInProgress");
    EXPECT_EQ(outcome(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$set": {"x": 2}})"))),
              "ok")
        << "nothing holds the document";
    EXPECT_EQ(content(c), "{\"_id\":1,\"x\":2}\n");
}

TEST_P(StoreContract, WithTransactionCommitsWhatTheFunctionDid) {
    const auto c = collection();
    const auto made = store_.with_transaction([&](Session& tx) -> Result<std::int64_t> {
        ANGELIA_TRY(store_.insert(c, json(R"({"_id": 1})"), in(tx)));
        ANGELIA_TRY(store_.insert(c, json(R"({"_id": 2})"), in(tx)));
        return store_.count(c, {}, in(tx));
    });
    EXPECT_EQ(outcome(made), "ok");
    EXPECT_EQ(made.value(), 2);
    EXPECT_EQ(content(c), "{\"_id\":1}\n{\"_id\":2}\n");
}

TEST_P(StoreContract, WithTransactionRunsAgainAfterAConflict) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 0})"});
    int attempts = 0;
    const auto done = store_.with_transaction([&](Session& tx) -> Result<void> {
        ++attempts;
        ANGELIA_TRY(store_.find({c, {}, {}, {}, 0, 0}, in(tx)));
        // Somebody else is faster, twice.
        if (attempts <= 2)
            ANGELIA_TRY(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$inc": {"n": 1}})")));
        ANGELIA_TRY(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$inc": {"n": 100}})"),
                                      false, in(tx)));
        return {};
    });
    EXPECT_EQ(outcome(done), "ok");
    EXPECT_EQ(attempts, 3);
    EXPECT_EQ(content(c), "{\"_id\":1,\"n\":102}\n");
}

TEST_P(StoreContract, WithTransactionGivesUpWhenItsTimeIsOver) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 0})"});
    ManualClock clock;
    microseconds paused{0};
    int attempts = 0;
    TransactionOptions options;
    options.clock = &clock;
    options.pause = [&](microseconds pause) { paused += pause; };
    const auto done = store_.with_transaction(
        [&](Session& tx) -> Result<void> {
            ++attempts;
            clock.advance(50s);
            ANGELIA_TRY(store_.find({c, {}, {}, {}, 0, 0}, in(tx)));
            ANGELIA_TRY(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$inc": {"n": 1}})")));
            ANGELIA_TRY(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$set": {"n": 100}})"),
                                          false, in(tx)));
            return {};
        },
        options);
    EXPECT_EQ(outcome(done), std::string("WriteConflict, ") + kTransient);
    EXPECT_EQ(attempts, 3) << "at 50 s, 100 s and 150 s, which is more than 120 s";
    EXPECT_LE(paused, 13ms);
    EXPECT_EQ(content(c), "{\"_id\":1,\"n\":3}\n");
}

TEST_P(StoreContract, WithTransactionReturnsTheFunctionsErrorAndKeepsNothing) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    int attempts = 0;
    const auto duplicate = store_.with_transaction([&](Session& tx) -> Result<void> {
        ++attempts;
        ANGELIA_TRY(store_.insert(c, json(R"({"_id": 2})"), in(tx)));
        ANGELIA_TRY(store_.insert(c, json(R"({"_id": 1})"), in(tx)));
        return {};
    });
    EXPECT_EQ(outcome(duplicate), "DuplicateKey");
    const auto refused = store_.with_transaction([&](Session& tx) -> Result<void> {
        ++attempts;
        ANGELIA_TRY(store_.insert(c, json(R"({"_id": 2})"), in(tx)));
        return {ErrorCode::BadValue, "the order has no customer"};
    });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().to_string(), "BadValue (2): the order has no customer");
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(content(c), "{\"_id\":1}\n");
}

TEST_P(StoreContract, WithTransactionMakesErrorsOfExceptions) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 0})"});
    const auto threw = store_.with_transaction([&](Session& tx) -> Result<void> {
        ANGELIA_TRY(store_.insert(c, json(R"({"_id": 2})"), in(tx)));
        throw std::runtime_error("no more paper");
    });
    EXPECT_EQ(outcome(threw), "OperationFailed");
    EXPECT_NE(threw.error().message.find("no more paper"), std::string::npos);
    int attempts = 0;
    const auto replayed = store_.with_transaction([&](Session& tx) -> Result<void> {
        ++attempts;
        store_.find({c, {}, {}, {}, 0, 0}, in(tx)).value_or_throw();
        if (attempts == 1)
            ANGELIA_TRY(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$inc": {"n": 1}})")));
        store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$inc": {"n": 10}})"), false, in(tx))
            .value_or_throw();
        return {};
    });
    EXPECT_EQ(outcome(replayed), "ok") << "an angelia::Exception carries the label on";
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(content(c), "{\"_id\":1,\"n\":11}\n");
}

TEST_P(StoreContract, WithTransactionLeavesWhatTheFunctionEndedItself) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    EXPECT_EQ(outcome(store_.with_transaction([&](Session& tx) -> Result<void> {
                  ANGELIA_TRY(store_.insert(c, json(R"({"_id": 2})"), in(tx)));
                  return tx.abort_transaction();
              })),
              "ok");
    EXPECT_EQ(content(c), "{\"_id\":1}\n");
}

TEST_P(StoreContract, EventsOfATransactionComeWithItsCommitInOrder) {
    const auto c = collection();
    put(c, {R"({"_id": 0})"});
    WatchLog log;
    const auto w = watch(log, c);
    const auto tx = transaction();
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 1})"), "ok");
    EXPECT_EQ(set_in(*tx, c, R"({"_id": 0})", R"({"$set": {"x": 1}})"), "ok");
    EXPECT_EQ(put_in(*tx, c, R"({"_id": 2})"), "ok");
    put(c, {R"({"_id": 9})"});
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(outcome(tx->commit_transaction()), "ok");
    ASSERT_TRUE(log.wait_events(4));
    EXPECT_EQ(log.text(), "insert 9\ninsert 1\nupdate 0 {\"x\":1}\ninsert 2\n");
}

// A bank: money moves between two collections, and every reader counts the same sum.
TEST_P(StoreContract, ASumOverTwoCollectionsStaysWhatItIs) {
    constexpr std::int32_t kAccounts = 4;
    constexpr int kTransfers = 25, kThreads = 3;
    const auto left = collection("left"), right = collection("right");
    for (std::int32_t i = 0; i < kAccounts; ++i) {
        ASSERT_TRUE(store_.insert(left, bson::make("_id", i, "money", std::int64_t{100})));
        ASSERT_TRUE(store_.insert(right, bson::make("_id", i, "money", std::int64_t{100})));
    }
    const auto sum = [&](Session& tx) -> Result<std::int64_t> {
        std::int64_t total = 0;
        for (const auto& name : {left, right}) {
            ANGELIA_TRY_ASSIGN(const auto accounts, store_.find({name, {}, {}, {}, 0, 0}, in(tx)));
            for (const auto& account : accounts) total += account["money"].to_int64().value_or(0);
        }
        return total;
    };
    const auto move = [&](Session& tx, std::int32_t from, std::int32_t to) -> Result<void> {
        ANGELIA_TRY(store_.update_one(left, bson::make("_id", from),
                                      bson::make("$inc", bson::make("money", std::int64_t{-1})),
                                      false, in(tx)));
        ANGELIA_TRY(store_.update_one(right, bson::make("_id", to),
                                      bson::make("$inc", bson::make("money", std::int64_t{1})),
                                      false, in(tx)));
        return {};
    };
    std::atomic<int> failed{0}, moving{kThreads};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kTransfers; ++i) {
                const auto done = store_.with_transaction([&](Session& tx) -> Result<void> {
                    return move(tx, (i + t) % kAccounts, (i * 3 + t) % kAccounts);
                });
                if (!done) ++failed;
            }
            --moving;
        });
    }
    int reads = 0;
    std::string seen;
    do {
        const auto total = store_.with_transaction(sum);
        seen = total ? std::to_string(*total) : total.error().to_string();
        ++reads;
    } while (seen == "800" && moving > 0);
    for (auto& t : threads) t.join();
    EXPECT_EQ(seen, "800") << "at read " << reads;
    EXPECT_EQ(failed, 0);
    std::int64_t moved = 0;
    for (const auto& account : store_.find({right, {}, {}, {}, 0, 0}).value_or_throw())
        moved += account["money"].to_int64().value_or(0) - 100;
    EXPECT_EQ(moved, kThreads * kTransfers) << "every transfer once";
}

}  // namespace
}  // namespace angelia::store::contract
