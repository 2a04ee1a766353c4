// Reads and writes of the store port, the same on every adapter.
#include "store_under_test.h"

namespace angelia::store::contract {
namespace {

TEST_P(StoreContract, InsertStoresDocumentsInOneBatch) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "a": "x"})", R"({"_id": 2, "b": [1, 2]})"});
    EXPECT_EQ(content(c), "{\"_id\":1,\"a\":\"x\"}\n{\"_id\":2,\"b\":[1,2]}\n");
}

TEST_P(StoreContract, InsertMakesAnIdInFront) {
    const auto c = collection();
    ASSERT_TRUE(store_.insert(c, json(R"({"a": 1})")));
    const auto found = store_.find({c, {}, {}, {}, 0, 0});
    ASSERT_TRUE(found) << found.error().to_string();
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ((*found)[0].view().begin()->key, "_id");
    EXPECT_EQ((*found)[0]["_id"].type(), bson::Type::ObjectId);
}

TEST_P(StoreContract, OrderedInsertStopsAtTheDuplicate) {
    const auto c = collection();
    put(c, {R"({"_id": 2})"});
    const bson::Document d1 = json(R"({"_id": 1})"), d2 = json(R"({"_id": 2})"),
                         d3 = json(R"({"_id": 3})");
    const std::vector<bson::DocumentView> batch{d1.view(), d2.view(), d3.view()};
    const auto done = store_.insert(c, batch, true);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->inserted, 1);
    EXPECT_EQ(text(done->errors), "1 DuplicateKey");
    EXPECT_EQ(content(c), "{\"_id\":1}\n{\"_id\":2}\n");
}

TEST_P(StoreContract, UnorderedInsertGoesOnBehindDuplicates) {
    const auto c = collection();
    put(c, {R"({"_id": 2})", R"({"_id": 4})"});
    const bson::Document d1 = json(R"({"_id": 1})"), d2 = json(R"({"_id": 2})"),
                         d3 = json(R"({"_id": 3})"), d4 = json(R"({"_id": 4})");
    const std::vector<bson::DocumentView> batch{d1.view(), d2.view(), d3.view(), d4.view()};
    const auto done = store_.insert(c, batch, false);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->inserted, 2);
    EXPECT_EQ(text(done->errors), "1 DuplicateKey, 3 DuplicateKey");
    EXPECT_NE(done->errors[0].error.message.find("E11000"), std::string::npos)
        << done->errors[0].error.message;
}

TEST_P(StoreContract, InsertOfAThousandAndOfNone) {
    const auto c = collection();
    std::vector<bson::Document> documents;
    std::vector<bson::DocumentView> views;
    for (std::int32_t i = 0; i < 1000; ++i)
        documents.push_back(bson::make("_id", i, "text", std::string(500, 'x')));
    for (const auto& d : documents) views.push_back(d.view());
    const auto done = store_.insert(c, views, false);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->inserted, 1000);
    EXPECT_EQ(store_.insert(c, std::span<const bson::DocumentView>()).value_or_throw().inserted, 0);
    EXPECT_EQ(store_.count(c, {}).value_or_throw(), 1000);
    EXPECT_EQ(store_.find({c, {}, {}, {}, 0, 0}).value_or_throw().size(), 1000u);
}

TEST_P(StoreContract, EmptyTopLevelTimestampIsFilled) {
    const auto c = collection();
    ASSERT_TRUE(store_.insert(c, bson::make("_id", std::int32_t{1}, "ts", bson::Timestamp{})));
    const auto found = store_.find({c, {}, {}, {}, 0, 1});
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_GT((*found)[0]["ts"].as_timestamp().seconds, 1'600'000'000u);
}

TEST_P(StoreContract, MajorityAndUnacknowledgedWrites) {
    const auto c = collection();
    CallOptions majority;
    majority.acknowledge = Acknowledge::Majority;
    ASSERT_TRUE(store_.insert(c, json(R"({"_id": 1})"), majority));
    WatchLog log;
    const auto w = watch(log, c);
    CallOptions none;
    none.acknowledge = Acknowledge::None;
    ASSERT_TRUE(store_.insert(c, json(R"({"_id": 2})"), none));
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(content(c), "{\"_id\":1}\n{\"_id\":2}\n");
}

TEST_P(StoreContract, FindFiltersSortsSkipsLimitsAndProjects) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 3, "s": "a"})", R"({"_id": 2, "n": 1, "s": "b"})",
            R"({"_id": 3, "n": 2, "s": "c"})", R"({"_id": 4, "n": 9, "s": "d"})"});
    FindRequest request;
    request.collection = c;
    request.filter = json(R"({"n": {"$lt": 9}})");
    request.sort = json(R"({"n": -1})");
    request.projection = json(R"({"n": 1})");
    request.skip = 1;
    request.limit = 1;
    EXPECT_EQ(text(store_.find(request).value_or_throw()), "{\"_id\":3,\"n\":2}\n");
}

