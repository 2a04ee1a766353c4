// watch(): every change once and in order, from a token on, with a heartbeat.
#include "store_under_test.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace angelia::store::contract {
namespace {

bson::Document stages(std::string_view array_document) { return json(array_document); }

TEST_P(StoreContract, WatchShowsInsertsUpdatesReplacementsAndDeletes) {
    const auto c = collection();
    put(c, {R"({"_id": 0})"});
    WatchLog log;
    const auto w = watch(log, c);
    put(c, {R"({"_id": 1, "a": 1})"});
    ASSERT_TRUE(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$set": {"a": 2}})")));
    ASSERT_TRUE(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"b": 3})")));
    ASSERT_TRUE(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$set": {"b": 3}})")))
        << "changes nothing: no event";
    ASSERT_TRUE(store_.remove(c, [] {
        std::vector<DeleteOp> ops;
        ops.push_back(removal(R"({"_id": 1})"));
        return ops;
    }()));
    ASSERT_TRUE(log.wait_events(4));
    EXPECT_EQ(log.text(), "insert 1\nupdate 1 {\"a\":2}\nreplace 1\ndelete 1\n");
    const auto events = log.all();
    EXPECT_EQ(bson::Document(events[0]["fullDocument"].as_document())["a"].to_int64(), 1);
    EXPECT_TRUE(events[0].has("_id"));
    EXPECT_EQ(events[0].view().find_path("ns.coll").get_string(), c.collection);
    EXPECT_TRUE(w->live());
}

TEST_P(StoreContract, FreshWatchStartsWithAGap) {
    WatchLog log;
    const auto w = watch(log, collection());
    EXPECT_EQ(log.gaps(), std::vector<bool>{true});
    EXPECT_TRUE(log.errors().empty());
}

TEST_P(StoreContract, WatchSeesOnlyItsCollection) {
    const auto a = collection("a"), b = collection("b");
    WatchLog log;
    const auto w = watch(log, a);
    put(b, {R"({"_id": 1})"});
    put(a, {R"({"_id": 2})"});
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 2\n");
}

TEST_P(StoreContract, WatchFiltersWithMatch) {
    const auto c = collection();
    WatchLog log;
    WatchRequest request;
    request.stages = stages(
        R"({"0": {"$match": {"operationType": "insert", "fullDocument.to": {"$in": ["me", null]}}}})");
    const auto w = watch(log, c, std::move(request));
    put(c, {R"({"_id": 1, "to": "you"})", R"({"_id": 2, "to": "me"})", R"({"_id": 3})"});
    ASSERT_TRUE(store_.update_one(c, json(R"({"_id": 2})"), json(R"({"$set": {"x": 2}})")));
    put(c, {R"({"_id": 4, "to": "me"})"});
    ASSERT_TRUE(log.wait_events(3));
    EXPECT_EQ(log.text(), "insert 2\ninsert 3\ninsert 4\n");
}

TEST_P(StoreContract, WatchLooksUpdatedDocumentsUp) {
    const auto c = collection();
    put(c, {R"({"_id": 1, "a": 1, "keep": true})"});
    WatchLog log;
    WatchRequest request;
    request.update_lookup = true;
    const auto w = watch(log, c, std::move(request));
    ASSERT_TRUE(store_.update_one(c, json(R"({"_id": 1})"), json(R"({"$inc": {"a": 1}})")));
    ASSERT_TRUE(log.wait_events(1));
    const auto events = log.all();
    ASSERT_TRUE(events[0]["fullDocument"].is(bson::Type::Document));
    EXPECT_EQ(events[0].view().find_path("fullDocument.keep").get_bool(), true);
}

TEST_P(StoreContract, WatchGoesOnAfterATokenWithoutLossOrRepetition) {
    const auto c = collection();
    WatchLog first;
    auto w = watch(first, c);
    put(c, {R"({"_id": 1})", R"({"_id": 2})"});
    ASSERT_TRUE(first.wait_events(2));
    w->close();
    put(c, {R"({"_id": 3})", R"({"_id": 4})"});

    WatchLog second;
    WatchRequest request;
    request.resume_after = first.last_token();
    const auto again = watch(second, c, std::move(request));
    put(c, {R"({"_id": 5})"});
    ASSERT_TRUE(second.wait_events(3));
    EXPECT_EQ(second.text(), "insert 3\ninsert 4\ninsert 5\n");
    EXPECT_EQ(second.gaps(), std::vector<bool>{false});
}

TEST_P(StoreContract, WatchGoesOnAfterTheTokenOfAnEvent) {
    const auto c = collection();
    WatchLog first;
    auto w = watch(first, c);
    put(c, {R"({"_id": 1})", R"({"_id": 2})", R"({"_id": 3})"});
    ASSERT_TRUE(first.wait_events(3));
    w->close();

    WatchLog second;
    WatchRequest request;
    const auto events = first.all();
    request.resume_after = bson::Document(events[0]["_id"].as_document());
    const auto again = watch(second, c, std::move(request));
    ASSERT_TRUE(second.wait_events(2));
    EXPECT_EQ(second.text(), "insert 2\ninsert 3\n");
}

