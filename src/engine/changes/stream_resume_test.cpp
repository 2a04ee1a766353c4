#include "engine/changes/resume_token.h"
#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

#include <random>

namespace angelia::engine::changes {
namespace {

using test::hex_of;
using test::kNoLimit;
using test::poll;
using test::text_of;
using test::token_of;
using test::World;

std::string at_time(bson::Timestamp time) {
    return bson::to_json(bson::make("startAtOperationTime", time));
}

void expect_history_lost(const Result<ChangeStream::Batch>& batch) {
    ASSERT_FALSE(batch.has_value());
    EXPECT_EQ(batch.error().code, ErrorCode::ChangeStreamHistoryLost);
    EXPECT_TRUE(batch.error().has_label("NonResumableChangeStreamError"));
    EXPECT_NE(batch.error().message.find("resume point may no longer be in the oplog"),
              std::string::npos);
}

TEST(Resume, AfterAnEventGoesOnBehindIt) {
    World world;
    const auto stream = world.watch("d.c");
    for (std::int32_t i = 1; i <= 3; ++i) world.feed.insert("d.c", i);
    const auto batch = poll(*stream);
    EXPECT_EQ(text_of(*world.watch_from("d.c", "resumeAfter", token_of(batch.events[0].view()))),
              "insert d.c 2, insert d.c 3");
    EXPECT_EQ(text_of(*world.watch_from("d.c", "startAfter", token_of(batch.events[1].view()))),
              "insert d.c 3");
    EXPECT_EQ(text_of(*world.watch_from("d.c", "resumeAfter", batch.resume_token)), "");
}

TEST(Resume, InTheMiddleOfACommitGoesOnInIt) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.durable = false;
    world.feed.insert("d.c", 1);
    world.feed.same_commit = true;
    world.feed.insert("d.c", 2);
    world.feed.insert("d.c", 3);
    world.oplog.advance();
    const auto batch = poll(*stream, 1);
    EXPECT_EQ(text_of(batch), "insert d.c 1");
    EXPECT_EQ(text_of(*world.watch_from("d.c", "resumeAfter", batch.resume_token)),
              "insert d.c 2, insert d.c 3");
    EXPECT_EQ(text_of(*stream), "insert d.c 2, insert d.c 3");
}

TEST(Resume, AfterAnEventOfAnotherCollectionIsRefused) {
    World world;
    const auto stream = world.watch("d.other");
    world.feed.insert("d.other", 1);
    world.feed.insert("d.c", 2);
    const auto token = token_of(poll(*stream).events.at(0).view());
    const auto refused = world.try_watch("d.c", bson::to_json(bson::make("resumeAfter", token)));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::ChangeStreamFatalError);
    EXPECT_TRUE(refused.error().has_label("NonResumableChangeStreamError"));
    EXPECT_EQ(text_of(*world.watch_from("d", "resumeAfter", token)), "insert d.c 2");
}

TEST(Resume, TheFirstTokenIsNotOlderThanTheOneHandedBack) {
    World world;
    const auto stream = world.watch("d.c");
    for (std::int32_t i = 1; i <= 3; ++i) world.feed.insert("d.c", i);
    const auto token = token_of(poll(*stream).events.at(1).view());
    const auto resumed = world.watch_from("d.c", "resumeAfter", token);
    EXPECT_EQ(hex_of(poll(*resumed, 0).resume_token), hex_of(token));
}

TEST(Resume, AnExpandedEventIsNotFoundByAPlainStream) {
    World world;
    const auto expanded = world.watch("d.c", R"({"showExpandedEvents": true})");
    world.feed.write(OpKind::Command, "d.c", {}, bson::make("create", "c"));
    const auto token = token_of(poll(*expanded).events.at(0).view());
    EXPECT_EQ(world.refusal_code("d.c", bson::to_json(bson::make("resumeAfter", token))),
              ErrorCode::ChangeStreamFatalError);
}

TEST(Resume, ATokenOfTheFutureIsLookedForWhenItComes) {
    World world;
    const auto now = world.oplog.newest_durable();
    const auto token =
        ResumeToken::event({now.seconds + 100, 1}, 0, test::kTestStore).to_document();
    const auto stream = world.watch_from("d.c", "resumeAfter", token);
    EXPECT_EQ(text_of(*stream), "");
    world.oplog.set_time({now.seconds + 200, 0});
    world.feed.insert("d.c", 1);
    EXPECT_EQ(stream->poll(kNoLimit, kNoLimit).error().code, ErrorCode::ChangeStreamFatalError);
}

TEST(Resume, TokensOfBatchesFitEveryStream) {
    World world;
    const auto start = at_time(world.oplog.newest_durable());
    for (std::int32_t i = 0; i < 5000; ++i) world.feed.insert("d.other", i);
    world.feed.insert("d.c", 1);
    const auto stream = world.watch("d.c", start);
    const auto first = poll(*stream);  // ends at the bound, on somebody else's entry
    ASSERT_TRUE(first.events.empty());
    EXPECT_EQ(text_of(*world.watch_from("d.c", "resumeAfter", first.resume_token)), "insert d.c 1");
}

