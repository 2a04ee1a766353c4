#include "engine/changes/stream_reader.h"

#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

namespace angelia::engine::changes {
namespace {

using test::hex_of;
using test::kNoLimit;
using test::poll;
using test::text_of;
using test::token_of;
using test::World;

TEST(ChangeStream, ShowsEachKindOfChangeInOrder) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.insert("d.c", 1);
    world.feed.update("d.c", 1, bson::make("a", std::int32_t{1}));
    world.feed.replace("d.c", 1);
    world.feed.remove("d.c", 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1, update d.c 1, replace d.c 1, delete d.c 1");
    EXPECT_EQ(text_of(*stream), "");
}

TEST(ChangeStream, StartsAtNow) {
    World world;
    world.feed.insert("d.c", 1);
    const auto stream = world.watch("d.c");
    EXPECT_EQ(text_of(*stream), "");
    world.feed.insert("d.c", 2);
    EXPECT_EQ(text_of(*stream), "insert d.c 2");
}

TEST(ChangeStream, ShowsOnlyWhatIsDurable) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.durable = false;
    world.feed.insert("d.c", 1);
    world.feed.insert("d.c", 2);
    EXPECT_EQ(text_of(*stream), "");
    world.oplog.advance();
    EXPECT_EQ(text_of(*stream), "insert d.c 1, insert d.c 2");
}

// Field report "Stream shows another collection's changes".
TEST(ChangeStream, WithAFilterStaysInItsCollection) {
    World world;
    const std::string stages = R"([{"$match": {"fullDocument.kind": "x"}}])";
    const auto collection = world.watch("db1.a", "{}", stages);
    const auto database = world.watch("db1", "{}", stages);
    const auto deployment = world.watch("admin", R"({"allChangesForCluster": true})", stages);
    const auto kind = bson::make("kind", "x");
    world.feed.insert("db1.b", 1, kind);
    world.feed.insert("db1.a", 2, kind);
    world.feed.insert("db2.a", 3, kind);
    EXPECT_EQ(text_of(*collection), "insert db1.a 2");
    EXPECT_EQ(text_of(*database), "insert db1.b 1, insert db1.a 2");
    const auto all = poll(*deployment);
    EXPECT_EQ(text_of(all), "insert db1.b 1, insert db1.a 2, insert db2.a 3");

    const auto first = token_of(all.events.front().view());
    EXPECT_EQ(text_of(*world.watch_from("db1", "resumeAfter", first, stages)), "insert db1.a 2");
    world.feed.insert("db1.b", 4, kind);
    world.feed.insert("db1.a", 5, kind);
    const auto second = token_of(all.events.at(1).view());
    EXPECT_EQ(text_of(*world.watch_from("db1.a", "resumeAfter", second, stages)), "insert db1.a 5");
}

TEST(ChangeStream, OfADatabaseHidesInternalCollections) {
    World world;
    const auto database = world.watch("d");
    const auto deployment = world.watch("admin", R"({"allChangesForCluster": true})");
    world.feed.insert("d.system.views", 1);
    world.feed.insert("config.transactions", 2);
    world.feed.insert("admin.system.users", 3);
    world.feed.insert("d.c", 4);
    world.feed.insert("dd.c", 5);
    EXPECT_EQ(text_of(*database), "insert d.c 4");
    EXPECT_EQ(text_of(*deployment), "insert d.c 4, insert dd.c 5");
}

TEST(ChangeStream, FiltersByOperation) {
    World world;
    const auto stream = world.watch(
        "d.c", "{}", R"([{"$match": {"operationType": {"$in": ["insert", "delete"]}}}])");
    world.feed.insert("d.c", 1);
    world.feed.update("d.c", 1, bson::make("a", std::int32_t{1}));
    world.feed.remove("d.c", 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1, delete d.c 1");
    EXPECT_EQ(world.streams.counters().events_encoded, 2u);
}

TEST(ChangeStream, AppliesAllItsFiltersAndStages) {
    World world;
    const auto stream = world.watch(
        "d.c", "{}", R"([{"$match": {"operationType": "insert"}}, {"$match": {"fullDocument.a": 1}},
                                                     {"$project": {"fullDocument.b": 1}}, {"$match": {"fullDocument.b": {"$gt": 1}}}])");
    world.feed.insert("d.c", 1, bson::make("a", std::int32_t{1}, "b", std::int32_t{1}));
    world.feed.insert("d.c", 2, bson::make("a", std::int32_t{1}, "b", std::int32_t{2}));
    world.feed.insert("d.c", 3, bson::make("a", std::int32_t{2}, "b", std::int32_t{2}));
    const auto batch = poll(*stream);
    ASSERT_EQ(batch.events.size(), 1u);
    bson::Builder behind_id;
    behind_id.add("fullDocument", batch.events[0]["fullDocument"]);
    EXPECT_EQ(bson::to_json(behind_id.take()), R"({"fullDocument":{"b":2}})");
    EXPECT_EQ(batch.events[0].view().count(), 2u);
}

TEST(ChangeStream, DiesWhenThePipelineLosesTheToken) {
    World world;
    const auto stream = world.watch("d.c", "{}", R"([{"$project": {"_id": 0}}])");
    EXPECT_EQ(text_of(*stream), "");
    world.feed.insert("d.c", 1);
    for (int i = 0; i < 2; ++i) {
        const auto batch = stream->poll(kNoLimit, kNoLimit);
        ASSERT_FALSE(batch.has_value());
        EXPECT_EQ(batch.error().code, ErrorCode::ChangeStreamFatalError);
        EXPECT_TRUE(batch.error().has_label("NonResumableChangeStreamError"));
    }
}

TEST(ChangeStream, HandsOutWhatCameBeforeAFailure) {
    World world;
    const auto stream = world.watch("d.c", R"({"fullDocument": "required"})");
    world.feed.insert("d.c", 1);
    world.feed.update("d.c", 1, bson::make("a", std::int32_t{1}));
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
    EXPECT_EQ(stream->poll(kNoLimit, kNoLimit).error().code, ErrorCode::NoMatchingDocument);
    EXPECT_EQ(stream->poll(kNoLimit, kNoLimit).error().code, ErrorCode::NoMatchingDocument);
}

TEST(ChangeStream, WithoutStoredImagesRequiredFailsAndWhenAvailableIsNull) {
    World world;
    const auto before = world.watch("d.c", R"({"fullDocumentBeforeChange": "required"})");
    const auto available = world.watch(
        "d.c", R"({"fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable"})");
    world.feed.update("d.c", 1, bson::make("a", std::int32_t{1}));
    EXPECT_EQ(before->poll(kNoLimit, kNoLimit).error().code, ErrorCode::NoMatchingDocument);
    const auto batch = poll(*available);
    EXPECT_TRUE(batch.events.at(0)["fullDocument"].is_null());
    EXPECT_TRUE(batch.events.at(0)["fullDocumentBeforeChange"].is_null());
}

TEST(ChangeStream, LooksUpTheCurrentDocumentOfUpdates) {
    World world;
    const auto stream = world.watch("d.c", R"({"fullDocument": "updateLookup"})");
    world.documents[1] = bson::make("_id", std::int32_t{1}, "now", std::int32_t{5});
    world.feed.insert("d.c", 1);
    world.feed.update("d.c", 1, bson::make("now", std::int32_t{2}));
    world.feed.update("d.c", 2, bson::make("now", std::int32_t{2}));
    world.feed.replace("d.c", 1);
    const auto batch = poll(*stream);
    EXPECT_EQ(text_of(batch), "insert d.c 1, update d.c 1, update d.c 2, replace d.c 1");
    EXPECT_EQ(bson::to_json(batch.events[1]["fullDocument"]), R"({"_id":1,"now":5})");
    EXPECT_TRUE(batch.events[2]["fullDocument"].is_null());
    EXPECT_EQ(bson::to_json(batch.events[3]["fullDocument"]), R"({"_id":1})");
    EXPECT_EQ(world.streams.counters().lookups, 2u);
}

TEST(ChangeStream, LooksUpOnlyWhatTheFilterLeaves) {
    World world;
    world.documents[1] = bson::make("_id", std::int32_t{1}, "now", std::int32_t{5});
    const auto by_key = world.watch("d.c", R"({"fullDocument": "updateLookup"})",
                                    R"([{"$match": {"documentKey._id": 1}}])");
    world.feed.update("d.c", 2, bson::make("a", std::int32_t{2}));
    world.feed.update("d.c", 1, bson::make("a", std::int32_t{2}));
    EXPECT_EQ(text_of(*by_key), "update d.c 1");
    EXPECT_EQ(world.streams.counters().lookups, 1u);
    const auto by_document = world.watch("d.c", R"({"fullDocument": "updateLookup"})",
                                         R"([{"$match": {"fullDocument.now": 5}}])");
    world.feed.update("d.c", 2, bson::make("a", std::int32_t{3}));
    world.feed.update("d.c", 1, bson::make("a", std::int32_t{3}));
    EXPECT_EQ(text_of(*by_document), "update d.c 1");
    EXPECT_EQ(world.streams.counters().lookups, 3u);
}

TEST(ChangeStream, EndsAnInvalidatedCollection) {
    World world;
    const auto stream = world.watch("d.c");
    const auto other = world.watch("d.other");
    const auto database = world.watch("d");
    world.feed.insert("d.c", 1);
    world.feed.drop("d.c");
    world.feed.insert("d.c", 2);
    const auto batch = poll(*stream);
    EXPECT_EQ(text_of(batch), "insert d.c 1, drop d.c, invalidate, closed");
    EXPECT_EQ(batch.resume_token.bytes(), token_of(batch.events[2].view()).bytes());
    EXPECT_EQ(text_of(*stream), "closed");
    EXPECT_EQ(text_of(*other), "");
    EXPECT_EQ(text_of(*database), "insert d.c 1, drop d.c, insert d.c 2");
}

TEST(ChangeStream, EndsADroppedDatabase) {
    World world;
    const auto collection = world.watch("d.c");
    const auto database = world.watch("d");
    const auto other = world.watch("e");
    const auto deployment = world.watch("admin", R"({"allChangesForCluster": true})");
    world.feed.drop("d.c");
    world.feed.drop_database("d");
    EXPECT_EQ(text_of(*collection), "drop d.c, invalidate, closed");
    EXPECT_EQ(text_of(*database), "drop d.c, dropDatabase d, invalidate, closed");
    EXPECT_EQ(text_of(*other), "");
    EXPECT_EQ(text_of(*deployment), "drop d.c, dropDatabase d");
}

TEST(ChangeStream, EndsAlsoWhenTheFilterHidesTheEnd) {
    World world;
    const auto stream = world.watch("d.c", "{}", R"([{"$match": {"operationType": "insert"}}])");
    world.feed.insert("d.c", 1);
    world.feed.drop("d.c");
    EXPECT_EQ(text_of(*stream), "insert d.c 1, closed");
}

TEST(ChangeStream, InvalidateFitsIntoTheNextBatch) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.insert("d.c", 1);
    world.feed.drop("d.c");
    EXPECT_EQ(text_of(poll(*stream, 2)), "insert d.c 1, drop d.c");
    EXPECT_EQ(text_of(poll(*stream, 2)), "invalidate, closed");
}

