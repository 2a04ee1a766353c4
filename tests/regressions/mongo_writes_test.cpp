// Writes whose reply is lost: the driver sends them again, and the answer must be that of the first
// time.
#include "mongo_scene.h"

#include <atomic>

namespace angelia::regressions {
namespace {

/// The reply to the first command of this name is cut in its middle.
void cut_first(MongoScene& s, std::string name) {
    s.proxy->set_rule([name = std::move(name), count = std::make_shared<std::atomic<int>>(0)](
                          const Command& command) -> Fault {
        if (command.name != name || ++*count != 1) return {};
        return {Fault::Kind::CutInside};
    });
}

TEST(MongoWrites, RetriedInsertIsNoDuplicate) {
    MongoScene s;
    cut_first(s, "insert");
    const auto done = s.faulty.insert(s.c, bson::make("_id", std::int32_t{1}));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->inserted, 1);
    EXPECT_TRUE(done->errors.empty());
    EXPECT_EQ(s.proxy->commands("insert").size(), 2u);
}

TEST(MongoWrites, RetriedIncrementCountsOnce) {
    MongoScene s;
    s.put(1);
    cut_first(s, "update");
    const auto done = s.faulty.update_one(s.c, bson::make("_id", std::int32_t{1}),
                                          bson::make("$inc", bson::make("n", std::int32_t{1})));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->modified, 1);
    EXPECT_EQ(s.direct.find({s.c, {}, {}, {}, 0, 0}).value_or_throw()[0]["n"].to_int64(), 1);
}

TEST(MongoWrites, RetriedFindAndModifyReturnsTheFirstImage) {
    MongoScene s;
    s.put(1);
    cut_first(s, "findAndModify");
    store::FindAndModifyRequest request;
    request.collection = s.c;
    request.filter = bson::make("_id", std::int32_t{1});
    request.update = bson::make("$inc", bson::make("n", std::int32_t{1}));
    request.return_new = true;
    const auto done = s.faulty.find_and_modify(std::move(request));
    ASSERT_TRUE(done && *done);
    EXPECT_EQ((**done)["n"].to_int64(), 1);
}

// A lock that was won but whose reply was lost must not read as somebody else's.
TEST(MongoWrites, ClaimWhoseLockReplyIsLostIsStillWon) {
    MongoScene s;
    s.put(1);
    cut_first(s, "insert");
    store::ClaimRequest request;
    request.documents = s.c;
    request.locks = {"db", "locks"};
    request.candidates.emplace_back();
    request.candidates[0].lock = bson::make("_id", std::int32_t{1}, "holder", "me");
    request.candidates[0].condition = bson::make("_id", std::int32_t{1});
    request.candidates[0].update = bson::make("$set", bson::make("by", "me"));
    const auto result = s.faulty.claim(std::move(request));
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(result->entries[0].outcome, store::ClaimResult::Outcome::Claimed);
}

TEST(MongoWrites, UnreachableServerIsSaidInTime) {
    MongoScene s;
    s.proxy->refuse_connections(true);
    s.proxy->cut_all();
    const auto before = std::chrono::steady_clock::now();
    const auto done = s.faulty.insert(s.c, bson::make("_id", std::int32_t{1}));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::HostUnreachable) << done.error().to_string();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 8s);
}

TEST(MongoWrites, OpeningAnUnreachableServerNamesIt) {
    const auto address = store::StoreAddress::parse(
                             "mongodb://user:secret@127.0.0.1:1/db?serverSelectionTimeoutMS=300")
                             .value_or_throw();
    const auto opened = store::mongo::MongoStore::open(address, {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::HostUnreachable) << opened.error().to_string();
    EXPECT_NE(opened.error().message.find("127.0.0.1:1"), std::string::npos);
    EXPECT_EQ(opened.error().message.find("secret"), std::string::npos);
}

TEST(MongoWrites, InvalidAddressIsExplained) {
    const auto address =
        store::StoreAddress::parse("mongodb://127.0.0.1:99999999/db").value_or_throw();
    const auto opened = store::mongo::MongoStore::open(address, {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::FailedToParse) << opened.error().to_string();
}

}  // namespace
}  // namespace angelia::regressions