TEST(Resume, AfterTheTokenOfAnEmptyBatchMissesNothing) {
    World world;
    const auto stream = world.watch("d.c");
    const auto fresh = poll(*stream).resume_token;
    world.feed.insert("d.other", 1);
    const auto later = poll(*stream).resume_token;
    EXPECT_LT(hex_of(fresh), hex_of(later));
    world.feed.insert("d.c", 2);
    EXPECT_EQ(text_of(*world.watch_from("d.c", "resumeAfter", fresh)), "insert d.c 2");
    EXPECT_EQ(text_of(*world.watch_from("d.c", "startAfter", later)), "insert d.c 2");
}

TEST(Resume, TokensOfBatchesNeverGoBack) {
    World world;
    const auto stream = world.watch("d.c");
    std::string last = hex_of(poll(*stream).resume_token);
    for (std::int32_t i = 0; i < 20; ++i) {
        world.feed.insert(i % 3 == 0 ? "d.c" : "d.other", i);
        world.feed.insert("d.c", 100 + i);
        const auto batch = poll(*stream, 1);
        const std::string event = hex_of(token_of(batch.events.at(0).view()));
        const std::string token = hex_of(batch.resume_token);
        EXPECT_LT(last, event);
        EXPECT_LE(event, token);
        last = token;
    }
}

TEST(Resume, AfterADropStillShowsTheInvalidate) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.drop("d.c");
    world.feed.insert("d.c", 1);
    const auto batch = poll(*stream);
    ASSERT_EQ(text_of(batch), "drop d.c, invalidate, closed");
    EXPECT_EQ(text_of(*world.watch_from("d.c", "resumeAfter", token_of(batch.events[0].view()))),
              "invalidate, closed");
}

TEST(Resume, AfterAnInvalidateIsOnlyForStartAfter) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.drop("d.c");
    world.feed.insert("d.c", 1);
    const auto token = poll(*stream).resume_token;
    EXPECT_EQ(world.refusal_code("d.c", bson::to_json(bson::make("resumeAfter", token))),
              ErrorCode::InvalidResumeToken);
    EXPECT_EQ(text_of(*world.watch_from("d.c", "startAfter", token)), "insert d.c 1");
}

TEST(Resume, ADroppedDatabaseDoesNotEndANewStreamOfItsCollection) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.drop("d.c");
    world.feed.drop_database("d");
    world.feed.insert("d.c", 1);
    EXPECT_EQ(text_of(*world.watch_from("d.c", "startAfter", poll(*stream).resume_token)),
              "insert d.c 1");
}

TEST(Resume, FromATimeIncludesIt) {
    World world;
    world.feed.insert("d.c", 1);
    const auto second = world.feed.insert("d.c", 2);
    world.feed.insert("d.c", 3);
    EXPECT_EQ(text_of(*world.watch("d.c", at_time(second.time))), "insert d.c 2, insert d.c 3");
}

TEST(Resume, FromAFutureTimeWaitsForIt) {
    World world;
    const auto stream = world.watch("d.c", at_time({2000, 5}));
    world.feed.insert("d.c", 1);
    const auto early = poll(*stream);
    EXPECT_EQ(text_of(early), "");
    EXPECT_EQ(hex_of(early.resume_token).substr(0, 18), "01000007D000000005");
    test::Bell bell;
    bell.hang(*stream);
    world.oplog.set_time({2000, 3});
    world.feed.insert("d.c", 2);
    EXPECT_EQ(bell.rung(), 0);
    world.feed.insert("d.c", 3);
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 3");
}

TEST(Resume, FromTrimmedHistoryIsRefused) {
    World world;
    const auto stream = world.watch("d.c");
    const auto first = world.feed.insert("d.c", 1);
    const auto second = world.feed.insert("d.c", 2);
    const auto third = world.feed.insert("d.c", 3);
    const auto batch = poll(*stream);
    ASSERT_TRUE(world.oplog.trim_before(third.time).has_value());
    const auto refused = [&](const bson::Document& options) {
        return world.refusal_code("d.c", bson::to_json(options));
    };
    EXPECT_EQ(refused(bson::make("startAtOperationTime", first.time)),
              ErrorCode::ChangeStreamHistoryLost);
    EXPECT_EQ(refused(bson::make("startAtOperationTime", second.time)),
              ErrorCode::ChangeStreamHistoryLost);
    EXPECT_EQ(refused(bson::make("startAtOperationTime", third.time)), ErrorCode::Ok);
    EXPECT_EQ(refused(bson::make("resumeAfter", token_of(batch.events[1].view()))),
              ErrorCode::ChangeStreamHistoryLost);
    EXPECT_EQ(refused(bson::make("resumeAfter", token_of(batch.events[2].view()))), ErrorCode::Ok);
    EXPECT_EQ(refused(bson::make("startAfter", batch.resume_token)), ErrorCode::Ok);
    EXPECT_EQ(world.streams.counters().history_lost, 3u);
}