TEST_P(StoreContract, FindOnACollectionThatIsNotThereIsEmpty) {
    EXPECT_EQ(store_.find({collection("none"), {}, {}, {}, 0, 0}).value_or_throw().size(), 0u);
    EXPECT_EQ(store_.count(collection("none"), {}).value_or_throw(), 0);
}

TEST_P(StoreContract, FindWithAnUnknownOperatorIsRefused) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    const auto found = store_.find({c, json(R"({"a": {"$frobnicate": 1}})"), {}, {}, 0, 0});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::BadValue) << found.error().to_string();
}

TEST_P(StoreContract, UpdateBatchCountsAndUpserts) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 1})", R"({"_id": 2, "n": 1})"});
    std::vector<UpdateOp> ops;
    ops.push_back(change(R"({"_id": 1})", R"({"$inc": {"n": 1}})"));
    ops.push_back(change(R"({"n": {"$gte": 1}})", R"({"$set": {"seen": true}})", true));
    ops.push_back(change(R"({"_id": 3})", R"({"$set": {"n": 7}})", false, true));
    ops.push_back(change(R"({"_id": 99})", R"({"$set": {"n": 7}})"));
    const auto done = store_.update(c, std::move(ops));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->matched, 3);
    EXPECT_EQ(done->modified, 3);
    ASSERT_EQ(done->upserted.size(), 1u);
    EXPECT_EQ(done->upserted[0].first, 2u);
    EXPECT_EQ(done->upserted[0].second.view().to_int64(), 3);
    EXPECT_EQ(content(c),
              "{\"_id\":1,\"n\":2,\"seen\":true}\n{\"_id\":2,\"n\":1,\"seen\":true}\n{\"_id\":3,"
              "\"n\":7}\n");
}

TEST_P(StoreContract, UpdateThatChangesNothingMatchesWithoutModifying) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "tags": ["a"]})"});
    const auto done =
        store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$addToSet": {"tags": "a"}})"));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->matched, 1);
    EXPECT_EQ(done->modified, 0);
}

TEST_P(StoreContract, ReplacementKeepsTheId) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 1})"});
    const auto done = store_.update_one(c, json(R"({"n": 1})"), json(R"({"m": 2})"));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->modified, 1);
    EXPECT_EQ(content(c), "{\"_id\":1,\"m\":2}\n");
}

TEST_P(StoreContract, UnorderedUpdateReportsEachFailure) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": "text"})", R"({"_id": 2, "n": 1})"});
    std::vector<UpdateOp> ops;
    ops.push_back(change(R"({"_id": 1})", R"({"$inc": {"n": 1}})"));
    ops.push_back(change(R"({"_id": 2})", R"({"$inc": {"n": 1}})"));
    ops.push_back(change(R"({"_id": 2})", R"({"$frobnicate": {"n": 1}})"));
    const auto done = store_.update(c, std::move(ops), false);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->modified, 1);
    EXPECT_EQ(text(done->errors), "0 TypeMismatch, 2 FailedToParse");
}

TEST_P(StoreContract, EffectiveSaysWhichUpdatesDidSomethingOrIsEmpty) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 1})"});
    std::vector<UpdateOp> ops;
    ops.push_back(change(R"({"_id": 5})", R"({"$inc": {"n": 1}})"));
    ops.push_back(change(R"({"_id": 1})", R"({"$inc": {"n": 1}})"));
    const auto done = store_.update(c, std::move(ops));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->modified, 1);
    EXPECT_TRUE(done->effective.empty() || done->effective == (std::vector<bool>{false, true}));
}

