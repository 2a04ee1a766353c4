// Retryable writes: executed once, answered again with the same result, also after a restart.
#include "engine/core.h"
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

namespace angelia::engine {
namespace {

using namespace testing_support;
const Namespace kRetried{"test", "retried"};

WriteRequest retryable(std::vector<ConditionalWrite> writes, std::int64_t txn_number,
                       std::string_view session = R"({"id": "s"})") {
    WriteRequest request;
    request.writes = std::move(writes);
    request.ordered = false;
    request.retry = RetryKey{doc(session), txn_number};
    return request;
}

std::vector<ConditionalWrite> list(ConditionalWrite write) {
    std::vector<ConditionalWrite> writes;
    writes.push_back(std::move(write));
    return writes;
}

std::vector<ConditionalWrite> inserts(int n) {
    std::vector<ConditionalWrite> writes;
    for (int i = 0; i < n; ++i)
        writes.push_back(insert_write(kRetried, bson::make("_id", std::int32_t{i})));
    return writes;
}

TEST(RetryableWrite, AnInsertIsNotADuplicateOfItself) {
    TestEngine engine;
    auto first = engine.write(retryable(inserts(1), 1)).value_or_throw();
    EXPECT_FALSE(first.outcomes[0].retried);
    auto again = engine.write(retryable(inserts(1), 1)).value_or_throw();
    EXPECT_FALSE(again.outcomes[0].error);
    EXPECT_TRUE(again.outcomes[0].retried);
    EXPECT_EQ(again.outcomes[0].matched, 1);
    EXPECT_EQ(engine.oplog_kinds(), "ci");
    EXPECT_TRUE(engine.write(retryable(inserts(1), 2)).value_or_throw().outcomes[0].error);
}

TEST(RetryableWrite, AnIncrementHappensOnce) {
    TestEngine engine;
    engine.insert(kRetried, R"({"_id": 1, "n": 0})");
    for (int i = 0; i < 3; ++i) {
        const auto result =
            engine
                .write(retryable(
                    list(update_write(kRetried, R"({"_id": 1})", R"({"$inc": {"n": 1}})")), 5))
                .value_or_throw();
        EXPECT_EQ(result.outcomes[0].matched, 1);
        EXPECT_EQ(result.outcomes[0].modified, 1);
    }
    EXPECT_EQ(engine.find(kRetried), (std::vector<std::string>{R"({"_id":1,"n":1})"}));
}

TEST(RetryableWrite, ImagesAndUpsertedIdsComeAgain) {
    TestEngine engine;
    engine.insert(kRetried, R"({"_id": 1, "n": 0})");
    for (int i = 0; i < 2; ++i) {
        auto write = update_write(kRetried, R"({"_id": 1})", R"({"$inc": {"n": 1}})");
        write.image = ReturnImage::Before;
        const auto result = engine.write(retryable(list(std::move(write)), 1)).value_or_throw();
        EXPECT_EQ(text(*result.outcomes[0].image), R"({"_id":1,"n":0})");
        auto upsert =
            update_write(kRetried, R"({"_id": "new"})", R"({"$set": {"a": 1}})", false, true);
        const auto upserted =
            engine.write(retryable(list(std::move(upsert)), 1, R"({"id": "t"})")).value_or_throw();
        EXPECT_EQ(bson::to_json(upserted.outcomes[0].upserted_id.view()), R"("new")");
        auto removed = delete_write(kRetried, R"({"_id": "gone"})");
        removed.image = ReturnImage::Before;
        const auto nothing =
            engine.write(retryable(list(std::move(removed)), 1, R"({"id": "u"})")).value_or_throw();
        EXPECT_FALSE(nothing.outcomes[0].image);
    }
}

TEST(RetryableWrite, MissingStatementsAreExecutedNow) {
    TestEngine engine;
    engine.write(retryable(inserts(3), 1)).value_or_throw();
    const auto result = engine.write(retryable(inserts(5), 1)).value_or_throw();
    EXPECT_TRUE(result.outcomes[2].retried);
    EXPECT_FALSE(result.outcomes[3].retried);
    EXPECT_FALSE(result.outcomes[4].error);
    EXPECT_EQ(engine.count(kRetried), 5);
}

TEST(RetryableWrite, AnOlderNumberIsRefused) {
    TestEngine engine;
    engine.write(retryable(inserts(1), 7)).value_or_throw();
    EXPECT_EQ(error_code_name(engine.write(retryable(inserts(1), 6)).error().code),
              "TransactionTooOld");
}

TEST(RetryableWrite, MultiIsRefused) {
    TestEngine engine;
    EXPECT_EQ(
        error_code_name(
            engine.write(retryable(list(delete_write(kRetried, "{}", true)), 1)).error().code),
        "InvalidOptions");
}

TEST(RetryableWrite, LongListsAndRestartsKeepEveryStatement) {
    TempFolder folder;
    {
        TestEngine engine(folder_options(folder.path()));
        engine.write(retryable(inserts(2500), 1)).value_or_throw();
        auto write = update_write(kRetried, R"({"_id": 1})", R"({"$set": {"n": 1}})");
        write.image = ReturnImage::After;
        engine.write(retryable(list(std::move(write)), 1, R"({"id": "image"})")).value_or_throw();
        engine.close();
    }
    TestEngine engine(folder_options(folder.path()));
    const auto kinds = engine.oplog_kinds();
    const auto result = engine.write(retryable(inserts(2500), 1)).value_or_throw();
    std::int64_t retried = 0;
    for (const auto& outcome : result.outcomes) retried += outcome.retried ? 1 : 0;
    EXPECT_EQ(retried, 2500);
    auto write = update_write(kRetried, R"({"_id": 1})", R"({"$set": {"n": 1}})");
    write.image = ReturnImage::After;
    const auto image =
        engine.write(retryable(list(std::move(write)), 1, R"({"id": "image"})")).value_or_throw();
    EXPECT_EQ(text(*image.outcomes[0].image), R"({"_id":1,"n":1})");
    EXPECT_EQ(engine.oplog_kinds(), kinds);
    EXPECT_TRUE(engine.write(retryable(inserts(1), 2)).value_or_throw().outcomes[0].error);
}

TEST(RetryTable, SweepsWhatIsIdleAndOnlyThat) {
    auto storage = storage::Storage::open(memory_options().storage).value_or_throw();
    RetryTable table;
    const RetryKey old_key{doc(R"({"id": "old"})"), 1}, new_key{doc(R"({"id": "new"})"), 1};
    auto record = [&](const RetryKey& key, std::int64_t at) {
        auto section = storage->begin_apply();
        PendingStatements statements;
        statements.results.emplace_back();
        statements.images.emplace_back(0, doc(R"({"_id": 1})"));
        statements.results.back().has_image = true;
        table.record(*section, key, std::move(statements), bson::Date{at}).value_or_throw();
        section->commit().value_or_throw();
    };
    record(old_key, 0);
    record(new_key, 1000);
    auto section = storage->begin_apply();
    EXPECT_EQ(table.sweep(*section, bson::Date{kRetryIdle.count()}, 100).value_or_throw(), 1u);
    section->commit().value_or_throw();
    section.reset();
    RetryTable fresh;
    const auto& reader = storage->latest();
    EXPECT_EQ(fresh.find(reader, old_key, 0).value_or_throw(), nullptr);
    EXPECT_FALSE(fresh.image(reader, old_key, 0).value_or_throw());
    EXPECT_NE(fresh.find(reader, new_key, 0).value_or_throw(), nullptr);
    EXPECT_TRUE(fresh.image(reader, new_key, 0).value_or_throw());
    storage->close().value_or_throw();
}

}  // namespace
}  // namespace angelia::engine
