// What the handle refuses before an adapter sees it. That it lets the right things through is
// tests/contract.
#include <angelia/store/store.h>

#include <gtest/gtest.h>

namespace angelia::store {
namespace {

const CollectionName kPlace{"db", "c"};

template <class T>
std::string refusal(const Result<T>& result) {
    return result ? "accepted" : error_code_name(result.error().code);
}

/// An adapter that was reached although the arguments were wrong.
class Unreachable final : public StoreAdapter {
  public:
    Result<InsertResult> insert(const CollectionName&, std::span<const bson::DocumentView>, bool,
                                const CallOptions&) override {
        return reached();
    }
    Result<std::vector<bson::Document>> find(const FindRequest&, const CallOptions&) override {
        return reached();
    }
    Result<UpdateResult> update(const CollectionName&, std::vector<UpdateOp>, bool,
                                const CallOptions&) override {
        return reached();
    }
    Result<std::optional<bson::Document>> find_and_modify(FindAndModifyRequest,
                                                          const CallOptions&) override {
        return reached();
    }
    Result<DeleteResult> remove(const CollectionName&, std::vector<DeleteOp>, bool,
                                const CallOptions&) override {
        return reached();
    }
    Result<BulkResult> bulk_write(std::vector<BulkOp>, bool, const CallOptions&) override {
        return reached();
    }
    Result<ClaimResult> claim(ClaimRequest, const CallOptions&) override { return reached(); }
    Result<std::int64_t> count(const CollectionName&, bson::DocumentView,
                               const CallOptions&) override {
        return reached();
    }
    Result<void> ensure_indexes(const CollectionName&, std::vector<IndexDefinition>,
                                const CallOptions&) override {
        return reached();
    }
    Result<void> drop(const CollectionName&, const CallOptions&) override { return reached(); }
    Result<std::vector<std::string>> list_collections(std::string_view,
                                                      const CallOptions&) override {
        return reached();
    }
    Result<std::unique_ptr<Watch>> watch(WatchRequest, WatchEvents) override { return reached(); }
    Result<ServerTime> server_time(const CallOptions&) override { return reached(); }
    Result<Capabilities> capabilities() override { return reached(); }
    Result<std::unique_ptr<Session>> start_session() override { return reached(); }
    std::unique_ptr<Diagnostics> diagnostics() override { return nullptr; }
    std::string describe() const override { return "unreachable"; }
    Result<void> close() override { return {}; }

