#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace angelia::engine::changes {
namespace {

using test::Bell;
using test::hex_of;
using test::poll;
using test::text_of;
using test::World;

TEST(Waking, HappensOnceAndWhenThereIsSomething) {
    World world;
    const auto stream = world.watch("d.c");
    Bell bell;
    bell.hang(*stream);
    EXPECT_EQ(bell.rung(), 0);
    world.feed.insert("d.c", 1);
    EXPECT_EQ(bell.rung(), 1);
    world.feed.insert("d.c", 2);
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1, insert d.c 2");
    bell.hang(*stream);
    EXPECT_EQ(bell.rung(), 1);
}

TEST(Waking, HappensAtOnceForWhatCameBefore) {
    World world;
    const auto stream = world.watch("d.c");
    EXPECT_EQ(text_of(*stream), "");
    world.feed.insert("d.c", 1);  // between poll and wake_once
    Bell bell;
    bell.hang(*stream);
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
}

TEST(Waking, HappensAtOnceWhenABatchWasFull) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.insert("d.c", 1);
    world.feed.insert("d.c", 2);
    EXPECT_EQ(text_of(poll(*stream, 1)), "insert d.c 1");
    Bell bell;
    bell.hang(*stream);
    EXPECT_EQ(bell.rung(), 1);
}

TEST(Waking, IsNotMissedWhenTheIndexLagsBehindTheWatermark) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.durable = false;
    world.feed.insert("d.c", 1);
    world.oplog.advance(false);  // readable, the index has not heard of it yet
    Bell bell;
    bell.hang(*stream);
    world.feed.insert("d.c", 2);
    world.oplog.advance();
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1, insert d.c 2");
}

TEST(Waking, DoesNotRepeatWhatWasReadBeforeTheIndexHeardOfIt) {
    World world;
    const auto start =
        bson::to_json(bson::make("startAtOperationTime", world.oplog.newest_durable()));
    const auto stream = world.watch("d.c", start);
    world.feed.durable = false;
    world.feed.insert("d.c", 1);
    world.oplog.advance(false);
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
    Bell bell;
    bell.hang(*stream);
    world.oplog.advance();  // now the index hears of insert 1
    EXPECT_EQ(bell.rung(), 0);
    EXPECT_EQ(text_of(*stream), "");
}