TEST(ChangeStream, ShowsExpandedEventsWhenAsked) {
    World world;
    const auto plain = world.watch("d.c");
    const auto expanded = world.watch("d.c", R"({"showExpandedEvents": true})");
    world.feed.write(OpKind::Command, "d.c", {}, bson::make("create", "c"));
    world.feed.write(
        OpKind::Command, "d.c", {},
        bson::make("createIndexes", "c", "indexes", bson::array(bson::make("name", "a_1"))));
    world.feed.insert("d.c", 1);
    world.feed.write(
        OpKind::Command, "d.c", {},
        bson::make("dropIndexes", "c", "indexes", bson::array(bson::make("name", "a_1"))));
    EXPECT_EQ(text_of(*plain), "insert d.c 1");
    EXPECT_EQ(text_of(*expanded), "create d.c, createIndexes d.c, insert d.c 1, dropIndexes d.c");
}

TEST(ChangeStream, KeepsToTheSizeOfABatch) {
    World world;
    const auto stream = world.watch("d.c");
    const auto large = bson::make("text", std::string(1000, 'x'));
    for (std::int32_t i = 1; i <= 5; ++i) world.feed.insert("d.c", i, large);
    EXPECT_EQ(text_of(poll(*stream, 2)), "insert d.c 1, insert d.c 2");
    EXPECT_EQ(text_of(poll(*stream, kNoLimit, 1)), "insert d.c 3");
    EXPECT_EQ(text_of(poll(*stream, 0)), "");
    EXPECT_EQ(text_of(poll(*stream, kNoLimit, 3000)), "insert d.c 4, insert d.c 5");
}