TEST_P(StoreContract, HeartbeatTokenOfAnIdleStreamCoversTheRestart) {
    const auto c = collection();
    WatchLog idle;
    WatchRequest quick;
    quick.max_wait = 100ms;
    auto w = watch(idle, c, std::move(quick));
    ASSERT_TRUE(idle.wait_batches(2)) << "empty replies come too";
    w->close();
    EXPECT_EQ(idle.text(), "");
    put(c, {R"({"_id": 1})"});

    WatchLog log;
    WatchRequest request;
    request.resume_after = idle.last_token();
    const auto again = watch(log, c, std::move(request));
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 1\n");
}

TEST_P(StoreContract, WatchDeliversABurstWholeAndInOrder) {
    constexpr std::int32_t kEvents = 3000;
    const auto c = collection();
    WatchLog log;
    WatchRequest request;
    request.batch_size = 100;
    const auto w = watch(log, c, std::move(request));
    std::vector<bson::Document> documents;
    std::vector<bson::DocumentView> views;
    for (std::int32_t i = 0; i < kEvents; ++i)
        documents.push_back(bson::make("_id", i, "text", "some text"));
    for (const auto& d : documents) views.push_back(d.view());
    ASSERT_TRUE(store_.insert(c, views));
    ASSERT_TRUE(log.wait_events(kEvents));
    const auto events = log.all();
    ASSERT_EQ(events.size(), static_cast<std::size_t>(kEvents));
    std::int64_t in_place = 0;
    for (std::int32_t i = 0; i < kEvents; ++i)
        in_place +=
            events[static_cast<std::size_t>(i)].view().find_path("documentKey._id").to_int64() == i
                ? 1
                : 0;
    EXPECT_EQ(in_place, kEvents);
}

TEST_P(StoreContract, WatchStartsAtATime) {
    const auto c = collection();
    WatchLog first;
    auto w = watch(first, c);
    put(c, {R"({"_id": 1})", R"({"_id": 2})"});
    ASSERT_TRUE(first.wait_events(2));
    const auto events = first.all();
    WatchLog log;
    WatchRequest request;
    request.start_at = events[1]["clusterTime"].as_timestamp();
    const auto again = watch(log, c, std::move(request));
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 2\n");
    EXPECT_EQ(log.gaps(), std::vector<bool>{false});
}

TEST_P(StoreContract, WatchOutlivesADroppedCollection) {
    const auto c = collection();
    put(c, {R"({"_id": 1})"});
    WatchLog log;
    WatchRequest request;
    request.stages = stages(R"({"0": {"$match": {"operationType": "insert"}}})");
    request.max_wait = 100ms;
    const auto w = watch(log, c, std::move(request));
    ASSERT_TRUE(store_.drop(c));
    put(c, {R"({"_id": 2})"});
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 2\n");
}

TEST_P(StoreContract, ATokenThatIsNoneLeadsToAFreshStart) {
    const auto c = collection();
    WatchLog log;
    WatchRequest request;
    request.resume_after = json(R"({"_data": "nonsense"})");
    request.collection = c;
    auto w = store_.watch(std::move(request), log.events());
    const bool refused = !w && w.error().code == ErrorCode::InvalidResumeToken;
    EXPECT_TRUE(refused || log.wait_errors(1));
}

TEST_P(StoreContract, NoCallbackRunsAfterClose) {
    const auto c = collection();
    WatchLog log;
    WatchRequest request;
    request.max_wait = 50ms;
    auto w = watch(log, c, std::move(request));
    put(c, {R"({"_id": 1})"});
    ASSERT_TRUE(log.wait_events(1));
    w->close();
    const std::size_t calls = log.calls();
    EXPECT_FALSE(w->live());
    WatchLog other;
    WatchRequest quick;
    quick.max_wait = 50ms;
    const auto second = watch(other, c, std::move(quick));
    put(c, {R"({"_id": 2})"});
    ASSERT_TRUE(other.wait_events(1));
    ASSERT_TRUE(other.wait_batches(4));
    EXPECT_EQ(log.calls(), calls);
}

TEST_P(StoreContract, CloseEndsAWaitingWatchSoon) {
    WatchLog log;
    WatchRequest request;
    request.max_wait = 30s;
    auto w = watch(log, collection(), std::move(request));
    const auto before = std::chrono::steady_clock::now();
    w.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
}

TEST_P(StoreContract, WatchMayBeClosedFromItsOwnCallback) {
    const auto c = collection();
    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false, closed = false;
    std::unique_ptr<Watch> w;
    WatchEvents events;
    WatchLog log;
    events = log.events();
    events.on_batch = [&](std::vector<bson::Document>, const bson::Document&) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return ready; });
        w->close();
        closed = true;
        changed.notify_all();
    };
    WatchRequest request;
    request.collection = c;
    request.max_wait = 50ms;
    auto opened = store_.watch(std::move(request), std::move(events));
    ASSERT_TRUE(opened) << opened.error().to_string();
    std::unique_lock<std::mutex> lock(mutex);
    w = *std::move(opened);
    ready = true;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return closed; }));
    lock.unlock();
    w.reset();
}

}  // namespace
}  // namespace angelia::store::contract
