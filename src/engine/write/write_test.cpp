// Writes through the whole engine: outcomes, index upkeep, races, lists.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace angelia::engine {
namespace {

using namespace testing_support;
using Texts = std::vector<std::string>;
const Namespace kThings{"test", "things"};

TEST(Insert, KeepsInsertionOrderAndBytes) {
    TestEngine engine;
    engine.insert(kThings, R"({"_id": 3, "b": "x"})");
    engine.insert(kThings, R"({"_id": 1, "a": [1, {"c": null}]})");
    EXPECT_EQ(engine.find(kThings),
              (Texts{R"({"_id":3,"b":"x"})", R"({"_id":1,"a":[1,{"c":null}]})"}));
    EXPECT_EQ(engine.count(kThings), 2);
}

TEST(Insert, MovesIdToTheFront) {
    TestEngine engine;
    engine.insert(kThings, R"({"a": 1, "_id": 7})");
    EXPECT_EQ(engine.find(kThings), (Texts{R"({"_id":7,"a":1})"}));
}

TEST(Insert, GeneratesAnObjectId) {
    TestEngine engine;
    engine.insert(kThings, R"({"a": 1})");
    FindSpec spec;
    spec.ns = kThings;
    const auto batch = engine->find(spec).value_or_throw();
    EXPECT_EQ(batch.documents.front().view().begin()->key, "_id");
    EXPECT_EQ(batch.documents.front().view()["_id"].type(), bson::Type::ObjectId);
}

TEST(Insert, RefusesBadIdsAndLargeDocuments) {
    TestEngine engine;
    EXPECT_EQ(code_of(engine.insert(kThings, R"({"_id": [1]})")), "InvalidIdField");
    EXPECT_EQ(code_of(engine.insert(kThings, R"({"_id": {"$x": 1}})")), "DollarPrefixedFieldName");
    EXPECT_EQ(code_of(engine.insert(kThings, R"({"_id": 1, "a": 1, "_id": 2})")), "BadValue");
    EXPECT_EQ(
        code_of(engine.insert(kThings, bson::make("_id", std::int32_t{1}, "x",
                                                  std::string(bson::kDocumentBytesMax, 'x')))),
        "BSONObjectTooLarge");
    EXPECT_EQ(engine.count(kThings), 0);
}

TEST(Insert, FillsEmptyTimestamps) {
    TestEngine engine;
    engine.insert(kThings, bson::make("_id", std::int32_t{1}, "a", bson::Timestamp{}, "b",
                                      bson::Timestamp{}, "c", bson::make("d", bson::Timestamp{})));
    FindSpec spec;
    spec.ns = kThings;
    const auto batch = engine->find(spec).value_or_throw();
    const auto found = batch.documents.front().view();
    EXPECT_GT(found["a"].as_timestamp(), bson::Timestamp{});
    EXPECT_GT(found["b"].as_timestamp(), found["a"].as_timestamp());
    EXPECT_EQ(found["c"].as_document()["d"].as_timestamp(), bson::Timestamp{});
    EXPECT_EQ(engine.validate(kThings), "valid");
}

TEST(Insert, DuplicateKeyNamesIndexAndValues) {
    TestEngine engine;
    engine.insert(kThings, R"({"_id": "x"})");
    const auto outcome = engine.insert(kThings, R"({"_id": "x", "a": 1})");
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(
        outcome.error->message,
        R"(E11000 duplicate key error collection: test.things index: _id_ dup key: { _id: "x" })");
    EXPECT_EQ(bson::to_json(bson::DocumentView(std::string_view(outcome.error->details_bson))),
              R"({"keyPattern":{"_id":1},"keyValue":{"_id":"x"}})");
}

TEST(Insert, ChecksNamespaces) {
    TestEngine engine;
    for (const auto& bad :
         {Namespace{"", "c"}, Namespace{"a.b", "c"}, Namespace{"db", ""}, Namespace{"db", "a$b"},
          Namespace{"db", "system.x"}, Namespace{std::string(64, 'd'), "c"},
          Namespace{"db", std::string(255, 'c')}, Namespace{"d b", "c"}})
        EXPECT_EQ(code_of(engine.insert(bad, R"({"_id": 1})")), "InvalidNamespace") << bad.full();
    EXPECT_EQ(code_of(engine.insert({std::string(63, 'd'), "c.d"}, R"({"_id": 1})")), "ok");
}

TEST(Insert, RefusesADatabaseThatDiffersOnlyByCase) {
    TestEngine engine;
    engine.insert({"News", "a"}, R"({"_id": 1})");
    EXPECT_EQ(code_of(engine.insert({"news", "a"}, R"({"_id": 1})")), "DatabaseDifferCase");
    EXPECT_EQ(engine->list_databases(), (Texts{"News"}));
}

TEST(Update, PositionalPathsAskTheFilterThatFoundTheDocument) {
    TestEngine engine;
    engine.insert(kThings, R"({"_id": 1, "a": [{"x": 1}, {"x": 2}]})");
    const auto outcome = engine.update(kThings, R"({"a.x": 2})", R"({"$set": {"a.$.y": 7}})");
    EXPECT_EQ(outcome.modified, 1);
    EXPECT_EQ(engine.find(kThings), (Texts{R"({"_id":1,"a":[{"x":1},{"x":2,"y":7}]})"}));
}

TEST(Update, ReportsMatchedAndModified) {
    TestEngine engine;
    for (int i = 0; i < 5; ++i)
        engine.insert(kThings, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i % 2}));
    const auto outcome =
        engine.update(kThings, R"({"_id": {"$lt": 4}})", R"({"$set": {"a": 1}})", true);
    EXPECT_EQ(outcome.matched, 4);
    EXPECT_EQ(outcome.modified, 2);
    EXPECT_EQ(engine.count(kThings, R"({"a": 1})"), 4);
}

