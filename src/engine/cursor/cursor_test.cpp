// Find, cursors and their ends, aggregate, count.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

namespace angelia::engine {
namespace {

using namespace testing_support;
using Texts = std::vector<std::string>;
const Namespace kRows{"test", "rows"};

void fill(TestEngine& engine, int n) {
    WriteRequest request;
    for (int i = 0; i < n; ++i)
        request.writes.push_back(
            insert_write(kRows, bson::make("_id", std::int32_t{i}, "a", std::int32_t{(i * 7) % 10},
                                           "b", std::int32_t{i})));
    engine.write(std::move(request)).value_or_throw();
}

FindSpec find_spec(std::int64_t batch_size, std::int64_t limit = 0) {
    FindSpec spec;
    spec.ns = kRows;
    spec.batch_size = batch_size;
    spec.limit = limit;
    return spec;
}

GetMoreSpec more_spec(std::int64_t id, std::int64_t batch_size = 0) {
    GetMoreSpec spec;
    spec.cursor_id = id;
    spec.ns = kRows;
    spec.batch_size = batch_size;
    return spec;
}

TEST(Find, SortsSkipsLimitsAndProjects) {
    TestEngine engine;
    fill(engine, 20);
    FindSpec spec = find_spec(101, 3);
    spec.sort = doc(R"({"a": -1, "b": 1})");
    spec.skip = 1;
    spec.projection = doc(R"({"_id": 0, "b": 1})");
    const auto batch = engine->find(spec).value_or_throw();
    Texts found;
    for (const auto& d : batch.documents) found.push_back(text(d));
    EXPECT_EQ(found, (Texts{R"({"b":17})", R"({"b":4})", R"({"b":14})"}));
    EXPECT_EQ(batch.cursor_id, 0);
    EXPECT_EQ(batch.ns, "test.rows");
}

TEST(Find, OnAMissingCollectionIsEmpty) {
    TestEngine engine;
    const auto batch = engine->find(find_spec(101)).value_or_throw();
    EXPECT_TRUE(batch.documents.empty());
    EXPECT_EQ(batch.cursor_id, 0);
}

TEST(Find, RefusesBadArguments) {
    TestEngine engine;
    fill(engine, 1);
    auto spec = find_spec(-1);
    EXPECT_EQ(code_of(engine->find(spec)), "Location51024");
    spec = find_spec(1);
    spec.hint = bson::value("nothing");
    EXPECT_EQ(code_of(engine->find(spec)), "BadValue");
    spec = find_spec(1);
    spec.filter = doc(R"({"a": {"$nonsense": 1}})");
    EXPECT_EQ(code_of(engine->find(spec)), "BadValue");
}

TEST(Find, StopsAtItsDeadline) {
    TestEngine engine;
    fill(engine, 1000);
    auto spec = find_spec(101);
    spec.filter = doc(R"({"b": -1})");
    spec.deadline = real_clock().steady_now() - milliseconds(1);
    EXPECT_EQ(code_of(engine->find(spec)), "MaxTimeMSExpired");
}

TEST(Cursor, AFullBatchLeavesItOpenAndAShortOneEndsIt) {
    TestEngine engine;
    fill(engine, 6);
    auto batch = engine->find(find_spec(3)).value_or_throw();
    EXPECT_EQ(batch.documents.size(), 3u);
    ASSERT_NE(batch.cursor_id, 0);
    const auto id = batch.cursor_id;
    batch = engine.get_more(more_spec(id, 3)).value_or_throw();
    EXPECT_EQ(batch.documents.size(), 3u);
    EXPECT_EQ(batch.cursor_id, id);
    batch = engine.get_more(more_spec(id, 3)).value_or_throw();
    EXPECT_TRUE(batch.documents.empty());
    EXPECT_EQ(batch.cursor_id, 0);
    EXPECT_EQ(code_of(engine.get_more(more_spec(id))), "CursorNotFound");
}

TEST(Cursor, ALimitEndsItAtOnce) {
    TestEngine engine;
    fill(engine, 6);
    EXPECT_EQ(engine->find(find_spec(3, 3)).value_or_throw().cursor_id, 0);
    auto sorted = find_spec(3, 3);
    sorted.sort = doc(R"({"a": 1})");
    EXPECT_EQ(engine->find(sorted).value_or_throw().cursor_id, 0);
}

TEST(Cursor, BatchSizeZeroOpensWithNothing) {
    TestEngine engine;
    fill(engine, 2);
    const auto batch = engine->find(find_spec(0)).value_or_throw();
    EXPECT_TRUE(batch.documents.empty());
    ASSERT_NE(batch.cursor_id, 0);
    EXPECT_EQ(engine.get_more(more_spec(batch.cursor_id)).value_or_throw().documents.size(), 2u);
}

TEST(Cursor, SingleBatchCloses) {
    TestEngine engine;
    fill(engine, 5);
    auto spec = find_spec(2);
    spec.single_batch = true;
    const auto batch = engine->find(spec).value_or_throw();
    EXPECT_EQ(batch.documents.size(), 2u);
    EXPECT_EQ(batch.cursor_id, 0);
}

TEST(Cursor, BatchesStayUnder16MiB) {
    TestEngine engine;
    const std::string filler(6 << 20, 'x');
    for (int i = 0; i < 5; ++i)
        engine.insert(kRows, bson::make("_id", std::int32_t{i}, "x", filler));
    auto batch = engine->find(find_spec(101)).value_or_throw();
    EXPECT_EQ(batch.documents.size(), 2u);
    batch = engine.get_more(more_spec(batch.cursor_id)).value_or_throw();
    EXPECT_EQ(batch.documents.size(), 2u);
    batch = engine.get_more(more_spec(batch.cursor_id)).value_or_throw();
    EXPECT_EQ(batch.documents.size(), 1u);
    EXPECT_EQ(batch.cursor_id, 0);
}

TEST(Cursor, IsBoundToNamespaceAndSession) {
    TestEngine engine;
    fill(engine, 5);
    auto spec = find_spec(2);
    spec.lsid = doc(R"({"id": 1})");
    const auto batch = engine->find(spec).value_or_throw();
    auto more = more_spec(batch.cursor_id);
    more.lsid = doc(R"({"id": 1})");
    more.ns.collection = "other";
    EXPECT_EQ(code_of(engine.get_more(more)), "Unauthorized");
    EXPECT_EQ(code_of(engine.get_more(more_spec(batch.cursor_id))), "Unauthorized");
    more.ns = kRows;
    EXPECT_EQ(code_of(engine.get_more(more)), "ok");
}

TEST(Cursor, IsKilled) {
    TestEngine engine;
    fill(engine, 5);
    const auto batch = engine->find(find_spec(2)).value_or_throw();
    const std::int64_t ids[] = {batch.cursor_id, 12345};
    const auto killed = engine->kill_cursors(kRows, ids);
    EXPECT_EQ(killed.killed, (std::vector<std::int64_t>{batch.cursor_id}));
    EXPECT_EQ(killed.not_found, (std::vector<std::int64_t>{12345}));
    EXPECT_EQ(code_of(engine.get_more(more_spec(batch.cursor_id))), "CursorNotFound");
}

TEST(Cursor, DiesWithItsSession) {
    TestEngine engine;
    fill(engine, 5);
    auto spec = find_spec(2);
    const auto other = engine->find(spec).value_or_throw();
    spec.lsid = doc(R"({"id": 1})");
    const auto batch = engine->find(spec).value_or_throw();
    engine->end_session(spec.lsid);
    auto more = more_spec(batch.cursor_id);
    more.lsid = spec.lsid.copy();
    EXPECT_EQ(code_of(engine.get_more(more)), "CursorNotFound");
    EXPECT_EQ(code_of(engine.get_more(more_spec(other.cursor_id))), "ok");
}

TEST(Cursor, DiesWithItsCollectionAndItsIndex) {
    TestEngine engine;
    engine.create_index(kRows, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    fill(engine, 50);
    auto by_index = find_spec(2);
    by_index.hint = bson::value("a_1");
    const auto first = engine->find(by_index).value_or_throw();
    const auto second = engine->find(find_spec(2)).value_or_throw();
    engine.drop_indexes(kRows, bson::value("a_1")).value_or_throw();
    EXPECT_EQ(code_of(engine.get_more(more_spec(first.cursor_id))), "QueryPlanKilled");
    engine.drop(kRows).value_or_throw();
    fill(engine, 50);
    EXPECT_EQ(code_of(engine.get_more(more_spec(second.cursor_id))), "QueryPlanKilled");
}

TEST(Cursor, ContinuesBehindDocumentsThatWentAway) {
    TestEngine engine;
    engine.create_index(kRows, index_spec("b_1", R"({"b": 1})")).value_or_throw();
    fill(engine, 30);
    auto scan = find_spec(10);
    auto index = find_spec(10);
    index.sort = doc(R"({"b": 1})");
    auto reverse = find_spec(10);
    reverse.sort = doc(R"({"b": -1})");
    auto ids = [&](const FindSpec& spec) {
        engine.remove(kRows, "{}");
        fill(engine, 30);
        auto batch = engine->find(spec).value_or_throw();
        std::string seen;
        auto take = [&] {
            for (const auto& d : batch.documents) seen += bson::to_json(d.view()["_id"]) + " ";
        };
        take();
        engine.remove(kRows, R"({"_id": {"$in": [9, 10, 11, 20, 19, 18]}})");
        batch = engine.get_more(more_spec(batch.cursor_id)).value_or_throw();
        take();
        return seen;
    };
    EXPECT_EQ(ids(scan), "0 1 2 3 4 5 6 7 8 9 12 13 14 15 16 17 21 22 23 24 25 26 27 28 29 ");
    EXPECT_EQ(ids(index), "0 1 2 3 4 5 6 7 8 9 12 13 14 15 16 17 21 22 23 24 25 26 27 28 29 ");
    EXPECT_EQ(ids(reverse), "29 28 27 26 25 24 23 22 21 20 17 16 15 14 13 12 8 7 6 5 4 3 2 1 0 ");
}

TEST(Cursor, ScansGoOnAfterTheFrontOfAQueueIsConsumed) {
    TestEngine engine;
    for (int round = 0; round < 3; ++round) {
        fill(engine, 100);
        EXPECT_EQ(engine.find(kRows).size(), 100u);
        engine.remove(kRows, R"({"_id": {"$lt": 90}})");
        EXPECT_EQ(engine.find(kRows).size(), 10u);
        engine.remove(kRows, "{}");
        EXPECT_TRUE(engine.find(kRows).empty());
    }
    EXPECT_EQ(engine.validate(kRows), "valid");
}

TEST(Cursor, RememberedGapsHideNothing) {
    auto options = memory_options();
    options.slow_move = microseconds(0);
    TestEngine engine(std::move(options));
    engine.create_index(kRows, index_spec("p_1", R"({"p": 1})")).value_or_throw();
    std::mt19937 random(7);
    std::set<std::int32_t> live;
    for (int round = 0; round < 400; ++round) {
        const auto id = static_cast<std::int32_t>(random() % 60);
        const auto filter = text(bson::make("_id", id));
        WriteRequest request;
        request.writes.push_back(delete_write(kRows, filter));
        request.writes.push_back(insert_write(
            kRows, bson::make("_id", id, "p", static_cast<std::int32_t>(random() % 1000))));
        request.writes.back().unless = 0;
        const bool deleted =
            engine.write(std::move(request)).value_or_throw().outcomes[0].matched == 1;
        EXPECT_EQ(deleted, live.count(id) == 1);
        deleted ? void(live.erase(id)) : void(live.insert(id));
        EXPECT_EQ(engine.find(kRows).size(), live.size());
        EXPECT_EQ(engine.find(kRows, R"({"p": {"$gte": 0}})", R"({"p": 1})").size(), live.size());
        EXPECT_EQ(engine.find(kRows, R"({"p": {"$gte": 300, "$lt": 700}})").size() +
                      engine.find(kRows, R"({"p": {"$lt": 300}})").size() +
                      engine.find(kRows, R"({"p": {"$gte": 700}})").size(),
                  live.size());
    }
    EXPECT_EQ(engine.validate(kRows), "valid");
}

TEST(Cursor, GapsHoldWhileOthersMoveDocuments) {
    auto options = memory_options();
    options.slow_move = microseconds(0);
    TestEngine engine(std::move(options));
    engine.create_index(kRows, index_spec("p_1", R"({"p": 1})")).value_or_throw();
    fill(engine, 40);
    engine.update(kRows, "{}", R"({"$set": {"p": 0}})", true);
    // Every document is always somewhere: a reader must never see fewer, wherever the writer moves
    // them.
    std::thread mover([&] {
        std::mt19937 random(11);
        for (int i = 0; i < 4000; ++i)
            engine.update(kRows, text(bson::make("_id", static_cast<std::int32_t>(random() % 40))),
                          text(bson::make(
                              "$set", bson::make("p", static_cast<std::int32_t>(random() % 500)))));
    });
    std::size_t fewest = 40;
    for (int i = 0; i < 300; ++i) {
        std::set<std::string> seen;
        for (auto& id :
             engine.find(kRows, R"({"p": {"$gte": 0}})", "{}", R"({"_id": 1})", bson::value("p_1")))
            seen.insert(std::move(id));
        fewest = std::min(fewest, seen.size());
    }
    mover.join();
    EXPECT_EQ(fewest, 40u);
    EXPECT_EQ(engine.validate(kRows), "valid");
}

TEST(Cursor, IdleOnesExpire) {
    ManualClock clock;
    auto options = memory_options();
    options.storage.clock = &clock;
    options.ttl_interval = milliseconds(1);  // the housekeeping round
    TestEngine engine(std::move(options));
    fill(engine, 5);
    auto kept_spec = find_spec(1);
    kept_spec.no_cursor_timeout = true;
    const auto batch = engine->find(find_spec(1)).value_or_throw();
    const auto kept = engine->find(kept_spec).value_or_throw();
    clock.advance(milliseconds(601'000));
    // The round runs on a timer of its own; its counter tells that it did.
    const auto timed_out = [&] {
        const auto status = engine->status();
        return *status.view()["cursors"].as_document()["timedOut"].to_int64();
    };
    while (timed_out() == 0) std::this_thread::yield();
    EXPECT_EQ(code_of(engine.get_more(more_spec(batch.cursor_id))), "CursorNotFound");
    EXPECT_EQ(code_of(engine.get_more(more_spec(kept.cursor_id))), "ok");
}

TEST(Cursor, WithoutATimeoutItLivesAsLongAsItsSession) {
    ManualClock clock;
    auto options = memory_options();
    options.storage.clock = &clock;
    options.ttl_interval = milliseconds(1);
    TestEngine engine(std::move(options));
    fill(engine, 5);
    const auto open = [&engine](std::string_view session) {
        auto spec = find_spec(1);
        spec.no_cursor_timeout = true;
        spec.lsid = doc(session);
        return engine->find(spec).value_or_throw().cursor_id;
    };
    const auto use = [&engine](std::int64_t id, std::string_view session) {
        auto spec = more_spec(id);
        spec.lsid = doc(session);
        return code_of(engine.get_more(spec));
    };
    const auto timed_out = [&engine] {
        const auto status = engine->status();
        return *status.view()["cursors"].as_document()["timedOut"].to_int64();
    };
    const auto idle = open(R"({"id": 1})");
    const auto kept = open(R"({"id": 2})");
    const auto sessionless = open("{}");
    clock.advance(milliseconds(29 * 60 * 1000));
    const auto session = doc(R"({"id": 2})");
    engine->refresh_session(session);
    EXPECT_EQ(timed_out(), 0);
    clock.advance(milliseconds(60 * 1000));
    while (timed_out() == 0) std::this_thread::yield();
    EXPECT_EQ(use(idle, R"({"id": 1})"), "CursorNotFound");
    EXPECT_EQ(use(kept, R"({"id": 2})"), "ok");
    EXPECT_EQ(use(sessionless, "{}"), "ok");
    EXPECT_EQ(timed_out(), 1);
}

TEST(Count, UsesCountersAndFilters) {
    TestEngine engine;
    fill(engine, 20);
    EXPECT_EQ(engine.count(kRows), 20);
    EXPECT_EQ(engine.count(kRows, R"({"a": 7})"), 2);
    CountSpec spec;
    spec.ns = kRows;
    spec.skip = 15;
    spec.limit = 3;
    EXPECT_EQ(engine->count(spec).value_or_throw(), 3);
    spec.filter = doc(R"({"a": {"$gte": 0}})");
    spec.skip = 18;
    EXPECT_EQ(engine->count(spec).value_or_throw(), 2);
    EXPECT_EQ(engine.count({"test", "missing"}), 0);
}

Texts aggregate(TestEngine& engine, std::string_view stages, std::int64_t batch_size = 101) {
    AggregateSpec spec;
    spec.ns = kRows;
    const auto holder = doc("{\"p\": " + std::string(stages) + "}");
    spec.pipeline = bson::Document(holder.view()["p"].as_document());
    spec.batch_size = batch_size;
    auto batch = engine->aggregate(spec).value_or_throw();
    Texts found;
    for (;;) {
        for (const auto& d : batch.documents) found.push_back(text(d));
        if (batch.cursor_id == 0) return found;
        batch = engine.get_more(more_spec(batch.cursor_id, batch_size)).value_or_throw();
    }
}

TEST(Aggregate, RunsStagesOverTheQuery) {
    TestEngine engine;
    engine.create_index(kRows, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    fill(engine, 30);
    EXPECT_EQ(
        aggregate(
            engine,
            R"([{"$match": {"a": {"$gte": 8}}}, {"$sort": {"b": -1}}, {"$limit": 2}, {"$project": {"b": 1}}])"),
        (Texts{R"({"_id":27,"b":27})", R"({"_id":24,"b":24})"}));
    EXPECT_EQ(
        aggregate(engine, R"([{"$match": {"a": 3}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}])"),
        (Texts{R"({"_id":1,"n":3})"}));
    EXPECT_EQ(aggregate(engine, R"([{"$skip": 25}, {"$project": {"_id": 1}}])", 2).size(), 5u);
    EXPECT_EQ(aggregate(engine, "[]").size(), 30u);
}

TEST(Aggregate, NeedsACollection) {
    TestEngine engine;
    AggregateSpec spec;
    spec.ns = {"test", ""};
    const auto holder = doc(R"({"p": [{"$match": {}}]})");
    spec.pipeline = bson::Document(holder.view()["p"].as_document());
    EXPECT_EQ(code_of(engine->aggregate(spec)), "InvalidNamespace");
}

}  // namespace
}  // namespace angelia::engine