TEST_P(StoreContract, SingleUpdateTellsWhetherItTookEffect) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "epoch": 3})"});
    EXPECT_EQ(store_.update_one(c, json(R"({"_id": 1, "epoch": 2})"), json(R"({"$set": {"x": 1}})"))
                  .value_or_throw()
                  .matched,
              0);
    EXPECT_EQ(store_.update_one(c, json(R"({"_id": 1, "epoch": 3})"), json(R"({"$set": {"x": 1}})"))
                  .value_or_throw()
                  .matched,
              1);
}

TEST_P(StoreContract, RemoveOneAndMany) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "k": "a"})", R"({"_id": 2, "k": "a"})", R"({"_id": 3, "k": "b"})",
            R"({"_id": 4, "k": "b"})"});
    std::vector<DeleteOp> ops;
    ops.push_back(removal(R"({"k": "a"})"));
    ops.push_back(removal(R"({"k": "b"})", true));
    ops.push_back(removal(R"({"k": "none"})"));
    const auto done = store_.remove(c, std::move(ops));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->deleted, 3);
    EXPECT_EQ(store_.count(c, {}).value_or_throw(), 1);
}

TEST_P(StoreContract, RemoveWithABadFilterReportsIt) {
    const auto c = collection();
    put(c, {R"({"_id": 1})", R"({"_id": 2})"});
    std::vector<DeleteOp> ops;
    ops.push_back(removal(R"({"a": {"$frobnicate": 1}})"));
    ops.push_back(removal(R"({"_id": 2})"));
    const auto done = store_.remove(c, std::move(ops), false);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(text(done->errors), "0 BadValue");
    EXPECT_EQ(done->deleted, 1);
}

BulkOp insertion(const CollectionName& c, std::string_view document) {
    BulkOp op;
    op.collection = c;
    op.document = json(document);
    return op;
}
BulkOp updating(const CollectionName& c, UpdateOp update) {
    BulkOp op;
    op.kind = BulkOp::Kind::Update;
    op.collection = c;
    op.update = std::move(update);
    return op;
}
BulkOp deleting(const CollectionName& c, DeleteOp remove) {
    BulkOp op;
    op.kind = BulkOp::Kind::Delete;
    op.collection = c;
    op.remove = std::move(remove);
    return op;
}

TEST_P(StoreContract, BulkWriteRunsInOrderOverCollections) {
    const auto a = collection("a"), b = collection("b");
    std::vector<BulkOp> ops;
    ops.push_back(insertion(a, R"({"_id": 1, "n": 1})"));
    ops.push_back(updating(a, change(R"({"_id": 1})", R"({"$inc": {"n": 1}})")));
    ops.push_back(insertion(b, R"({"_id": 1})"));
    ops.push_back(deleting(b, removal(R"({"_id": 1})")));
    ops.push_back(insertion(b, R"({"_id": 2})"));
    ops.push_back(updating(b, change(R"({"_id": 3})", R"({"$set": {"up": true}})", false, true)));
    const auto done = store_.bulk_write(std::move(ops));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->inserted, 3);
    EXPECT_EQ(done->matched, 1);
    EXPECT_EQ(done->modified, 1);
    EXPECT_EQ(done->deleted, 1);
    EXPECT_EQ(done->upserted, 1);
    EXPECT_EQ(content(a), "{\"_id\":1,\"n\":2}\n");
    EXPECT_EQ(content(b), "{\"_id\":2}\n{\"_id\":3,\"up\":true}\n");
}

TEST_P(StoreContract, OrderedBulkStopsUnorderedGoesOn) {
    const auto c = collection();
    for (const bool ordered : {true, false}) {
        std::vector<BulkOp> ops;
        ops.push_back(insertion(c, ordered ? R"({"_id": 1})" : R"({"_id": 11})"));
        ops.push_back(insertion(c, R"({"_id": 1})"));
        ops.push_back(updating(c, change(R"({"_id": 1})", R"({"$inc": {"n": 1}})")));
        const auto done = store_.bulk_write(std::move(ops), ordered);
        ASSERT_TRUE(done) << done.error().to_string();
        EXPECT_EQ(text(done->errors), "1 DuplicateKey");
        EXPECT_EQ(done->modified, ordered ? 0 : 1);
    }
}