TEST(Update, OfOneStopsAtTheFirst) {
    TestEngine engine;
    for (int i = 0; i < 3; ++i)
        engine.insert(kThings, bson::make("_id", std::int32_t{i}, "a", std::int32_t{0}));
    EXPECT_EQ(engine.update(kThings, R"({"a": 0})", R"({"$set": {"a": 9}})").matched, 1);
    EXPECT_EQ(engine.find(kThings, R"({"a": 9})"), (Texts{R"({"_id":0,"a":9})"}));
}

TEST(Update, WithoutEffectWritesNothing) {
    TestEngine engine;
    engine.insert(kThings, R"({"_id": 1, "a": 1})");
    const auto kinds = engine.oplog_kinds();
    const auto outcome = engine.update(kThings, R"({"_id": 1})", R"({"$set": {"a": 1}})");
    EXPECT_EQ(outcome.matched, 1);
    EXPECT_EQ(outcome.modified, 0);
    EXPECT_EQ(engine.oplog_kinds(), kinds);
}

TEST(Update, ReplacesAndKeepsTheId) {
    TestEngine engine;
    engine.insert(kThings, R"({"_id": 1, "a": 1, "b": 2})");
    EXPECT_EQ(engine.update(kThings, R"({"a": 1})", R"({"c": 3})").modified, 1);
    EXPECT_EQ(engine.find(kThings), (Texts{R"({"_id":1,"c":3})"}));
    EXPECT_EQ(code_of(engine.update(kThings, R"({"_id": 1})", R"({"_id": 2})")), "ImmutableField");
}

TEST(Update, UpsertInsertsOnceAndReportsTheId) {
    TestEngine engine;
    const auto first =
        engine.update(kThings, R"({"_id": "k", "n": {"$gt": 5}})",
                      R"({"$set": {"a": 1}, "$setOnInsert": {"b": 2}})", false, true);
    EXPECT_EQ(first.matched, 0);
    EXPECT_EQ(bson::to_json(first.upserted_id.view()), R"("k")");
    EXPECT_EQ(engine.find(kThings), (Texts{R"({"_id":"k","a":1,"b":2})"}));
    EXPECT_EQ(code_of(engine.update(kThings, R"({"_id": "k", "n": {"$gt": 5}})",
                                    R"({"$set": {"a": 1}})", false, true)),
              "DuplicateKey");
}