TEST(Waking, IsReplacedAndCancelled) {
    World world;
    const auto stream = world.watch("d.c");
    Bell first, second;
    first.hang(*stream);
    second.hang(*stream);
    world.feed.insert("d.c", 1);
    EXPECT_EQ(first.rung(), 0);
    EXPECT_EQ(second.rung(), 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
    first.hang(*stream);
    stream->wake_once(nullptr);
    world.feed.insert("d.c", 2);
    EXPECT_EQ(first.rung(), 0);
}

TEST(Waking, IsNotDisturbedByOtherWrites) {
    World world;
    const auto stream = world.watch(
        "d.c", "{}", R"([{"$match": {"operationType": "insert", "fullDocument.to": "me"}}])");
    const auto before = poll(*stream).resume_token;
    Bell bell;
    bell.hang(*stream);
    world.feed.insert("d.other", 1, bson::make("to", "me"));
    world.feed.insert("e.c", 2, bson::make("to", "me"));
    world.feed.insert("d.c", 3, bson::make("to", "you"));
    world.feed.update("d.c", 3, bson::make("to", "me"));
    EXPECT_EQ(bell.rung(), 0);
    const std::size_t reads = world.oplog.read_count();
    const auto batch = poll(*stream);
    EXPECT_EQ(text_of(batch), "");
    EXPECT_LT(hex_of(before), hex_of(batch.resume_token));
    EXPECT_EQ(world.oplog.read_count(),
              reads);  // a stream that the index watches for need not look itself
    EXPECT_EQ(world.streams.counters().candidates, 0u);
    world.feed.insert("d.c", 4, bson::make("to", "me"));
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 4");
}

TEST(Waking, ComesForTheEndOfACollectionWhateverTheFilter) {
    World world;
    const auto stream = world.watch("d.c", "{}", R"([{"$match": {"operationType": "insert"}}])");
    Bell bell;
    bell.hang(*stream);
    world.feed.drop("d.c");
    EXPECT_EQ(bell.rung(), 1);
    EXPECT_EQ(text_of(*stream), "closed");
    bell.hang(*stream);
    EXPECT_EQ(bell.rung(), 2);
}

TEST(Waking, ComesWithCloseAndShutdown) {
    World world;
    const auto closed = world.watch("d.c");
    const auto stopped = world.watch("d.c");
    Bell at_close, at_shutdown;
    at_close.hang(*closed);
    at_shutdown.hang(*stopped);
    closed->close();
    EXPECT_EQ(at_close.rung(), 1);
    EXPECT_EQ(at_shutdown.rung(), 0);
    world.streams.shutdown();
    EXPECT_EQ(at_shutdown.rung(), 1);
    at_shutdown.hang(*stopped);
    EXPECT_EQ(at_shutdown.rung(), 2);
}

TEST(Waking, OfAThousandStreamsTouchesOnlyThoseConcerned) {
    World world;
    std::vector<std::shared_ptr<ChangeStream>> streams;
    std::vector<std::unique_ptr<Bell>> bells;
    for (int i = 0; i < 1000; ++i) {
        const std::string ns = "d.c" + std::to_string(i % 100);
        const char* const filters[] = {R"([{"$match": {"operationType": "insert"}}])",
                                       R"([{"$match": {"operationType": "delete"}}])"};
        streams.push_back(world.watch(ns, "{}", filters[i / 100 % 2]));
        bells.push_back(std::make_unique<Bell>());
        bells.back()->hang(*streams.back());
    }
    EXPECT_EQ(world.streams.counters().streams_waiting, 1000u);
    for (std::int32_t i = 0; i < 50; ++i) world.feed.insert("d.unwatched", i);
    EXPECT_EQ(world.streams.counters().candidates, 0u);

    world.feed.insert("d.c7", 1);
    auto counters = world.streams.counters();
    EXPECT_EQ(counters.candidates, 5u);
    EXPECT_EQ(counters.wakeups, 5u);
    EXPECT_EQ(counters.streams_waiting, 995u);
    EXPECT_EQ(counters.events_encoded, 0u);  // the operation alone decided

    world.feed.insert("d.c7", 2);  // the five that wait for deletes are not asked at all
    counters = world.streams.counters();
    EXPECT_EQ(counters.candidates, 5u);
    EXPECT_EQ(counters.wakeups, 5u);
    int rung = 0;
    for (const auto& bell : bells) rung += bell->rung();
    EXPECT_EQ(rung, 5);
    for (const auto& stream : streams) poll(*stream);
    EXPECT_EQ(world.streams.counters().events_delivered, 10u);
}

TEST(Waking, ForgetsStreamsThatAreGone) {
    World world;
    auto stream = world.watch("d.c");
    Bell bell;
    bell.hang(*stream);
    stream.reset();
    world.feed.insert("d.c", 1);
    EXPECT_EQ(bell.rung(), 0);
    EXPECT_EQ(world.streams.counters().streams_open, 0u);
    EXPECT_EQ(world.streams.counters().candidates, 0u);
}

/// Reads as a cursor does: sleeps until woken, polls, sleeps again.
std::vector<std::string> read_by_waking(ChangeStream& stream, std::size_t events) {
    std::vector<std::string> lines;
    while (lines.size() < events) {
        auto woken = std::make_shared<std::promise<void>>();
        auto future = woken->get_future();
        stream.wake_once([woken] { woken->set_value(); });
        if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready) break;
        for (const auto& event : poll(stream, 7).events)
            lines.push_back(test::line_of(event.view()));
    }
    return lines;
}

TEST(Waking, LosesNothingWhileWritersRun) {
    World world;
    constexpr std::int32_t kEvents = 2000;
    const auto start =
        bson::to_json(bson::make("startAtOperationTime", world.oplog.newest_durable()));
    std::vector<std::shared_ptr<ChangeStream>> streams;
    for (int i = 0; i < 4; ++i) streams.push_back(world.watch("d.c", start));
    std::vector<std::future<std::vector<std::string>>> readers;
    for (const auto& stream : streams) {
        readers.push_back(
            std::async(std::launch::async, [&stream] { return read_by_waking(*stream, kEvents); }));
    }
    std::vector<std::string> expected;
    for (std::int32_t i = 0; i < kEvents; ++i) {
        world.feed.insert("d.other", i);
        world.feed.insert("d.c", i);
        expected.push_back("insert d.c " + std::to_string(i));
    }
    for (auto& reader : readers) EXPECT_EQ(reader.get(), expected);
}

TEST(Waking, ShutdownWaitsForARunningPoll) {
    World world;
    const auto stream = world.watch("d.c");
    world.feed.insert("d.c", 1);
    std::promise<void> inside, go_on;
    std::shared_future<void> may_go_on = go_on.get_future().share();
    world.oplog.during_read = [&inside, may_go_on, first = std::make_shared<std::once_flag>()] {
        std::call_once(*first, [&] {
            inside.set_value();
            may_go_on.wait();
        });
    };
    auto reader = std::async(std::launch::async, [&] { return text_of(*stream); });
    inside.get_future().wait();
    std::atomic<bool> down{false};
    auto stopper = std::async(std::launch::async, [&] {
        world.streams.shutdown();
        down = true;
    });
    EXPECT_FALSE(down);
    go_on.set_value();
    EXPECT_EQ(reader.get(), "insert d.c 1");
    stopper.get();
    EXPECT_TRUE(down);
}

}  // namespace
}  // namespace angelia::engine::changes
