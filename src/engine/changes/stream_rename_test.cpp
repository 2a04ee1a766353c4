// Renames as streams of both names, both databases and everything see them.
#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

namespace angelia::engine::changes {
namespace {

using test::Bell;
using test::poll;
using test::text_of;
using test::token_of;
using test::World;

TEST(Rename, EndsTheStreamsOfBothNames) {
    World world;
    const auto from = world.watch("d.a");
    const auto to = world.watch("d.b");
    const auto other = world.watch("d.c");
    const auto database = world.watch("d");
    const auto deployment = world.watch("admin", R"({"allChangesForCluster": true})");
    world.feed.rename("d.a", "d.b");
    world.feed.insert("d.b", 1);
    EXPECT_EQ(text_of(*from), "rename d.a, invalidate, closed");
    EXPECT_EQ(text_of(*to), "rename d.a, invalidate, closed");
    EXPECT_EQ(text_of(*other), "");
    EXPECT_EQ(text_of(*database), "rename d.a, insert d.b 1");
    EXPECT_EQ(text_of(*deployment), "rename d.a, insert d.b 1");
}

TEST(Rename, AcrossDatabasesIsSeenInBoth) {
    World world;
    const auto from = world.watch("d");
    const auto to = world.watch("e");
    world.feed.rename("d.a", "e.b");
    EXPECT_EQ(text_of(*from), "rename d.a");
    EXPECT_EQ(text_of(*to), "rename d.a");
}

TEST(Rename, WakesThoseOfTheNewName) {
    World world;
    const auto to = world.watch("d.b", "{}", R"([{"$match": {"operationType": "insert"}}])");
    const auto database = world.watch("e");
    Bell bell, database_bell;
    bell.hang(*to);
    database_bell.hang(*database);
    world.feed.rename("d.a", "d.b");
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*to), "closed");
    world.feed.rename("d.x", "e.y");
    EXPECT_EQ(database_bell.rung(), 1);
}

TEST(Rename, GoesOnBehindItsInvalidateOnlyWithStartAfter) {
    World world;
    const auto stream = world.watch("d.a");
    world.feed.rename("d.a", "d.b");
    const auto batch = poll(*stream);
    world.feed.insert("d.a", 1);
    EXPECT_EQ(text_of(*world.watch_from("d.a", "resumeAfter", token_of(batch.events[0].view()))),
              "invalidate, closed");
    EXPECT_EQ(text_of(*world.watch_from("d.a", "startAfter", token_of(batch.events[1].view()))),
              "insert d.a 1");
    EXPECT_EQ(world.refusal_code("d.a", bson::to_json(bson::make(
                                            "resumeAfter", token_of(batch.events[1].view())))),
              ErrorCode::InvalidResumeToken);
}

}  // namespace
}  // namespace angelia::engine::changes