TEST(Update, PicksTheFirstBySortAndReturnsImages) {
    TestEngine engine;
    for (int i : {5, 2, 8})
        engine.insert(kThings, bson::make("_id", std::int32_t{i}, "p", std::int32_t{i}));
    auto write =
        update_write(kThings, R"({"taken": {"$exists": false}})", R"({"$set": {"taken": true}})");
    write.sort = doc(R"({"p": -1})");
    write.image = ReturnImage::After;
    EXPECT_EQ(text(*engine.one(std::move(write)).image), R"({"_id":8,"p":8,"taken":true})");
    write =
        update_write(kThings, R"({"taken": {"$exists": false}})", R"({"$set": {"taken": true}})");
    write.sort = doc(R"({"p": 1})");
    write.image = ReturnImage::Before;
    EXPECT_EQ(text(*engine.one(std::move(write)).image), R"({"_id":2,"p":2})");
}

TEST(Delete, OneAndMany) {
    TestEngine engine;
    for (int i = 0; i < 6; ++i)
        engine.insert(kThings, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i % 2}));
    EXPECT_EQ(engine.remove(kThings, R"({"a": 0})", false).matched, 1);
    EXPECT_EQ(engine.remove(kThings, R"({"a": 0})", true).matched, 2);
    EXPECT_EQ(engine.count(kThings), 3);
    EXPECT_EQ(engine.validate(kThings), "valid");
}

TEST(WriteList, OrderedStopsAtTheFirstError) {
    TestEngine engine;
    WriteRequest request;
    for (int id : {1, 2, 1, 3})
        request.writes.push_back(insert_write(kThings, bson::make("_id", std::int32_t{id})));
    const auto result = engine.write(std::move(request)).value_or_throw();
    EXPECT_EQ(code_of(result.outcomes[2]), "DuplicateKey");
    EXPECT_TRUE(result.outcomes[3].skipped);
    EXPECT_EQ(engine.count(kThings), 2);
}

TEST(WriteList, UnorderedGoesOn) {
    TestEngine engine;
    WriteRequest request;
    request.ordered = false;
    for (int id : {1, 2, 1, 3})
        request.writes.push_back(insert_write(kThings, bson::make("_id", std::int32_t{id})));
    const auto result = engine.write(std::move(request)).value_or_throw();
    EXPECT_EQ(code_of(result.outcomes[2]), "DuplicateKey");
    EXPECT_EQ(code_of(result.outcomes[3]), "ok");
    EXPECT_EQ(engine.count(kThings), 3);
    EXPECT_EQ(engine.validate(kThings), "valid");
}

TEST(WriteList, AFailedWriteUndoesOnlyItself) {
    TestEngine engine;
    auto unique = index_spec("u_1", R"({"u": 1})");
    unique.unique = true;
    engine.create_index(kThings, std::move(unique)).value_or_throw();
    for (int i = 0; i < 3; ++i)
        engine.insert(kThings, bson::make("_id", std::int32_t{i}, "u", std::int32_t{i}, "g",
                                          std::int32_t{1}));
    WriteRequest request;
    request.ordered = false;
    request.writes.push_back(insert_write(kThings, doc(R"({"_id": 10, "u": 10})")));
    request.writes.push_back(update_write(kThings, R"({"g": 1})", R"({"$set": {"u": 99}})",
                                          true));  // the second document breaks it
    request.writes.push_back(insert_write(kThings, doc(R"({"_id": 11, "u": 99})")));
    const auto result = engine.write(std::move(request)).value_or_throw();
    EXPECT_EQ(code_of(result.outcomes[0]), "ok");
    EXPECT_EQ(code_of(result.outcomes[1]), "DuplicateKey");
    EXPECT_EQ(code_of(result.outcomes[2]), "ok");
    EXPECT_EQ(engine.find(kThings, R"({"g": 1})", R"({"_id": 1})", R"({"u": 1, "_id": 0})"),
              (Texts{R"({"u":0})", R"({"u":1})", R"({"u":2})"}));
    EXPECT_EQ(engine.validate(kThings), "valid");
}

