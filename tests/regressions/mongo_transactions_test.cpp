// Transactions over a connection that fails, and on servers that have none.
#include "mongo_scene.h"

#include <algorithm>
#include <atomic>

namespace angelia::regressions {
namespace {

store::CallOptions within(store::Session& session) {
    store::CallOptions options;
    options.session = &session;
    return options;
}

/// The replies to the first `count` commands of this name are cut in their middle.
void cut_replies(MongoScene& s, std::string name, int count) {
    s.proxy->set_rule([name = std::move(name), count, seen = std::make_shared<std::atomic<int>>(0)](
                          const Command& command) -> Fault {
        if (command.name != name || ++*seen > count) return {};
        return {Fault::Kind::CutInside};
    });
}

/// Adds one to a counter and counts how often it is run.
Result<void> increment(MongoScene& s, int& runs) {
    return s.faulty.with_transaction([&](store::Session& tx) -> Result<void> {
        ++runs;
        ANGELIA_TRY(s.faulty.update_one(s.c, bson::make("_id", std::int32_t{1}),
                                        bson::make("$inc", bson::make("n", std::int32_t{1})), false,
                                        within(tx)));
        return {};
    });
}

std::optional<std::int64_t> counter(MongoScene& s) {
    return s.direct.find({s.c, {}, {}, {}, 0, 0}).value_or_throw()[0]["n"].to_int64();
}

/// A server as it is without a replica set: what its hello says of one is left out.
bson::Document as_standalone(const Command& command, bson::Document reply) {
    if (command.name != "hello" && command.name != "isMaster" && command.name != "ismaster")
        return reply;
    bson::Builder b;
    for (const auto& [key, value] : reply.view()) {
        const std::string_view of_sets[] = {"setName", "setVersion", "hosts", "primary", "me"};
        if (std::find(std::begin(of_sets), std::end(of_sets), key) == std::end(of_sets))
            b.add(key, value);
    }
    return b.take();
}

TEST(MongoTransactions, ACommitWhoseReplyIsLostIsSentAgain) {
    MongoScene s;
    s.put(1);
    cut_replies(s, "commitTransaction", 1);
    int runs = 0;
    const auto done = increment(s, runs);
    EXPECT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(counter(s), 1);
    const auto commits = s.proxy->commands("commitTransaction");
    ASSERT_EQ(commits.size(), 2u);
    EXPECT_EQ(commits[1].body.view().find_path("writeConcern.w").get_string(), "majority");
}

TEST(MongoTransactions, ACommitInDoubtIsCommittedUntilItIsKnown) {
    MongoScene s;
    s.put(1);
    cut_replies(s, "commitTransaction", 5);
    int runs = 0;
    const auto done = increment(s, runs);
    EXPECT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(runs, 1) << "only the commit is repeated";
    EXPECT_EQ(counter(s), 1);
    EXPECT_GE(s.proxy->commands("commitTransaction").size(), 6u);
}

TEST(MongoTransactions, ACommitInDoubtSaysSo) {
    MongoScene s;
    s.put(1);
    const auto session = s.faulty.start_session().value_or_throw();
    ASSERT_TRUE(session->start_transaction());
    ASSERT_TRUE(s.faulty.update_one(s.c, bson::make("_id", std::int32_t{1}),
                                    bson::make("$set", bson::make("n", std::int32_t{7})), false,
                                    within(*session)));
    cut_replies(s, "commitTransaction", 2);  // the driver tries twice by itself
    const auto lost = session->commit_transaction();
    ASSERT_FALSE(lost);
    EXPECT_TRUE(lost.error().has_label("UnknownTransactionCommitResult"))
        << lost.error().to_string();
    EXPECT_FALSE(lost.error().has_label("TransientTransactionError"));
    EXPECT_TRUE(session->commit_transaction());
    EXPECT_EQ(counter(s), 7);
}

TEST(MongoTransactions, AStatementWhoseReplyIsLostStartsTheWholeAgain) {
    MongoScene s;
    s.put(1);
    cut_replies(s, "update", 1);
    int runs = 0;
    const auto done = increment(s, runs);
    EXPECT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(counter(s), 1);
}

TEST(MongoTransactions, ReadsOfASessionWaitForItsWrites) {
    MongoScene s;
    const auto session = s.faulty.start_session().value_or_throw();
    ASSERT_TRUE(s.faulty.insert(s.c, bson::make("_id", std::int32_t{1}), within(*session)));
    ASSERT_TRUE(s.faulty.find({s.c, {}, {}, {}, 0, 0}, within(*session)));
    const auto reads = s.proxy->commands("find");
    ASSERT_EQ(reads.size(), 1u);
    EXPECT_TRUE(reads[0].body.view().find_path("readConcern.afterClusterTime").get_timestamp());
    EXPECT_TRUE(reads[0].body["lsid"].get_document()->identical(
        *s.proxy->commands("insert")[0].body["lsid"].get_document()));
}

TEST(MongoTransactions, AStandaloneServerIsToldHowToBecomeAReplicaSet) {
    MongoScene s;
    s.proxy->set_reply_filter(as_standalone);
    store::Store alone = connect_mongo(s.proxy->port());
    EXPECT_TRUE(alone.insert(s.c, bson::make("_id", std::int32_t{1})));
    bool ran = false;
    const auto refused = alone.with_transaction([&](store::Session&) -> Result<void> {
        ran = true;
        return {};
    });
    ASSERT_FALSE(refused);
    EXPECT_FALSE(ran);
    EXPECT_EQ(refused.error().code, ErrorCode::IllegalOperation) << refused.error().to_string();
    EXPECT_NE(refused.error().message.find("`mongod --replSet rs0`"), std::string::npos);
    EXPECT_NE(refused.error().message.find("`rs.initiate()`"), std::string::npos);
    const auto found = alone.capabilities().value_or_throw();
    EXPECT_EQ(found.topology, "standalone");
    EXPECT_FALSE(found.transactions);

    // Somebody follows the advice: it is tried again, not remembered.
    s.proxy->set_reply_filter({});
    EXPECT_TRUE(alone.with_transaction([&](store::Session& tx) -> Result<void> {
        ANGELIA_TRY(alone.insert(s.c, bson::make("_id", std::int32_t{2}), within(tx)));
        return {};
    }));
    EXPECT_EQ(s.direct.count(s.c, {}).value_or_throw(), 2);
    EXPECT_TRUE(alone.close());
}

TEST(MongoTransactions, ASessionGivesItsConnectionBack) {
    MongoScene s;
    const auto address =
        store::StoreAddress::parse("mongodb://127.0.0.1:" + std::to_string(s.server->port()) +
                                   "/db?directConnection=true&maxPoolSize=1")
            .value_or_throw();
    store::Store one(store::mongo::MongoStore::open(address, {}).value_or_throw(), "db");
    for (std::int32_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(one.with_transaction([&](store::Session& tx) -> Result<void> {
            ANGELIA_TRY(one.insert(s.c, bson::make("_id", i), within(tx)));
            return {};
        }));
        store::CallOptions hasty;
        hasty.timeout = 5s;
        EXPECT_EQ(one.count(s.c, {}, hasty).value_or_throw(), i + 1);
    }
    EXPECT_TRUE(one.close());
}

}  // namespace
}  // namespace angelia::regressions