TEST_P(StoreContract, RepeatableBulkTellsWhatTookEffect) {
    const auto a = collection("a"), b = collection("b");
    put(a, {R"({"_id": 1, "n": 1})", R"({"_id": 2})"});
    std::vector<BulkOp> ops;
    ops.push_back(insertion(a, R"({"_id": 1})"));
    ops.push_back(updating(a, change(R"({"_id": 1})", R"({"$set": {"n": 1}})")));
    ops.push_back(updating(a, change(R"({"_id": 1})", R"({"$set": {"n": 2}})")));
    ops.push_back(deleting(a, removal(R"({"_id": 9})")));
    ops.push_back(deleting(a, removal(R"({"_id": 2})")));
    ops.push_back(updating(b, change(R"({"_id": 3})", R"({"$set": {"up": true}})", false, true)));
    store::CallOptions options;
    options.repeatable = true;
    const auto done = store_.bulk_write(std::move(ops), false, options);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(text(done->errors), "0 DuplicateKey");
    EXPECT_EQ(done->effective, (std::vector<bool>{false, false, true, false, true, true}));
    EXPECT_EQ(content(a), "{\"_id\":1,\"n\":2}\n");
    EXPECT_EQ(content(b), "{\"_id\":3,\"up\":true}\n");
}

TEST_P(StoreContract, FindAndModifyReturnsTheImageAskedFor) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 5})", R"({"_id": 2, "n": 3})"});
    const auto request = [&](bool return_new) {
        FindAndModifyRequest r;
        r.collection = c;
        r.filter = json(R"({"n": {"$gt": 0}})");
        r.sort = json(R"({"n": 1})");
        r.update = json(R"({"$inc": {"n": 10}})");
        r.return_new = return_new;
        return r;
    };
    const auto before = store_.find_and_modify(request(false));
    ASSERT_TRUE(before && *before) << before.error().to_string();
    EXPECT_EQ(content(c), "{\"_id\":1,\"n\":5}\n{\"_id\":2,\"n\":13}\n");
    EXPECT_EQ((**before)["n"].to_int64(), 3);
    const auto after = store_.find_and_modify(request(true));
    ASSERT_TRUE(after && *after);
    EXPECT_EQ((**after)["n"].to_int64(), 15);
    EXPECT_EQ((**after)["_id"].to_int64(), 1);
}

TEST_P(StoreContract, FindAndModifyRemovesUpsertsAndFindsNothing) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "n": 5, "x": 1})"});
    FindAndModifyRequest removing;
    removing.collection = c;
    removing.filter = json(R"({"n": 5})");
    removing.projection = json(R"({"n": 1})");
    removing.remove = true;
    const auto removed = store_.find_and_modify(std::move(removing));
    ASSERT_TRUE(removed && *removed);
    EXPECT_FALSE((**removed).has("x"));
    EXPECT_EQ(store_.count(c, {}).value_or_throw(), 0);

    FindAndModifyRequest missing;
    missing.collection = c;
    missing.filter = json(R"({"_id": 1})");
    missing.update = json(R"({"$set": {"n": 1}})");
    const auto none = store_.find_and_modify(std::move(missing));
    ASSERT_TRUE(none) << none.error().to_string();
    EXPECT_FALSE(none->has_value());

    FindAndModifyRequest upserting;
    upserting.collection = c;
    upserting.filter = json(R"({"_id": 7})");
    upserting.update = json(R"({"$set": {"n": 1}})");
    upserting.upsert = true;
    upserting.return_new = true;
    const auto made = store_.find_and_modify(std::move(upserting));
    ASSERT_TRUE(made && *made);
    EXPECT_EQ((**made)["_id"].to_int64(), 7);
}

TEST_P(StoreContract, CountWithAFilter) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "k": "a"})", R"({"_id": 2, "k": "a"})", R"({"_id": 3, "k": "b"})"});
    EXPECT_EQ(store_.count(c, json(R"({"k": "a"})")).value_or_throw(), 2);
    EXPECT_EQ(store_.count(c, {}).value_or_throw(), 3);
}

IndexDefinition index(std::string name, std::string_view key, bool unique = false) {
    IndexDefinition definition;
    definition.name = std::move(name);
    definition.key = json(key);
    definition.unique = unique;
    return definition;
}
std::vector<IndexDefinition> one(IndexDefinition definition) {
    std::vector<IndexDefinition> list;
    list.push_back(std::move(definition));
    return list;
}