TEST(WriteList, AtomicIsAllOrNothing) {
    TestEngine engine;
    engine.insert(kThings, R"({"_id": 1})");
    const auto kinds = engine.oplog_kinds();
    WriteRequest request;
    request.atomic = true;
    request.writes.push_back(insert_write({"test", "other"}, doc(R"({"_id": 5})")));
    request.writes.push_back(insert_write(kThings, doc(R"({"_id": 1})")));
    request.writes.push_back(insert_write(kThings, doc(R"({"_id": 2})")));
    const auto result = engine.write(std::move(request)).value_or_throw();
    EXPECT_TRUE(result.outcomes[0].skipped);
    EXPECT_EQ(code_of(result.outcomes[1]), "DuplicateKey");
    EXPECT_EQ(engine.count(kThings), 1);
    EXPECT_EQ(engine.count({"test", "other"}), 0);
    EXPECT_EQ(engine.oplog_kinds(), kinds);
}

TEST(WriteList, AtomicEntriesShareOneTime) {
    TestEngine engine;
    engine.create(kThings).value_or_throw();
    WriteRequest request;
    request.atomic = true;
    for (int i = 0; i < 3; ++i)
        request.writes.push_back(insert_write(kThings, bson::make("_id", std::int32_t{i})));
    const auto result = engine.write(std::move(request)).value_or_throw();
    const auto before = bson::Timestamp::from_uint64(result.operation_time.as_uint64() - 1);
    const auto entries = engine->oplog().read({before}, 10, 1 << 20).value_or_throw();
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries[0]->time(), entries[2]->time());
    EXPECT_EQ(entries[2]->sub(), 2u);
}

TEST(WriteList, ConditionsOnEarlierWrites) {
    TestEngine engine;
    const Namespace locks{"test", "locks"};
    engine.insert(locks, R"({"_id": 2})");
    engine.insert(kThings, R"({"_id": 1})");
    engine.insert(kThings, R"({"_id": 2})");
    WriteRequest request;
    request.ordered = false;
    for (int id : {1, 2, 3}) {
        const auto at = request.writes.size();
        const auto filter = text(bson::make("_id", std::int32_t{id}));
        request.writes.push_back(insert_write(locks, bson::make("_id", std::int32_t{id})));
        request.writes.push_back(update_write(kThings, filter, R"({"$set": {"taken": true}})"));
        request.writes.back().only_if = at;
        request.writes.push_back(delete_write(locks, filter));
        request.writes.back().only_if = at;
        request.writes.back().unless = at + 1;
    }
    const auto result = engine.write(std::move(request)).value_or_throw();
    EXPECT_EQ(result.outcomes[1].modified, 1);  // 1: won
    EXPECT_TRUE(result.outcomes[2].skipped);
    EXPECT_TRUE(result.outcomes[4].skipped);   // 2: somebody else's lock
    EXPECT_EQ(result.outcomes[7].matched, 0);  // 3: no such thing, the lock is given back
    EXPECT_EQ(result.outcomes[8].matched, 1);
    EXPECT_EQ(engine.find(locks, "{}", R"({"_id": 1})"), (Texts{R"({"_id":1})", R"({"_id":2})"}));
}

TEST(WriteList, RefusesBadRequests) {
    TestEngine engine;
    EXPECT_EQ(error_code_name(engine.write(WriteRequest{}).error().code), "InvalidLength");
    WriteRequest request;
    request.writes.push_back(insert_write(kThings, doc(R"({"_id": 1})")));
    request.writes.back().only_if = 0;
    EXPECT_EQ(error_code_name(engine.write(std::move(request)).error().code), "BadValue");
}