TEST(ChangeStream, RefusesAnEventOverTheLimit) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.insert("d.c", 1,
                      bson::make("text", std::string(bson::kDocumentBytesInternalMax, 'x')));
    EXPECT_EQ(stream->poll(kNoLimit, kNoLimit).error().code, ErrorCode::BSONObjectTooLarge);
}

TEST(ChangeStream, ReadsABoundedNumberOfEntriesPerPoll) {
    World world;
    const auto start =
        bson::to_json(bson::make("startAtOperationTime", world.oplog.newest_durable()));
    for (std::int32_t i = 0; i < 10'000; ++i) world.feed.insert("d.other", i);
    world.feed.insert("d.c", 1);
    const auto stream = world.watch("d.c", start);
    const auto first = poll(*stream);
    EXPECT_EQ(text_of(first), "");
    const auto second = poll(*stream);
    EXPECT_LT(hex_of(first.resume_token), hex_of(second.resume_token));
    EXPECT_EQ(text_of(second), "");
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
}

TEST(ChangeStream, SharesEncodedEventsOfEqualShape) {
    World world;
    const auto one = world.watch("d.c");
    const auto two = world.watch("d.c", R"({"fullDocument": "updateLookup"})");
    const auto expanded = world.watch("d.c", R"({"showExpandedEvents": true})");
    for (std::int32_t i = 0; i < 10; ++i) world.feed.insert("d.c", i);
    EXPECT_EQ(poll(*one).events.size(), 10u);
    EXPECT_EQ(poll(*two).events.size(), 10u);
    EXPECT_EQ(poll(*expanded).events.size(), 10u);
    EXPECT_EQ(world.streams.counters().events_encoded, 20u);
    EXPECT_EQ(world.streams.counters().events_shared, 10u);
    EXPECT_EQ(world.streams.counters().events_delivered, 30u);
}

TEST(ChangeStream, AfterCloseIsKilled) {
    World world;
    const auto stream = world.watch("d.c");
    stream->close();
    EXPECT_EQ(stream->poll(kNoLimit, kNoLimit).error().code, ErrorCode::CursorKilled);
}

TEST(ChangeStream, AfterShutdownMayBeResumedElsewhere) {
    World world;
    const auto stream = world.watch("d.c");
    world.streams.shutdown();
    for (int i = 0; i < 2; ++i) {
        const auto batch = stream->poll(kNoLimit, kNoLimit);
        ASSERT_FALSE(batch.has_value());
        EXPECT_EQ(batch.error().code, ErrorCode::ShutdownInProgress);
        EXPECT_TRUE(batch.error().has_label("ResumableChangeStreamError"));
    }
    EXPECT_EQ(world.refusal_code("d.c", "{}"), ErrorCode::ShutdownInProgress);
}

TEST(ChangeStream, MayOutliveItsMaker) {
    std::shared_ptr<ChangeStream> stream;
    {
        World world;
        stream = world.watch("d.c");
    }
    EXPECT_EQ(stream->poll(kNoLimit, kNoLimit).error().code, ErrorCode::ShutdownInProgress);
}

}  // namespace
}  // namespace angelia::engine::changes
