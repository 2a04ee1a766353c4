// Change streams through the engine: cursors that wait without a thread, and their ends.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

namespace angelia::engine {
namespace {

using namespace testing_support;
const Namespace kWatched{"test", "watched"};

WatchSpec watch_spec() {
    WatchSpec spec;
    spec.ns = kWatched;
    return spec;
}

GetMoreSpec wait_spec(std::int64_t id, milliseconds wait) {
    GetMoreSpec spec;
    spec.cursor_id = id;
    spec.ns = kWatched;
    spec.max_wait = wait;
    return spec;
}

std::string kinds_of(const CursorBatch& batch) {
    std::string kinds;
    for (const auto& event : batch.documents)
        kinds += std::string(event.view()["operationType"].as_string()) + " ";
    return kinds;
}

struct Waiting {
    std::promise<Result<CursorBatch>> promise;
    std::future<Result<CursorBatch>> future = promise.get_future();
    std::function<void(Result<CursorBatch>)> done() {
        return [this](Result<CursorBatch> batch) { promise.set_value(std::move(batch)); };
    }
};

TEST(StreamCursor, StartsEmptyWithAToken) {
    TestEngine engine;
    const auto batch = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    EXPECT_TRUE(batch.documents.empty());
    EXPECT_NE(batch.cursor_id, 0);
    EXPECT_TRUE(batch.post_batch_resume_token.has_value());
    EXPECT_EQ(batch.ns, "test.watched");
}

TEST(StreamCursor, AWaitingGetMoreIsWokenByAWrite) {
    TestEngine engine;
    const auto opened = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    Waiting waiting;
    engine->get_more(wait_spec(opened.cursor_id, milliseconds(60'000)), waiting.done());
    engine.insert(kWatched, R"({"_id": 1})");
    const auto batch = waiting.future.get().value_or_throw();
    EXPECT_EQ(kinds_of(batch), "insert ");
    EXPECT_EQ(batch.cursor_id, opened.cursor_id);
}

TEST(StreamCursor, WritesElsewhereDoNotEndTheWait) {
    TestEngine engine;
    const auto opened = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    Waiting waiting;
    engine->get_more(wait_spec(opened.cursor_id, milliseconds(60'000)), waiting.done());
    for (int i = 0; i < 50; ++i)
        engine.insert({"test", "elsewhere"}, bson::make("_id", std::int32_t{i}));
    engine.insert(kWatched, R"({"_id": 1})");
    EXPECT_EQ(kinds_of(waiting.future.get().value_or_throw()), "insert ");
}

TEST(StreamCursor, AnEmptyWaitEndsWithAToken) {
    TestEngine engine;
    const auto opened = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    const auto batch =
        engine.get_more(wait_spec(opened.cursor_id, milliseconds(5))).value_or_throw();
    EXPECT_TRUE(batch.documents.empty());
    EXPECT_EQ(batch.cursor_id, opened.cursor_id);
    EXPECT_TRUE(batch.post_batch_resume_token.has_value());
}

TEST(StreamCursor, OneOperationAtATime) {
    TestEngine engine;
    const auto opened = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    Waiting waiting;
    engine->get_more(wait_spec(opened.cursor_id, milliseconds(60'000)), waiting.done());
    EXPECT_EQ(
        error_code_name(engine.get_more(wait_spec(opened.cursor_id, milliseconds(1))).error().code),
        "CursorInUse");
    engine.insert(kWatched, R"({"_id": 1})");
    EXPECT_TRUE(waiting.future.get());
}

TEST(StreamCursor, AKillEndsTheWait) {
    TestEngine engine;
    const auto opened = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    Waiting waiting;
    engine->get_more(wait_spec(opened.cursor_id, milliseconds(60'000)), waiting.done());
    const std::int64_t ids[] = {opened.cursor_id};
    engine->kill_cursors(kWatched, ids);
    EXPECT_EQ(error_code_name(waiting.future.get().error().code), "CursorKilled");
    EXPECT_EQ(
        error_code_name(engine.get_more(wait_spec(opened.cursor_id, milliseconds(1))).error().code),
        "CursorNotFound");
}

TEST(StreamCursor, CloseEndsTheWait) {
    TestEngine engine;
    const auto opened = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    Waiting waiting;
    engine->get_more(wait_spec(opened.cursor_id, milliseconds(60'000)), waiting.done());
    engine->close().value_or_throw();
    EXPECT_EQ(error_code_name(waiting.future.get().error().code), "ShutdownInProgress");
}

TEST(StreamCursor, ADropInvalidatesAndCloses) {
    TestEngine engine;
    engine.insert(kWatched, R"({"_id": 1})");
    const auto opened = engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
    engine.drop(kWatched).value_or_throw();
    const auto batch =
        engine.get_more(wait_spec(opened.cursor_id, milliseconds(1000))).value_or_throw();
    EXPECT_EQ(kinds_of(batch), "drop invalidate ");
    EXPECT_EQ(batch.cursor_id, 0);
}

TEST(StreamCursor, LooksUpTheCurrentDocument) {
    TestEngine engine;
    engine.insert(kWatched, R"({"_id": 1})");
    auto spec = watch_spec();
    spec.options = doc(R"({"fullDocument": "updateLookup"})");
    const auto opened = engine->open_change_stream_cursor(spec, 100, {}).value_or_throw();
    engine.update(kWatched, R"({"_id": 1})", R"({"$set": {"a": 1}})");
    engine.update(kWatched, R"({"_id": 1})", R"({"$set": {"a": 2}})");
    const auto batch =
        engine.get_more(wait_spec(opened.cursor_id, milliseconds(1000))).value_or_throw();
    ASSERT_EQ(kinds_of(batch), "update update ");
    EXPECT_EQ(bson::to_json(batch.documents[0].view()["fullDocument"]), R"({"_id":1,"a":2})");
    EXPECT_EQ(bson::to_json(
                  batch.documents[0].view()["updateDescription"].as_document()["updatedFields"]),
              R"({"a":1})");
}

TEST(StreamCursor, ManyStreamsWaitWithoutThreads) {
    TestEngine engine;
    constexpr int kStreams = 500;
    std::vector<Waiting> waiting(kStreams);
    for (auto& w : waiting) {
        const auto opened =
            engine->open_change_stream_cursor(watch_spec(), 100, {}).value_or_throw();
        engine->get_more(wait_spec(opened.cursor_id, milliseconds(60'000)), w.done());
    }
    engine.insert(kWatched, R"({"_id": 1})");
    for (auto& w : waiting) EXPECT_EQ(kinds_of(w.future.get().value_or_throw()), "insert ");
}

}  // namespace
}  // namespace angelia::engine
