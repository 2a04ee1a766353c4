#include "engine/changes/resume_token.h"
#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

namespace angelia::engine::changes {
namespace {

using test::World;

std::string token_json(const ResumeToken& token) { return bson::to_json(token.to_document()); }

TEST(StreamOptions, UnknownOnesAreNamed) {
    World world;
    EXPECT_EQ(world.refusal_code("d.c", R"({"fullDocumentt": "default"})"),
              ErrorCode::Location40415);
    EXPECT_NE(world.refusal("d.c", R"({"fullDocumentt": "default"})").find("fullDocumentt"),
              std::string::npos);
    EXPECT_EQ(world.refusal_code("d.c", R"({"surprise": null})"), ErrorCode::Location40415);
}

TEST(StreamOptions, TheKnownOnesAreTaken) {
    World world;
    EXPECT_EQ(
        world.refusal(
            "d.c",
            R"({"fullDocument": "default", "fullDocumentBeforeChange": "off", "showExpandedEvents": false,
                                       "allChangesForCluster": false, "showSystemEvents": false, "allowToRunOnConfigDB": true})"),
        "opened");
    EXPECT_EQ(
        world.refusal(
            "d.c",
            R"({"resumeAfter": null, "startAfter": null, "startAtOperationTime": null, "fullDocument": null})"),
        "opened");
}

TEST(StreamOptions, OfTheWrongTypeAreRefused) {
    World world;
    EXPECT_EQ(world.refusal_code("d.c", R"({"fullDocument": 1})"), ErrorCode::TypeMismatch);
    EXPECT_EQ(world.refusal_code("d.c", R"({"fullDocument": "sometimes"})"), ErrorCode::BadValue);
    EXPECT_EQ(world.refusal_code("d.c", R"({"fullDocumentBeforeChange": "default"})"),
              ErrorCode::BadValue);
    EXPECT_EQ(world.refusal_code("d.c", R"({"showExpandedEvents": "yes"})"),
              ErrorCode::TypeMismatch);
    EXPECT_EQ(world.refusal_code("d.c", R"({"startAtOperationTime": 5})"), ErrorCode::TypeMismatch);
    EXPECT_EQ(world.refusal_code("d.c", R"({"resumeAfter": "01"})"), ErrorCode::TypeMismatch);
    EXPECT_EQ(world.refusal_code("d.c", R"({"resumeAfter": {"_data": "01"}})"),
              ErrorCode::InvalidResumeToken);
}

TEST(StreamOptions, AllowOneStartingPoint) {
    World world;
    const std::string token = token_json(ResumeToken::high_water({1000, 1}, test::kTestStore));
    const std::string time = R"({"$timestamp": {"t": 1000, "i": 1}})";
    EXPECT_EQ(world.refusal_code(
                  "d.c", R"({"resumeAfter": )" + token + R"(, "startAfter": )" + token + "}"),
              ErrorCode::Location40674);
    EXPECT_EQ(world.refusal_code("d.c", R"({"resumeAfter": )" + token +
                                            R"(, "startAtOperationTime": )" + time + "}"),
              ErrorCode::Location40674);
    EXPECT_EQ(world.refusal_code("d.c", R"({"startAtOperationTime": )" + time +
                                            R"(, "startAfter": )" + token + "}"),
              ErrorCode::Location40674);
}

TEST(StreamOptions, RefuseTheTokenOfAnotherStore) {
    World world;
    const std::string token =
        token_json(ResumeToken::high_water({1000, 1}, {9, 9, 9, 9, 9, 9, 9, 9}));
    const auto stream = world.try_watch("d.c", R"({"resumeAfter": )" + token + "}");
    ASSERT_FALSE(stream.has_value());
    EXPECT_EQ(stream.error().code, ErrorCode::ChangeStreamHistoryLost);
    EXPECT_TRUE(stream.error().has_label("NonResumableChangeStreamError"));
    EXPECT_NE(stream.error().message.find("resume point may no longer be in the oplog"),
              std::string::npos);
    EXPECT_EQ(world.streams.counters().history_lost, 1u);
}

TEST(StreamScope, InternalNamespacesAreRefused) {
    World world;
    EXPECT_EQ(world.refusal_code("admin.c", "{}"), ErrorCode::InvalidNamespace);
    EXPECT_EQ(world.refusal_code("local.oplog.rs", "{}"), ErrorCode::InvalidNamespace);
    EXPECT_EQ(world.refusal_code("config", "{}"), ErrorCode::InvalidNamespace);
    EXPECT_EQ(world.refusal_code("d.system.views", "{}"), ErrorCode::InvalidNamespace);
    EXPECT_EQ(world.refusal_code("d", R"({"allChangesForCluster": true})"),
              ErrorCode::InvalidNamespace);
    EXPECT_EQ(world.refusal_code("admin.c", R"({"allChangesForCluster": true})"),
              ErrorCode::InvalidNamespace);
    EXPECT_EQ(world.refusal_code("admin", R"({"allChangesForCluster": true})"), ErrorCode::Ok);
}

TEST(StreamStages, ThatDoNotSuitAStreamAreRefused) {
    World world;
    EXPECT_EQ(
        world.refusal("d.c", "{}", R"([{"$match": {}}, {"$out": "x"}])"),
        R"({"error":"IllegalOperation (20): $out is not permitted in a $changeStream pipeline"})");
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$group": {"_id": null}}])"),
              ErrorCode::IllegalOperation);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$sort": {"_id": 1}}])"),
              ErrorCode::IllegalOperation);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$limit": 1}])"), ErrorCode::IllegalOperation);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$changeStream": {}}])"),
              ErrorCode::Location40602);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$nonsense": {}}])"), ErrorCode::Location40324);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$match": {"a": {"$nonsense": 1}}}])"),
              ErrorCode::BadValue);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([5])"), ErrorCode::TypeMismatch);
    EXPECT_EQ(world.streams.counters().streams_open, 0u);
}

}  // namespace
}  // namespace angelia::engine::changes
