// Many streams: a commit asks and encodes only for those that can want it, and none has a thread.
#include "engine/changes/testing/fake_oplog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

namespace angelia::engine::changes {
namespace {

using test::Bell;
using test::text_of;
using test::World;

using Streams = std::vector<std::shared_ptr<ChangeStream>>;

int thread_count() {
    std::ifstream status("/proc/self/status");
    std::string word;
    int threads = -1;
    while (threads < 0 && status >> word)
        if (word == "Threads:") status >> threads;
    return threads;
}

/// Opens `count` streams, each with the filter that `stages` makes of its number, all waiting.
Streams open_streams(World& world, Bell& bell, int count, std::string_view ns,
                     const std::function<std::string(int)>& stages,
                     std::string_view options = "{}") {
    Streams streams;
    for (int i = 0; i < count; ++i) {
        streams.push_back(world.watch(ns, options, stages(i)));
        bell.hang(*streams.back());
    }
    return streams;
}

struct Asked {
    std::uint64_t candidates, encoded;
};
Asked asked(const World& world) {
    const auto counters = world.streams.counters();
    return {counters.candidates, counters.events_encoded};
}

TEST(FanOut, AThousandStreamsNeedNoThread) {
    World world;
    Bell bell;
    const int before = thread_count();
    ASSERT_GT(before, 0);
    const auto streams =
        open_streams(world, bell, 1000, "d.c", [](int) { return std::string("[]"); });
    EXPECT_EQ(world.streams.counters().streams_waiting, 1000u);
    EXPECT_EQ(thread_count(), before);
    world.feed.insert("d.c", 1);
    EXPECT_EQ(bell.rung(), 1000);
    for (const auto& stream : streams) EXPECT_EQ(text_of(*stream), "insert d.c 1");
    EXPECT_EQ(world.streams.counters().events_encoded, 1u);
    EXPECT_EQ(thread_count(), before);
}

TEST(FanOut, OtherCollectionsAskNobody) {
    World world;
    Bell bell;
    const auto streams =
        open_streams(world, bell, 1000, "d.c", [](int) { return std::string("[]"); });
    for (int i = 0; i < 100; ++i) world.feed.insert("d.other", i);
    EXPECT_EQ(bell.rung(), 0);
    EXPECT_EQ(asked(world).candidates, 0u);
    EXPECT_EQ(asked(world).encoded, 0u);
}

TEST(FanOut, OtherOperationsAskNobody) {
    World world;
    Bell bell;
    const auto streams = open_streams(world, bell, 1000, "d.c", [](int) {
        return std::string(R"([{"$match": {"operationType": {"$in": ["delete", "update"]}}}])");
    });
    for (int i = 0; i < 100; ++i) world.feed.insert("d.c", i);
    EXPECT_EQ(asked(world).candidates, 0u);
    EXPECT_EQ(asked(world).encoded, 0u);
    world.feed.remove("d.c", 1);
    EXPECT_EQ(bell.rung(), 1000);
}

TEST(FanOut, AnInsertAsksOnlyWhoPinsItsValue) {
    World world;
    Bell bell;
    const auto streams = open_streams(world, bell, 1000, "d.c", [](int i) {
        return fmt::format(R"([{{"$match": {{"fullDocument.topic": "t{}"}}}}])", i);
    });
    for (int i = 0; i < 100; ++i) world.feed.insert("d.c", i, bson::make("topic", "unknown"));
    world.feed.update("d.c", 1, bson::make("topic", "t5"));
    world.feed.remove("d.c", 1);
    EXPECT_EQ(asked(world).candidates, 0u);
    EXPECT_EQ(asked(world).encoded, 0u);
    world.feed.insert("d.c", 200, bson::make("topic", "t7"));
    EXPECT_EQ(asked(world).candidates, 1u);
    EXPECT_EQ(asked(world).encoded, 1u);
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*streams[7]), "insert d.c 200");
    EXPECT_EQ(text_of(*streams[8]), "");
}

TEST(FanOut, ADatabaseStreamMayPinItsCollections) {
    World world;
    Bell bell;
    const auto streams = open_streams(world, bell, 1000, "d", [](int i) {
        return fmt::format(
            R"([{{"$match": {{"ns.coll": {{"$in": ["c{}", "c{}"]}}, "operationType": "insert"}}}}])",
            2 * i, 2 * i + 1);
    });
    world.feed.insert("d.other", 1);
    EXPECT_EQ(asked(world).candidates, 0u);
    world.feed.insert("d.c21", 1);
    EXPECT_EQ(asked(world).candidates, 1u);
    EXPECT_EQ(text_of(*streams[10]), "insert d.c21 1");
}

