// What a store knows when it is opened again, and what one sync is worth.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace angelia::engine {
namespace {

using namespace testing_support;
using Texts = std::vector<std::string>;
const Namespace kKept{"test", "kept"};

TEST(Reopen, FindsCatalogRecordsCountersAndFlags) {
    TempFolder folder;
    std::string listed;
    std::int64_t bytes = 0;
    {
        TestEngine engine(folder_options(folder.path()));
        auto spec = index_spec("t_1", R"({"t": 1})");
        spec.unique = true;
        spec.expire_after_seconds = 3600;
        spec.extra = doc(R"({"hidden": true})");
        engine.create_index(kKept, std::move(spec)).value_or_throw();
        engine.create_index(kKept, index_spec("a_1", R"({"a": 1})")).value_or_throw();
        engine.insert(kKept, R"({"_id": 1, "t": 1, "a": [1, 2]})");
        engine.insert(kKept, R"({"_id": 2, "t": 2, "a": 5})");
        engine.remove(kKept, R"({"_id": 2})");
        bytes = engine->collection_stats(kKept).value_or_throw().bytes;
        engine.close();
    }
    TestEngine engine(folder_options(folder.path()));
    const auto stats = engine->collection_stats(kKept).value_or_throw();
    EXPECT_EQ(stats.count, 1);
    EXPECT_EQ(stats.bytes, bytes);
    ASSERT_EQ(stats.indexes.size(), 3u);
    EXPECT_TRUE(stats.indexes[1].unique);
    EXPECT_EQ(stats.indexes[1].expire_after_seconds, 3600);
    EXPECT_EQ(text(stats.indexes[1].extra), R"({"hidden":true})");
    EXPECT_EQ(engine.find(kKept, R"({"a": {"$gte": 1}})", R"({"a": 1})"),
              (Texts{R"({"_id":1,"t":1,"a":[1,2]})"}));
    EXPECT_TRUE(engine.insert(kKept, R"({"_id": 3, "t": 1})").error);
    EXPECT_FALSE(engine.insert(kKept, R"({"_id": 3, "t": 3})").error);
    EXPECT_EQ(engine.validate(kKept), "valid");
}

TEST(Reopen, IdsAreNeverUsedTwice) {
    TempFolder folder;
    std::uint32_t id = 0;
    {
        TestEngine engine(folder_options(folder.path()));
        engine.create(kKept).value_or_throw();
        id = engine->list_collections("test")[0].id;
        engine.drop(kKept).value_or_throw();
        engine.close();
    }
    TestEngine engine(folder_options(folder.path()));
    engine.create(kKept).value_or_throw();
    EXPECT_GT(engine->list_collections("test")[0].id, id + 1);
}

TEST(Reopen, AHundredTimesWithRandomWritesStaysValid) {
    TempFolder folder;
    std::mt19937 random(20261130);
    std::int64_t expected = 0;
    std::int32_t next = 0;
    for (int round = 0; round < 100; ++round) {
        TestEngine engine(folder_options(folder.path()));
        engine.create_index(kKept, index_spec("a_1", R"({"a": 1})")).value_or_throw();
        EXPECT_EQ(engine.count(kKept), expected);
        for (int i = 0; i < 5; ++i)
            engine.insert(kKept,
                          bson::make("_id", next++, "a", static_cast<std::int32_t>(random() % 10)));
        expected += 5;
        expected -=
            engine.remove(kKept, text(bson::make("a", static_cast<std::int32_t>(random() % 10))))
                .matched;
        engine.update(kKept, text(bson::make("a", static_cast<std::int32_t>(random() % 10))),
                      R"({"$inc": {"a": 1}})", true);
        engine.close();
    }
    TestEngine engine(folder_options(folder.path()));
    EXPECT_EQ(engine.count(kKept), expected);
    EXPECT_EQ(engine.validate(kKept), "valid");
}

TEST(Durability, ManyWritersShareOneSync) {
    TempFolder folder;
    TestEngine engine(folder_options(folder.path()));
    engine.create(kKept).value_or_throw();
    const auto before = engine->storage().statistics();
    // All writes are handed in before the first answer is waited for: a hundred writers of one
    // request each.
    constexpr int kWriters = 100;
    std::atomic<int> answered{0};
    std::promise<void> all;
    for (int i = 0; i < kWriters; ++i) {
        WriteRequest request;
        request.writes.push_back(insert_write(kKept, bson::make("_id", std::int32_t{i})));
        engine->write(std::move(request), [&](Result<WriteResult> result) {
            EXPECT_TRUE(result);
            if (++answered == kWriters) all.set_value();
        });
    }
    all.get_future().wait();
    const auto after = engine->storage().statistics();
    EXPECT_EQ(after.commits - before.commits, 100u);
    EXPECT_LT(after.syncs - before.syncs, 100u);
}

TEST(Durability, AnAnswerMeansDurable) {
    TempFolder folder;
    TestEngine engine(folder_options(folder.path()));
    for (int i = 0; i < 20; ++i) {
        WriteRequest request;
        request.writes.push_back(insert_write(kKept, bson::make("_id", std::int32_t{i})));
        std::promise<bool> durable;
        engine->write(std::move(request), [&](Result<WriteResult> result) {
            durable.set_value(result.value().operation_time <= engine->storage().durable().time);
        });
        EXPECT_TRUE(durable.get_future().get());
    }
}

TEST(Durability, UnacknowledgedWritesAnswerAtOnce) {
    TempFolder folder;
    TestEngine engine(folder_options(folder.path()));
    WriteRequest request;
    request.wait_durable = false;
    request.writes.push_back(insert_write(kKept, doc(R"({"_id": 1})")));
    bool answered = false;
    engine->write(std::move(request),
                  [&](Result<WriteResult> result) { answered = result.has_value(); });
    EXPECT_TRUE(answered);
    engine->storage().wait_durable(engine->storage().applied()).value_or_throw();
    EXPECT_EQ(engine.count(kKept), 1);
}

TEST(FullStore, AFailedCommitChangesNothing) {
    auto options = memory_options();
    options.storage.memory_bytes_max = std::size_t{16} << 20;
    TestEngine engine(std::move(options));
    engine.create_index(kKept, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    const std::string filler(100'000, 'x');
    std::int32_t inserted = 0;
    auto outcome = engine.insert(kKept, bson::make("_id", inserted, "a", inserted, "x", filler));
    while (!outcome.error && inserted < 1000) {
        ++inserted;
        outcome = engine.insert(kKept, bson::make("_id", inserted, "a", inserted, "x", filler));
    }
    EXPECT_EQ(code_of(outcome), "OutOfDiskSpace");
    // The background frees room at moments of its own (flush, compression, trimming): only what can
    // never fit is refused for sure. A document counts twice, as record and as oplog entry.
    const std::string large(9'000'000, 'y');
    EXPECT_EQ(
        code_of(engine.insert({"test", "more"}, bson::make("_id", std::int32_t{1}, "x", large))),
        "OutOfDiskSpace");
    WriteRequest retried;
    retried.retry = RetryKey{doc(R"({"id": 1})"), 1};
    retried.writes.push_back(insert_write(kKept, bson::make("_id", std::int32_t{-1}, "x", large)));
    EXPECT_EQ(code_of(engine.write(std::move(retried))), "OutOfDiskSpace");
    // Reads go on and show exactly what was acknowledged.
    EXPECT_EQ(engine.count(kKept), inserted);
    EXPECT_EQ(engine.find(kKept, R"({"a": {"$gte": 0}})", "{}", R"({"_id": 1})").size(),
              static_cast<std::size_t>(inserted));
    EXPECT_EQ(engine->list_collections("test").size(), 1u);
    EXPECT_EQ(engine.validate(kKept), "valid");
}

TEST(Close, RefusesWhatComesLater) {
    TestEngine engine;
    engine.insert(kKept, R"({"_id": 1})");
    engine->close().value_or_throw();
    EXPECT_EQ(error_code_name(engine.insert(kKept, R"({"_id": 2})").error->code),
              "ShutdownInProgress");
    FindSpec spec;
    spec.ns = kKept;
    EXPECT_EQ(error_code_name(engine->find(spec).error().code), "ShutdownInProgress");
    engine->close().value_or_throw();
}

}  // namespace
}  // namespace angelia::engine