TEST(Resume, HistoryTrimmedUnderAStreamIsSaidEachTime) {
    World world;
    world.feed.insert("d.c", 1);
    const auto stream = world.watch("d.c", at_time({1000, 1}));
    const auto second = world.feed.insert("d.c", 2);
    ASSERT_TRUE(world.oplog.trim_before(second.time).has_value());
    expect_history_lost(stream->poll(kNoLimit, kNoLimit));
    expect_history_lost(stream->poll(kNoLimit, kNoLimit));
    test::Bell bell;
    bell.hang(*stream);
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(world.streams.counters().history_lost, 1u);
}

TEST(Resume, HistoryTrimmedBetweenCheckAndReadIsNotSkipped) {
    World world;
    for (std::int32_t i = 1; i <= 3; ++i) world.feed.insert("d.c", i);
    const auto stream = world.watch("d.c", at_time({1000, 1}));
    world.oplog.during_read = [&] { ASSERT_TRUE(world.oplog.trim_before({1000, 3}).has_value()); };
    expect_history_lost(stream->poll(kNoLimit, kNoLimit));
}

TEST(Resume, AStreamThatHasReadEverythingSurvivesTrimming) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.insert("d.c", 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
    for (std::int32_t i = 0; i < 5; ++i) world.feed.insert("d.other", i);
    ASSERT_TRUE(world.oplog.trim_before(world.oplog.newest_durable()).has_value());
    EXPECT_EQ(text_of(*stream), "");
    world.feed.insert("d.c", 2);
    ASSERT_TRUE(world.oplog.trim_before(world.oplog.newest_durable()).has_value());
    EXPECT_EQ(text_of(*stream), "insert d.c 2");
}

/// Random changes over three collections, in commits of random size.
void write_randomly(World& world, std::mt19937& random, int commits) {
    const std::string_view namespaces[] = {"d.a", "d.b", "e.a"};
    world.feed.durable = false;
    for (int commit = 0; commit < commits; ++commit) {
        const int size = 1 + static_cast<int>(random() % 3);
        for (int i = 0; i < size; ++i) {
            const std::string_view ns = namespaces[random() % 3];
            const auto id = static_cast<std::int32_t>(random() % 10);
            const auto more = bson::make("v", static_cast<std::int32_t>(random() % 4));
            world.feed.same_commit = i > 0;
            const std::function<void()> changes[] = {
                [&] { world.feed.insert(ns, id, more); },
                [&] { world.feed.update(ns, id, more); },
                [&] { world.feed.replace(ns, id, more); },
                [&] { world.feed.remove(ns, id); },
            };
            changes[random() % 4]();
        }
        world.oplog.advance();
    }
    world.feed.same_commit = false;
}

struct Sequence {
    std::vector<std::string> events;  ///< as JSON
    std::vector<bson::Document> tokens;
};

void append_batch(Sequence& sequence, const ChangeStream::Batch& batch) {
    for (const auto& event : batch.events) {
        sequence.events.push_back(bson::to_json(event.view()));
        sequence.tokens.push_back(token_of(event.view()));
    }
}

class ResumeProperty : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ResumeProperty, EveryPointLeadsToTheRestOfTheSameSequence) {
    const auto [ns, stages] = GetParam();
    constexpr unsigned kSeed = 20261130;
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    std::mt19937 random(kSeed);
    World world;
    const auto whole = world.watch(ns, "{}", stages);
    write_randomly(world, random, 200);
    Sequence full;
    append_batch(full, poll(*whole));
    ASSERT_GT(full.events.size(), 10u);
    ASSERT_TRUE(std::is_sorted(full.tokens.begin(), full.tokens.end(),
                               [](const auto& a, const auto& b) { return hex_of(a) < hex_of(b); }));

    for (int round = 0; round < 60; ++round) {
        // From a random event on, in batches of random size; now and then the stream is left and
        // resumed at the batch's token.
        const std::size_t from = random() % full.events.size();
        auto stream = world.watch_from(ns, random() % 2 == 0 ? "resumeAfter" : "startAfter",
                                       full.tokens[from], stages);
        Sequence rest;
        for (int polls = 0; rest.events.size() + from + 1 < full.events.size() && polls < 2000;
             ++polls) {
            const auto batch = poll(*stream, 1 + random() % 5);
            append_batch(rest, batch);
            const std::shared_ptr<ChangeStream> choices[] = {
                stream, world.watch_from(ns, "resumeAfter", batch.resume_token, stages)};
            stream = choices[random() % 4 == 0 ? 1 : 0];
        }
        const std::vector<std::string> expected(
            full.events.begin() + static_cast<std::ptrdiff_t>(from) + 1, full.events.end());
        ASSERT_EQ(rest.events, expected) << "resumed at " << from;
        ASSERT_EQ(text_of(*stream), "");
    }
}

INSTANTIATE_TEST_SUITE_P(
    Scopes, ResumeProperty,
    ::testing::Values(
        std::pair{"d.a", "[]"}, std::pair{"d", "[]"},
        std::pair{"d.a", R"([{"$match": {"operationType": {"$in": ["insert", "delete"]}}}])"},
        std::pair{
            "d",
            R"([{"$match": {"$or": [{"fullDocument.v": 1}, {"operationType": "update"}]}}])"}));

}  // namespace
}  // namespace angelia::engine::changes
