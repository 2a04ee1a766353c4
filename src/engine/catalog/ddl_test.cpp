// Collections and indexes: rules, builds, drops, what the oplog and the next start know of them.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <thread>

namespace angelia::engine {
namespace {

using namespace testing_support;
using Texts = std::vector<std::string>;
const Namespace kItems{"shop", "items"};

std::string names_of(TestEngine& engine, const Namespace& ns) {
    std::string names;
    for (const auto& spec : engine->list_indexes(ns).value_or_throw()) names += spec.name + " ";
    return names;
}

TEST(Collections, AreCreatedListedAndDropped) {
    TestEngine engine;
    engine.create(kItems, doc(R"({"comment": "x"})")).value_or_throw();
    EXPECT_EQ(code_of(engine.create(kItems)), "NamespaceExists");
    const auto infos = engine->list_collections("shop");
    ASSERT_EQ(infos.size(), 1u);
    EXPECT_EQ(infos[0].name, "items");
    EXPECT_EQ(text(infos[0].options), R"({"comment":"x"})");
    EXPECT_EQ(engine.drop(kItems).value_or_throw(), 1);
    EXPECT_EQ(code_of(engine.drop(kItems)), "NamespaceNotFound");
    EXPECT_TRUE(engine->list_databases().empty());
}

TEST(Collections, InsertCreatesThemWithTheEntryInFront) {
    TestEngine engine;
    engine.insert(kItems, R"({"_id": 1})");
    EXPECT_EQ(engine.oplog_kinds(), "ci");
}

TEST(Collections, ADroppedOneComesBackEmpty) {
    TestEngine engine;
    engine.create_index(kItems, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    for (int i = 0; i < 10; ++i)
        engine.insert(kItems, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i}));
    const auto uuid = engine->list_collections("shop")[0].uuid;
    EXPECT_EQ(engine.drop(kItems).value_or_throw(), 2);
    EXPECT_EQ(engine.count(kItems), 0);
    engine.insert(kItems, R"({"_id": 3})");
    EXPECT_EQ(engine.find(kItems), (Texts{R"({"_id":3})"}));
    EXPECT_EQ(names_of(engine, kItems), "_id_ ");
    EXPECT_NE(engine->list_collections("shop")[0].uuid, uuid);
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(Collections, ADatabaseIsDroppedWithAllOfThem) {
    TestEngine engine;
    engine.insert({"shop", "a"}, R"({"_id": 1})");
    engine.insert({"shop", "b"}, R"({"_id": 1})");
    engine.insert({"shop2", "a"}, R"({"_id": 1})");
    engine.drop_database("shop").value_or_throw();
    EXPECT_EQ(engine->list_databases(), (Texts{"shop2"}));
    EXPECT_EQ(engine.oplog_kinds(),
              "cicici"
              "ccc");
    engine.drop_database("shop").value_or_throw();  // nothing there: no error
}

TEST(Indexes, AreBuiltOverExistingDocuments) {
    TestEngine engine;
    for (int i = 0; i < 20; ++i)
        engine.insert(kItems, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i % 3}, "t",
                                         bson::array("x", std::int32_t{i})));
    const auto build =
        engine.create_index(kItems, index_spec("a_1_t_1", R"({"a": 1, "t": 1})")).value_or_throw();
    EXPECT_EQ(build.before, 1);
    EXPECT_EQ(build.after, 2);
    EXPECT_FALSE(build.created_collection);
    EXPECT_EQ(
        engine.find(kItems, R"({"a": 1, "t": 7})", "{}", R"({"_id": 1})", bson::value("a_1_t_1")),
        (Texts{R"({"_id":7})"}));
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(Indexes, CreateTheCollection) {
    TestEngine engine;
    const auto build =
        engine.create_index(kItems, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    EXPECT_TRUE(build.created_collection);
    EXPECT_EQ(build.before, 1);
    EXPECT_EQ(build.after, 2);
}

TEST(Indexes, TheSameOnceMoreIsNoChange) {
    TestEngine engine;
    engine.create_index(kItems, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    const auto kinds = engine.oplog_kinds();
    EXPECT_TRUE(engine.create_index(kItems, index_spec("a_1", R"({"a": 1.0})"))
                    .value_or_throw()
                    .all_existed);
    EXPECT_TRUE(engine.create_index(kItems, index_spec("_id_1", R"({"_id": 1})"))
                    .value_or_throw()
                    .all_existed);
    EXPECT_EQ(engine.oplog_kinds(), kinds);
}

TEST(Indexes, ConflictsAreNamed) {
    TestEngine engine;
    engine.create_index(kItems, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    EXPECT_EQ(code_of(engine.create_index(kItems, index_spec("a_1", R"({"b": 1})"))),
              "IndexKeySpecsConflict");
    EXPECT_EQ(code_of(engine.create_index(kItems, index_spec("other", R"({"a": 1})"))),
              "IndexOptionsConflict");
    auto unique = index_spec("a_1", R"({"a": 1})");
    unique.unique = true;
    EXPECT_EQ(code_of(engine.create_index(kItems, copy_of(unique))), "IndexKeySpecsConflict");
    unique.name = "a_unique";
    EXPECT_EQ(code_of(engine.create_index(kItems, std::move(unique))), "ok");
    auto ttl = index_spec("a_1", R"({"a": 1})");
    ttl.expire_after_seconds = 5;
    EXPECT_EQ(code_of(engine.create_index(kItems, std::move(ttl))), "IndexOptionsConflict");
}

TEST(Indexes, BadSpecificationsAreRefused) {
    TestEngine engine;
    auto refuse = [&](IndexSpec spec) {
        EXPECT_EQ(code_of(engine.create_index(kItems, std::move(spec))), "CannotCreateIndex");
    };
    refuse(index_spec("x", "{}"));
    refuse(index_spec("x", R"({"a": 0})"));
    refuse(index_spec("", R"({"a": 1})"));
    auto ttl = index_spec("x", R"({"a": 1, "b": 1})");
    ttl.expire_after_seconds = 1;
    refuse(std::move(ttl));
    auto negative = index_spec("x", R"({"a": 1})");
    negative.expire_after_seconds = -1;
    refuse(std::move(negative));
    auto both = index_spec("x", R"({"a": 1})");
    both.sparse = true;
    both.partial_filter = doc(R"({"a": {"$gt": 1}})");
    refuse(std::move(both));
    auto partial = index_spec("x", R"({"a": 1})");
    partial.partial_filter = doc(R"({"a": {"$ne": 1}})");
    refuse(std::move(partial));
    EXPECT_TRUE(engine->list_collections("shop").empty());
}

TEST(Indexes, AreLimitedTo64) {
    TestEngine engine;
    for (int i = 1; i < 64; ++i)
        engine
            .create_index(kItems,
                          index_spec("f" + std::to_string(i),
                                     text(bson::make("f" + std::to_string(i), std::int32_t{1}))))
            .value_or_throw();
    EXPECT_EQ(code_of(engine.create_index(kItems, index_spec("more", R"({"more": 1})"))),
              "CannotCreateIndex");
}

TEST(Indexes, AFailedUniqueBuildLeavesNothing) {
    TestEngine engine;
    engine.insert(kItems, R"({"_id": 1, "a": 5})");
    engine.insert(kItems, R"({"_id": 2, "a": 5})");
    auto unique = index_spec("a_1", R"({"a": 1})");
    unique.unique = true;
    const auto kinds = engine.oplog_kinds();
    const auto result = engine.create_index(kItems, std::move(unique));
    EXPECT_EQ(code_of(result), "DuplicateKey");
    EXPECT_EQ(bson::to_json(bson::DocumentView(std::string_view(result.error().details_bson))),
              R"({"keyPattern":{"a":1},"keyValue":{"a":5}})");
    EXPECT_EQ(names_of(engine, kItems), "_id_ ");
    EXPECT_EQ(engine.oplog_kinds(), kinds);
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(Indexes, ALargeCollectionIsBuiltWhileOthersWrite) {
    TestEngine engine;
    WriteRequest request;
    for (int i = 0; i < 3000; ++i)
        request.writes.push_back(
            insert_write(kItems, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i % 100})));
    engine.write(std::move(request)).value_or_throw();
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        for (int i = 3000; !stop; ++i)
            engine.insert(kItems, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i % 100}));
    });
    engine.create_index(kItems, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    stop = true;
    writer.join();
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(Indexes, AreDroppedByNameKeyAndStar) {
    TestEngine engine;
    for (const char* field : {"a", "b", "c", "d", "e"})
        engine.create_index(kItems, index_spec(field, text(bson::make(field, std::int32_t{1}))))
            .value_or_throw();
    engine.insert(kItems, R"({"_id": 1, "a": 1, "b": 1, "c": 1})");
    EXPECT_EQ(engine.drop_indexes(kItems, bson::value("a")).value_or_throw(), 6);
    EXPECT_EQ(engine.drop_indexes(kItems, bson::value(doc(R"({"b": 1})"))).value_or_throw(), 5);
    EXPECT_EQ(engine.drop_indexes(kItems, bson::value(bson::array("c"))).value_or_throw(), 4);
    EXPECT_EQ(code_of(engine.drop_indexes(kItems, bson::value("a"))), "IndexNotFound");
    EXPECT_EQ(code_of(engine.drop_indexes(kItems, bson::value("_id_"))), "InvalidOptions");
    EXPECT_EQ(engine.drop_indexes(kItems, bson::value("*")).value_or_throw(), 3);
    EXPECT_EQ(names_of(engine, kItems), "_id_ ");
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(UniqueIndex, CountsMissingAsNullAndIgnoresRepeatsWithinADocument) {
    TestEngine engine;
    auto unique = index_spec("a_1", R"({"a": 1})");
    unique.unique = true;
    engine.create_index(kItems, std::move(unique)).value_or_throw();
    EXPECT_FALSE(engine.insert(kItems, R"({"_id": 1})").error);
    EXPECT_TRUE(engine.insert(kItems, R"({"_id": 2, "a": null})").error);
    EXPECT_FALSE(engine.insert(kItems, R"({"_id": 3, "a": [1, 1, 2]})").error);
    EXPECT_TRUE(engine.insert(kItems, R"({"_id": 4, "a": 2.0})").error);
    EXPECT_TRUE(engine.update(kItems, R"({"_id": 1})", R"({"$set": {"a": 1}})").error);
    EXPECT_FALSE(engine.update(kItems, R"({"_id": 3})", R"({"$set": {"a": 2}})").error);
    EXPECT_FALSE(engine.update(kItems, R"({"_id": 1})", R"({"$set": {"a": 1}})").error);
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(SparseIndex, LeavesOutDocumentsWithoutTheField) {
    TestEngine engine;
    auto sparse = index_spec("a_1", R"({"a": 1})");
    sparse.sparse = true;
    sparse.unique = true;
    engine.create_index(kItems, std::move(sparse)).value_or_throw();
    for (int i = 0; i < 3; ++i)
        EXPECT_FALSE(engine.insert(kItems, bson::make("_id", std::int32_t{i})).error);
    engine.insert(kItems, R"({"_id": 9, "a": 1})");
    EXPECT_EQ(engine.find(kItems, "{}", "{}", "{}", bson::value("a_1")),
              (Texts{R"({"_id":9,"a":1})"}));
    EXPECT_EQ(engine.find(kItems, R"({"a": null})").size(), 3u);
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(PartialIndex, DocumentsEnterAndLeave) {
    TestEngine engine;
    auto partial = index_spec("a_1", R"({"a": 1})");
    partial.unique = true;
    partial.partial_filter = doc(R"({"open": true})");
    engine.create_index(kItems, std::move(partial)).value_or_throw();
    EXPECT_FALSE(engine.insert(kItems, R"({"_id": 1, "a": 1, "open": true})").error);
    EXPECT_FALSE(engine.insert(kItems, R"({"_id": 2, "a": 1, "open": false})").error);
    EXPECT_TRUE(engine.update(kItems, R"({"_id": 2})", R"({"$set": {"open": true}})").error);
    EXPECT_FALSE(engine.update(kItems, R"({"_id": 1})", R"({"$set": {"open": false}})").error);
    EXPECT_FALSE(engine.update(kItems, R"({"_id": 2})", R"({"$set": {"open": true}})").error);
    EXPECT_EQ(engine.find(kItems, R"({"a": 1, "open": true})", "{}", R"({"_id": 1})"),
              (Texts{R"({"_id":2})"}));
    EXPECT_EQ(engine.find(kItems, R"({"a": 1})", R"({"_id": 1})", R"({"_id": 1})"),
              (Texts{R"({"_id":1})", R"({"_id":2})"}));
    EXPECT_EQ(engine.validate(kItems), "valid");
}

TEST(CompoundIndex, RefusesParallelArrays) {
    TestEngine engine;
    engine.create_index(kItems, index_spec("ab", R"({"a": 1, "b": 1})")).value_or_throw();
    EXPECT_EQ(
        error_code_name(engine.insert(kItems, R"({"_id": 1, "a": [1], "b": [2]})").error->code),
        "CannotIndexParallelArrays");
    EXPECT_EQ(engine.count(kItems), 0);
}

}  // namespace
}  // namespace angelia::engine