  private:
    static Error reached() { return {ErrorCode::InternalError, "the adapter was reached"}; }
};

Store handle() { return Store(std::make_shared<Unreachable>(), "db"); }

UpdateOp update_of(bson::Document change, bool multi) {
    return {bson::Document(), std::move(change), multi, false};
}

TEST(StoreHandle, WithoutAStoreEverythingIsRefused) {
    Store none;
    EXPECT_EQ(refusal(none.insert(kPlace, bson::Document())), "ShutdownInProgress");
    EXPECT_EQ(refusal(none.capabilities()), "ShutdownInProgress");
    EXPECT_EQ(none.diagnostics(), nullptr);
    EXPECT_EQ(none.describe(), "no store");
    EXPECT_TRUE(none.close());
}

TEST(StoreHandle, EmptyBatchesAnswerWithoutTheAdapter) {
    Store s = handle();
    EXPECT_EQ(refusal(s.insert(kPlace, std::span<const bson::DocumentView>())), "accepted");
    EXPECT_EQ(refusal(s.update(kPlace, {})), "accepted");
    EXPECT_EQ(refusal(s.remove(kPlace, {})), "accepted");
    EXPECT_EQ(refusal(s.bulk_write({})), "accepted");
    EXPECT_EQ(refusal(s.claim({kPlace, kPlace, {}, true})), "accepted");
    EXPECT_EQ(refusal(s.ensure_indexes(kPlace, {})), "accepted");
}

TEST(StoreHandle, NamesAreChecked) {
    Store s = handle();
    EXPECT_EQ(refusal(s.count({"", "c"}, {})), "InvalidNamespace");
    EXPECT_EQ(refusal(s.count({"a.b", "c"}, {})), "InvalidNamespace");
    EXPECT_EQ(refusal(s.count({std::string(64, 'd'), "c"}, {})), "InvalidNamespace");
    EXPECT_EQ(refusal(s.count({"db", std::string(253, 'c')}, {})), "InvalidNamespace");
    EXPECT_EQ(refusal(s.count({"db", std::string(252, 'c')}, {})), "InternalError")
        << "the longest that is allowed";
    EXPECT_EQ(refusal(s.count({"db", std::string("a\0b", 3)}, {})), "InvalidNamespace");
}

TEST(StoreHandle, BatchesHaveALimit) {
    Store s = handle();
    const bson::Document empty;
    EXPECT_EQ(refusal(s.insert(kPlace, std::vector<bson::DocumentView>(100'001, empty.view()))),
              "InvalidLength");
    EXPECT_EQ(refusal(s.insert(kPlace, std::vector<bson::DocumentView>(100'000, empty.view()))),
              "InternalError");
}

TEST(StoreHandle, AReplacementChangesOneDocument) {
    Store s = handle();
    std::vector<UpdateOp> many;
    many.push_back(update_of(bson::make("a", std::int32_t{1}), true));
    EXPECT_EQ(refusal(s.update(kPlace, std::move(many))), "FailedToParse");
    std::vector<UpdateOp> one;
    one.push_back(update_of(bson::make("a", std::int32_t{1}), false));
    EXPECT_EQ(refusal(s.update(kPlace, std::move(one))), "InternalError");
}

TEST(StoreHandle, NumbersAndTimesAreChecked) {
    Store s = handle();
    EXPECT_EQ(refusal(s.find({kPlace, {}, {}, {}, -1, 0})), "BadValue");
    EXPECT_EQ(refusal(s.find({kPlace, {}, {}, {}, 0, -1})), "BadValue");
    CallOptions none;
    none.timeout = milliseconds(0);
    EXPECT_EQ(refusal(s.count(kPlace, {}, none)), "BadValue");
}

TEST(StoreHandle, FindAndModifyMeansOneThing) {
    Store s = handle();
    FindAndModifyRequest request;
    request.collection = kPlace;
    request.remove = true;
    request.upsert = true;
    EXPECT_EQ(refusal(s.find_and_modify(std::move(request))), "FailedToParse");
}

TEST(StoreHandle, WatchesAreChecked) {
    Store s = handle();
    const auto watched = [&](void (*spoil)(WatchRequest&), bool with_events = true) {
        WatchRequest request;
        request.collection = kPlace;
        spoil(request);
        WatchEvents events;
        if (with_events)
            events.on_batch = [](std::vector<bson::Document>, const bson::Document&) {};
        return refusal(s.watch(std::move(request), std::move(events)));
    };
    EXPECT_EQ(watched([](WatchRequest&) {}), "InternalError");
    EXPECT_EQ(watched([](WatchRequest&) {}, false), "BadValue");
    EXPECT_EQ(watched([](WatchRequest& r) { r.batch_size = 0; }), "BadValue");
    EXPECT_EQ(watched([](WatchRequest& r) { r.max_wait = milliseconds(0); }), "BadValue");
    EXPECT_EQ(watched([](WatchRequest& r) {
                  r.resume_after = bson::Document();
                  r.start_at = bson::Timestamp{1, 1};
              }),
              "BadValue");
}

TEST(StoreHandle, AnIndexNeedsANameAndAKey) {
    Store s = handle();
    std::vector<IndexDefinition> indexes(1);
    indexes[0].name = "x";
    EXPECT_EQ(refusal(s.ensure_indexes(kPlace, std::move(indexes))), "CannotCreateIndex");
}

}  // namespace
}  // namespace angelia::store
