// Where a stream goes on: scars S1 to S4 of change streams as rules without any I/O.
#include "store_mongo/watch_position.h"

#include <angelia/bson/json.h>

#include <gtest/gtest.h>

namespace angelia::store::mongo {
namespace {

bson::Document parse(std::string_view text) { return bson::from_json(text).value_or_throw(); }

std::string stage(const WatchPosition& position, bool start_after = false) {
    return bson::to_json(position.stage(false, start_after));
}

WatchRequest resume_after(std::string_view token) {
    WatchRequest request;
    request.resume_after = parse(token);
    return request;
}

TEST(WatchPosition, FreshStreamStartsNowWithAGap) {
    const WatchPosition position{WatchRequest()};
    EXPECT_EQ(stage(position), R"({"$changeStream":{}})");
    EXPECT_TRUE(position.gap());
}

TEST(WatchPosition, AsksForLookupsWhenWanted) {
    EXPECT_EQ(bson::to_json(WatchPosition{WatchRequest()}.stage(true, false)),
              R"({"$changeStream":{"fullDocument":"updateLookup"}})");
}

TEST(WatchPosition, GoesOnAfterTheTokenGiven) {
    const WatchPosition position{resume_after(R"({"_data": "05"})")};
    EXPECT_EQ(stage(position), R"({"$changeStream":{"resumeAfter":{"_data":"05"}}})");
    EXPECT_EQ(stage(position, true), R"({"$changeStream":{"startAfter":{"_data":"05"}}})");
    EXPECT_FALSE(position.gap());
}

TEST(WatchPosition, OperationTimeOfTheOpeningServesUntilThereIsAToken) {
    WatchPosition position{WatchRequest()};
    position.established(bson::make("operationTime", bson::Timestamp{7, 1}));
    EXPECT_EQ(stage(position),
              R"({"$changeStream":{"startAtOperationTime":{"$timestamp":{"t":7,"i":1}}}})");
    EXPECT_FALSE(position.gap());
    position.handed_over(parse(R"({"postBatchResumeToken": {"_data": "08"}})"), {});
    EXPECT_EQ(stage(position), R"({"$changeStream":{"resumeAfter":{"_data":"08"}}})");
}

TEST(WatchPosition, TokenOfAnEmptyBatchIsAdopted) {
    WatchPosition position{resume_after(R"({"_data": "05"})")};
    position.handed_over(parse(R"({"postBatchResumeToken": {"_data": "06"}})"), {});
    EXPECT_EQ(stage(position), R"({"$changeStream":{"resumeAfter":{"_data":"06"}}})");
}

TEST(WatchPosition, WithoutBatchTokensTheLastEventCounts) {
    WatchPosition position{resume_after(R"({"_data": "05"})")};
    position.handed_over(parse("{}"), parse(R"({"_id": {"_data": "07"}})"));
    EXPECT_EQ(stage(position), R"({"$changeStream":{"resumeAfter":{"_data":"07"}}})");
    position.handed_over(parse("{}"), {});
    EXPECT_EQ(stage(position), R"({"$changeStream":{"resumeAfter":{"_data":"07"}}})")
        << "an empty batch without a token changes nothing";
}

TEST(WatchPosition, AskingForABatchTokenAdoptsNothing) {
    WatchPosition position{resume_after(R"({"_data": "05"})")};
    EXPECT_EQ(
        bson::to_json(position.token_of(parse(R"({"postBatchResumeToken": {"_data": "09"}})"), {})),
        R"({"_data":"09"})");
    EXPECT_EQ(stage(position), R"({"$changeStream":{"resumeAfter":{"_data":"05"}}})");
}

TEST(WatchPosition, LostHistoryDropsTheTokenForGoodAndPauses) {
    for (const Error& error :
         {Error{ErrorCode::ChangeStreamHistoryLost, "gone"},
          Error{ErrorCode::OperationFailed, "the resume point may no longer be in the oplog."},
          Error{ErrorCode::InvalidResumeToken, "bad token"},
          Error{ErrorCode::ChangeStreamFatalError, "_id removed"}}) {
        WatchPosition position{resume_after(R"({"_data": "05"})")};
        const auto verdict = position.failed(error);
        EXPECT_EQ(verdict.pause, milliseconds(1000)) << error.to_string();
        EXPECT_FALSE(verdict.fatal);
        EXPECT_EQ(stage(position), R"({"$changeStream":{}})");
        EXPECT_TRUE(position.gap());
    }
}

TEST(WatchPosition, OtherErrorsKeepTheTokenAndPauseLongerEachTime) {
    WatchPosition position{resume_after(R"({"_data": "05"})")};
    std::string pauses;
    for (int i = 0; i < 7; ++i) {
        const auto verdict = position.failed(
            {i % 2 == 0 ? ErrorCode::HostUnreachable : ErrorCode::PrimarySteppedDown, "failover"});
        pauses += std::to_string(verdict.pause.count()) + " ";
        EXPECT_FALSE(verdict.fatal);
    }
    EXPECT_EQ(pauses, "50 100 200 400 800 1000 1000 ");
    EXPECT_EQ(stage(position), R"({"$changeStream":{"resumeAfter":{"_data":"05"}}})");
    position.reset_pause();
    EXPECT_EQ(position.failed({ErrorCode::HostUnreachable, "again"}).pause, milliseconds(50));
}

TEST(WatchPosition, UnknownStartAfterIsNoFailure) {
    WatchPosition position{resume_after(R"({"_data": "05"})")};
    const auto verdict = position.failed(
        {ErrorCode::Location40415, "BSON field '$changeStream.startAfter' is an unknown field"});
    EXPECT_TRUE(verdict.start_after_unknown);
    EXPECT_FALSE(verdict.fatal);
    EXPECT_TRUE(position.has_token());
}

TEST(WatchPosition, WithoutChangeStreamsItIsFatal) {
    for (const Error& error :
         {Error{ErrorCode::Location40573,
                "The $changeStream stage is only supported on replica sets"},
          Error{ErrorCode::Location40324, "Unrecognized pipeline stage name: '$changeStream'"}}) {
        EXPECT_TRUE(WatchPosition{WatchRequest()}.failed(error).fatal) << error.to_string();
    }
}

}  // namespace
}  // namespace angelia::store::mongo