TEST(WriteList, LongListsAreSplitAndComplete) {
    TestEngine engine;
    WriteRequest request;
    for (int i = 0; i < 5000; ++i)
        request.writes.push_back(
            insert_write(kThings, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i % 7})));
    const auto result = engine.write(std::move(request)).value_or_throw();
    EXPECT_EQ(std::count_if(result.outcomes.begin(), result.outcomes.end(),
                            [](const auto& o) { return o.matched == 1; }),
              5000);
    EXPECT_GE(engine->storage().statistics().commits, 5u);
    EXPECT_EQ(engine.update(kThings, "{}", R"({"$inc": {"a": 1}})", true).modified, 5000);
    EXPECT_EQ(engine.remove(kThings, R"({"a": {"$gte": 1}})").matched, 5000);
    EXPECT_EQ(engine.count(kThings), 0);
    EXPECT_EQ(engine.validate(kThings), "valid");
}

TEST(WriteSearch, LargeScansHappenOutsideTheSection) {
    TestEngine engine;
    WriteRequest request;
    for (int i = 0; i < 3000; ++i)
        request.writes.push_back(
            insert_write(kThings, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i})));
    engine.write(std::move(request)).value_or_throw();
    EXPECT_EQ(engine.update(kThings, R"({"a": 2999})", R"({"$set": {"hit": 1}})").modified, 1);
    EXPECT_EQ(
        engine.update(kThings, R"({"a": 3001})", R"({"$set": {"hit": 1}})", false, true).matched,
        0);
    EXPECT_EQ(engine.count(kThings, R"({"a": 3001, "hit": 1})"), 1);
    const auto status = engine->status();
    EXPECT_GE(*status.view()["writes"].as_document()["outsideSearches"].to_int64(), 2);
}

TEST(WriteRace, OneOfManyInsertsWinsAKey) {
    TestEngine engine;
    std::atomic<int> won{0}, lost{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 50; ++i) {
                const auto outcome = engine.insert(
                    kThings, bson::make("_id", std::int32_t{i}, "by", std::int32_t{t}));
                ++(outcome.error ? lost : won);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(won, 50);
    EXPECT_EQ(lost, 7 * 50);
    EXPECT_EQ(engine.count(kThings), 50);
}

TEST(WriteRace, UpsertsNeverFailAndCountExactly) {
    TestEngine engine;
    auto unique = index_spec("k_1", R"({"k": 1})");
    unique.unique = true;
    engine.create_index(kThings, std::move(unique)).value_or_throw();
    std::atomic<int> errors{0}, inserted{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                const auto outcome =
                    engine.update(kThings, text(bson::make("k", std::int32_t{i % 10})),
                                  R"({"$inc": {"n": 1}})", false, true);
                errors += outcome.error ? 1 : 0;
                inserted += outcome.upserted_id.is_missing() ? 0 : 1;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(errors, 0);
    EXPECT_EQ(inserted, 10);
    EXPECT_EQ(engine.count(kThings, R"({"n": 80})"), 10);
    EXPECT_EQ(engine.validate(kThings), "valid");
}

TEST(WriteRace, EachDocumentIsClaimedOnce) {
    TestEngine engine;
    WriteRequest request;
    for (int i = 0; i < 900; ++i)
        request.writes.push_back(
            insert_write(kThings, bson::make("_id", std::int32_t{i}, "state", "new")));
    engine.write(std::move(request)).value_or_throw();
    std::vector<std::vector<std::string>> claimed(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < claimed.size(); ++t)
        threads.emplace_back([&, t] {
            for (;;) {
                auto write =
                    update_write(kThings, R"({"state": "new"})", R"({"$set": {"state": "taken"}})");
                write.image = ReturnImage::Before;
                auto outcome = engine.one(std::move(write));
                if (!outcome.image) return;
                claimed[t].push_back(text(*outcome.image));
            }
        });
    for (auto& thread : threads) thread.join();
    std::vector<std::string> all;
    for (const auto& c : claimed) all.insert(all.end(), c.begin(), c.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all.size(), 900u);
    EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

}  // namespace
}  // namespace angelia::engine