TEST(FanOut, TheEndReachesEveryStreamWhateverItPins) {
    World world;
    Bell bell;
    const auto streams = open_streams(world, bell, 1000, "d.c", [](int i) {
        return fmt::format(R"([{{"$match": {{"fullDocument.topic": "t{}"}}}}])", i);
    });
    world.feed.drop("d.c");
    EXPECT_EQ(bell.rung(), 1000);
    EXPECT_EQ(text_of(*streams[999]), "closed");
}

TEST(FanOut, PinsHoldForArraysNumbersAndNestedFields) {
    World world;
    const auto in_array = world.watch("d.c", "{}", R"([{"$match": {"fullDocument.tags": "red"}}])");
    const auto number = world.watch("d.c", "{}", R"([{"$match": {"fullDocument.n": 5}}])");
    const auto nested =
        world.watch("d.c", "{}", R"([{"$match": {"fullDocument.items.name": "x"}}])");
    const auto key = world.watch("d.c", "{}", R"([{"$match": {"documentKey._id": {"$eq": 4}}}])");
    Bell array_bell, number_bell, nested_bell, key_bell;
    array_bell.hang(*in_array);
    number_bell.hang(*number);
    nested_bell.hang(*nested);
    key_bell.hang(*key);
    world.feed.insert("d.c", 1, bson::make("tags", bson::array("blue", "red")));
    EXPECT_EQ(array_bell.rung(), 1);
    EXPECT_EQ(number_bell.rung(), 0);
    world.feed.insert("d.c", 2, bson::make("n", 5.0));
    EXPECT_EQ(number_bell.rung(), 1);
    world.feed.insert(
        "d.c", 3,
        bson::make("items", bson::array(bson::make("name", "y"), bson::make("name", "x"))));
    EXPECT_EQ(nested_bell.rung(), 1);
    world.feed.remove("d.c", 4);
    EXPECT_EQ(key_bell.rung(), 1);
    EXPECT_EQ(text_of(*in_array), "insert d.c 1");
    EXPECT_EQ(text_of(*number), "insert d.c 2");
    EXPECT_EQ(text_of(*nested), "insert d.c 3");
    EXPECT_EQ(text_of(*key), "delete d.c 4");
}

TEST(FanOut, WhatIsLookedUpIsNotDecidedByAPin) {
    World world;
    world.documents[1] = bson::make("_id", std::int32_t{1}, "topic", "t");
    const auto stream = world.watch("d.c", R"({"fullDocument": "updateLookup"})",
                                    R"([{"$match": {"fullDocument.topic": "t"}}])");
    Bell bell;
    bell.hang(*stream);
    world.feed.update("d.c", 1, bson::make("other", true));
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*stream), "update d.c 1");
}

TEST(FanOut, AbsenceIsNeverPinned) {
    World world;
    const auto null = world.watch("d.c", "{}", R"([{"$match": {"fullDocument.topic": null}}])");
    const auto either =
        world.watch("d.c", "{}", R"([{"$match": {"fullDocument.topic": {"$in": ["a", null]}}}])");
    Bell bell;
    bell.hang(*null);
    bell.hang(*either);
    world.feed.remove("d.c", 1);
    EXPECT_EQ(bell.rung(), 2);
    EXPECT_EQ(text_of(*null), "delete d.c 1");
    EXPECT_EQ(text_of(*either), "delete d.c 1");
}

TEST(FanOut, StreamsComeAndGoInAnyOrder) {
    World world;
    Bell bell;
    auto streams = open_streams(world, bell, 300, "d.c", [](int i) {
        return fmt::format(R"([{{"$match": {{"fullDocument.topic": {{"$in": ["t{}", "t{}"]}}}}}}])",
                           i % 10, (i + 1) % 10);
    });
    for (std::size_t i = 0; i < streams.size(); i += 3) streams[i].reset();
    world.feed.insert("d.c", 1, bson::make("topic", "t4"));
    int expected = 0;
    for (int i = 0; i < 300; ++i) expected += (i % 3 != 0 && (i % 10 == 4 || i % 10 == 3)) ? 1 : 0;
    EXPECT_EQ(bell.rung(), expected);
    streams.clear();
    world.feed.insert("d.c", 2, bson::make("topic", "t4"));
    EXPECT_EQ(world.streams.counters().streams_open, 0u);
    EXPECT_EQ(bell.rung(), expected);
}

}  // namespace
}  // namespace angelia::engine::changes