TEST_P(StoreContract, UniqueIndexRefusesASecondValue) {
    const auto c = collection();
    ASSERT_TRUE(store_.ensure_indexes(c, one(index("by_key", R"({"key": 1})", true))));
    ASSERT_TRUE(store_.ensure_indexes(c, one(index("by_key", R"({"key": 1})", true))))
        << "the same index again is fine";
    put(c, {R"({"_id": 1, "key": "a"})"});
    const auto done = store_.insert(c, json(R"({"_id": 2, "key": "a"})"));
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(text(done->errors), "0 DuplicateKey");
    EXPECT_NE(done->errors[0].error.message.find("by_key"), std::string::npos);
    EXPECT_EQ(content(c), "{\"_id\":1,\"key\":\"a\"}\n");
}

TEST_P(StoreContract, IndexUnderAnotherNameConflicts) {
    const auto c = collection();
    ASSERT_TRUE(store_.ensure_indexes(c, one(index("x", R"({"a": 1})"))));
    const auto again = store_.ensure_indexes(c, one(index("y", R"({"a": 1})")));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::IndexOptionsConflict) << again.error().to_string();
}

TEST_P(StoreContract, TtlIndexDeletesWhatIsOver) {
    const auto c = collection();
    IndexDefinition ttl = index("delete_at_1", R"({"delete_at": 1})");
    ttl.expire_after_seconds = 0;
    ASSERT_TRUE(store_.ensure_indexes(c, one(std::move(ttl))));
    WatchLog log;
    const auto w = watch(log, c);
    const std::int64_t now = store_.server_time().value_or_throw().now.millis;
    ASSERT_TRUE(store_.insert(
        c, bson::make("_id", std::int32_t{1}, "delete_at", bson::Date{now - 10'000})));
    ASSERT_TRUE(store_.insert(
        c, bson::make("_id", std::int32_t{2}, "delete_at", bson::Date{now + 3'600'000})));
    ASSERT_TRUE(store_.insert(c, bson::make("_id", std::int32_t{3})));
    running_->expire_documents();
    ASSERT_TRUE(log.wait_events(4));
    EXPECT_EQ(log.text(), "insert 1\ninsert 2\ninsert 3\ndelete 1\n");
    EXPECT_EQ(store_.count(c, {}).value_or_throw(), 2);
}

TEST_P(StoreContract, DropAndListCollections) {
    const auto a = collection("a"), b = collection("b");
    put(a, {R"({"_id": 1})"});
    put(b, {R"({"_id": 1})"});
    ASSERT_TRUE(store_.drop(a));
    ASSERT_TRUE(store_.drop(a)) << "an absent collection is fine";
    const auto names = store_.list_collections().value_or_throw();
    EXPECT_EQ(std::count(names.begin(), names.end(), a.collection), 0);
    EXPECT_EQ(std::count(names.begin(), names.end(), b.collection), 1);
    EXPECT_EQ(content(a), "");
}

TEST_P(StoreContract, BadNamesAreRefused) {
    for (const char* bad : {"", "a$b", ".a", "a."}) {
        const auto done = store_.insert(store_.collection(bad), json(R"({"_id": 1})"));
        ASSERT_FALSE(done) << bad;
        EXPECT_EQ(done.error().code, ErrorCode::InvalidNamespace);
    }
}

TEST_P(StoreContract, TooLargeADocumentIsRefused) {
    const auto done = store_.insert(
        collection(),
        bson::make("_id", std::int32_t{1}, "s", std::string(bson::kDocumentBytesMax, 'x')));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::BSONObjectTooLarge);
}

TEST_P(StoreContract, LargeDocumentsInOneBatchArriveWhole) {
    const auto c = collection();
    std::vector<bson::Document> documents;
    std::vector<bson::DocumentView> views;
    for (std::int32_t i = 0; i < 5; ++i)
        documents.push_back(
            bson::make("_id", i, "s", std::string(12'000'000, static_cast<char>('a' + i))));
    for (const auto& d : documents) views.push_back(d.view());
    const auto done = store_.insert(c, views);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->inserted, 5);
    const auto found = store_.find({c, {}, {}, json(R"({"_id": 1})"), 0, 0});
    ASSERT_TRUE(found) << found.error().to_string();
    ASSERT_EQ(found->size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE((*found)[i].view().identical(views[i])) << i;
}

}  // namespace
}  // namespace angelia::store::contract
