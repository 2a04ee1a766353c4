// Scars of change streams (S1 to S6, and the field reports on guessed capabilities and standalone
// servers), on the MongoDB adapter through a proxy.
#include "mongo_scene.h"

#include <atomic>

namespace angelia::regressions {
namespace {

// S1. After a rolling restart clients hammered the server with resumes from a token that the server
// had declared lost.
TEST(MongoWatch, LostHistoryIsNeverResumedAndBacksOff) {
    MongoScene s;
    std::atomic<int> streams{0};
    s.proxy->set_rule([&](const Command& command) -> Fault {
        if (!is_stream(command) || ++streams != 2) return {};
        return {Fault::Kind::Answer, error_reply(286, "ChangeStreamHistoryLost",
                                                 "Resume of change stream was not possible, as the "
                                                 "resume point may no longer be in the oplog.")};
    });
    WatchLog log;
    const auto w = s.watch(log);
    ASSERT_TRUE(log.wait_batches(1));
    const auto before = std::chrono::steady_clock::now();
    s.proxy->cut_all();
    ASSERT_TRUE(log.wait_started(2));
    EXPECT_GE(std::chrono::steady_clock::now() - before, 1s);
    s.put(1);
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 1\n");
    EXPECT_EQ(log.gaps(), (std::vector<bool>{true, true}));
    std::vector<std::string> opened;
    for (const auto& command : s.proxy->commands("aggregate"))
        opened.push_back(bson::to_json(command.body));
    ASSERT_EQ(opened.size(), 3u);
    EXPECT_NE(opened[1].find("startAfter"), std::string::npos);
    EXPECT_EQ(opened[2].find("After"), std::string::npos) << opened[2];
    EXPECT_EQ(opened[2].find("startAt"), std::string::npos) << opened[2];
}

// S2. A subscriber without any event yet restarted at "now" and missed what came in the gap.
TEST(MongoWatch, IdleStreamLosesNothingInTheRestartGap) {
    MongoScene s;
    WatchLog log;
    const auto w = s.watch(log);
    ASSERT_TRUE(log.wait_batches(1));
    s.proxy->refuse_connections(true);
    s.proxy->cut_all();
    ASSERT_TRUE(log.wait_errors(1));
    s.put(1);
    s.proxy->refuse_connections(false);
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 1\n");
    EXPECT_EQ(log.gaps(), (std::vector<bool>{true, false}));
}

// S3. The token of a batch counts only once all of its events were handed over.
TEST(MongoWatch, CutRepliesNeitherLoseNorRepeatEvents) {
    MongoScene s;
    std::atomic<int> replies{0};
    s.proxy->set_rule([&](const Command& command) -> Fault {
        if (command.name != "getMore" || ++replies % 2 != 0) return {};
        return {Fault::Kind::CutInside};
    });
    WatchLog log;
    const auto w = s.watch(log, 200ms, 3);
    ASSERT_TRUE(log.wait_batches(1));
    s.put_many(1, 30);
    ASSERT_TRUE(log.wait_events(30));
    EXPECT_EQ(log.text(), inserts(1, 30));
    EXPECT_GE(log.errors().size(), 3u);
}

// S4. Transient errors ended the watching for good.
TEST(MongoWatch, OutlivesEveryErrorOfAFailover) {
    MongoScene s;
    std::atomic<int> streams{0};
    static constexpr std::pair<std::int32_t, const char*> kErrors[] = {
        {10107, "NotWritablePrimary"},
        {189, "PrimarySteppedDown"},
        {11600, "InterruptedAtShutdown"},
        {43, "CursorNotFound"},
        {8000, "AtlasError"}};
    s.proxy->set_rule([&](const Command& command) -> Fault {
        if (!is_stream(command)) return {};
        const int n = ++streams;
        if (n < 2 || n > 6) return {};
        return {Fault::Kind::Answer,
                error_reply(kErrors[n - 2].first, kErrors[n - 2].second, "a failover")};
    });
    WatchLog log;
    const auto w = s.watch(log);
    ASSERT_TRUE(log.wait_batches(1));
    s.proxy->refuse_connections(true);
    s.proxy->cut_all();
    ASSERT_TRUE(log.wait_errors(3));
    EXPECT_FALSE(w->live());
    s.put(1);
    s.proxy->refuse_connections(false);
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 1\n");
    EXPECT_GE(log.errors().size(), 8u);
    EXPECT_TRUE(w->live());
}

// S5. A read deadline that equals the server's waiting time gives up just before the reply, again
// and again.
TEST(MongoWatch, LateRepliesAreWaitedFor) {
    MongoScene s(2s);
    s.proxy->set_rule([](const Command& command) -> Fault {
        if (command.name != "getMore") return {};
        return {Fault::Kind::Pass, {}, 500ms};
    });
    WatchLog log;
    const auto w = s.watch(log, 100ms);
    ASSERT_TRUE(log.wait_batches(5));
    EXPECT_TRUE(log.errors().empty());
    EXPECT_EQ(s.proxy->commands("aggregate").size(), 1u);
    EXPECT_EQ(s.open_cursors(), 1);
}

// S5. A deadline that is missed ends the connection: its late reply must not answer another
// question.
TEST(MongoWatch, MissedDeadlineEndsTheConnection) {
    MongoScene s(300ms);
    std::atomic<int> replies{0};
    s.proxy->set_rule([&](const Command& command) -> Fault {
        if (command.name != "getMore" || ++replies != 2) return {};
        return {Fault::Kind::Swallow};
    });
    WatchLog log;
    const auto w = s.watch(log, 100ms);
    ASSERT_TRUE(log.wait_errors(1));
    s.put(1);
    ASSERT_TRUE(log.wait_events(1));
    EXPECT_EQ(log.text(), "insert 1\n");
    const auto opened = s.proxy->commands("aggregate");
    ASSERT_EQ(opened.size(), 2u);
    EXPECT_NE(opened[0].connection, opened[1].connection);
}

// S6. A time-out in the middle of a message left the stream of bytes out of step.
TEST(MongoWatch, StalledReplyEndsTheConnection) {
    MongoScene s(300ms);
    std::atomic<int> replies{0};
    s.proxy->set_rule([&](const Command& command) -> Fault {
        if (command.name != "getMore" || ++replies != 2) return {};
        return {Fault::Kind::StallInside};
    });
    WatchLog log;
    const auto w = s.watch(log, 100ms);
    ASSERT_TRUE(log.wait_errors(1));
    s.proxy->release();
    s.put_many(1, 5);
    ASSERT_TRUE(log.wait_events(5));
    EXPECT_EQ(log.text(), inserts(1, 5));
    EXPECT_EQ(log.errors().size(), 1u);
    EXPECT_EQ(s.faulty.count(s.c, {}).value_or_throw(), 5) << "verbs have connections of their own";
}

// Field report: a server named a recent version but did not know startAfter.
TEST(MongoWatch, ServerWithoutStartAfterIsResumedWithResumeAfter) {
    MongoScene s;
    s.proxy->set_rule([](const Command& command) -> Fault {
        if (!is_stream(command) ||
            bson::to_json(command.body).find("startAfter") == std::string::npos)
            return {};
        return {Fault::Kind::Answer,
                error_reply(40415, "Location40415",
                            "BSON field '$changeStream.startAfter' is an unknown field.")};
    });
    WatchLog log;
    const auto w = s.watch(log);
    ASSERT_TRUE(log.wait_batches(1));
    std::int32_t written = 0;
    for (int restart = 0; restart < 3; ++restart) {
        const auto started = log.gaps().size();
        s.proxy->cut_all();
        s.put_many(written + 1, written + 20);
        written += 20;
        ASSERT_TRUE(log.wait_started(started + 1));
    }
    ASSERT_TRUE(log.wait_events(60));
    EXPECT_EQ(log.text(), inserts(1, 60));
    int with_start_after = 0;
    for (const auto& command : s.proxy->commands("aggregate"))
        with_start_after +=
            bson::to_json(command.body).find("startAfter") != std::string::npos ? 1 : 0;
    EXPECT_EQ(with_start_after, 1) << "tried once";
    EXPECT_FALSE(s.faulty.capabilities().value_or_throw().start_after);
}

bson::Document without_batch_token(const Command&, bson::Document reply) {
    const auto cursor = reply["cursor"].get_document();
    if (!cursor) return reply;
    bson::Builder b;
    for (const auto& [key, value] : reply.view()) {
        if (key != "cursor") {
            b.add(key, value);
            continue;
        }
        b.open("cursor");
        for (const auto& [name, part] : *cursor) {
            if (name != "postBatchResumeToken") b.add(name, part);
        }
        b.close();
    }
    return b.take();
}

// Field report, variant: replies without postBatchResumeToken.
TEST(MongoWatch, WithoutBatchTokensEventTokensServe) {
    MongoScene s;
    s.proxy->set_reply_filter(without_batch_token);
    EXPECT_FALSE(s.faulty.capabilities().value_or_throw().batch_tokens);
    WatchLog log;
    const auto w = s.watch(log, 200ms, 3);
    ASSERT_TRUE(log.wait_started(1));
    s.proxy->cut_all();
    s.put_many(1, 10);
    ASSERT_TRUE(log.wait_events(10)) << "before the first event the time of the opening serves";
    s.proxy->cut_all();
    s.put_many(11, 20);
    ASSERT_TRUE(log.wait_events(20));
    EXPECT_EQ(log.text(), inserts(1, 20));
}

bson::Document without_set_name(const Command& command, bson::Document reply) {
    if (command.name != "hello") return reply;
    bson::Builder b;
    for (const auto& [key, value] : reply.view()) {
        if (key != "setName") b.add(key, value);
    }
    return b.take();
}

// Field report: single servers have no change streams; an error at every cycle does not help
// anybody.
TEST(MongoWatch, StandaloneServerIsToldOnceAndLeftAlone) {
    MongoScene s;
    s.proxy->set_reply_filter(without_set_name);
    s.proxy->set_rule([](const Command& command) -> Fault {
        if (!is_stream(command)) return {};
        return {Fault::Kind::Answer,
                error_reply(40573, "Location40573",
                            "The $changeStream stage is only supported on replica sets")};
    });
    const auto capabilities = s.faulty.capabilities().value_or_throw();
    EXPECT_FALSE(capabilities.change_streams);
    EXPECT_EQ(capabilities.topology, "standalone");
    const auto probes = s.proxy->commands("aggregate").size();
    WatchLog log;
    const auto w = s.watch(log, 50ms);
    ASSERT_TRUE(log.wait_errors(1));
    EXPECT_EQ(log.errors()[0].code, ErrorCode::Location40573);
    EXPECT_FALSE(w->live());
    WatchLog other;
    store::WatchRequest beside;
    beside.collection = s.c;
    beside.max_wait = 300ms;
    const auto clock = s.direct.watch(std::move(beside), other.events()).value_or_throw();
    ASSERT_TRUE(other.wait_batches(5)) << "time for a second attempt, were there one";
    EXPECT_EQ(s.proxy->commands("aggregate").size(), probes + 1);
    EXPECT_EQ(log.errors().size(), 1u);
}

// A server that no longer answers must not hold a closing application.
TEST(MongoWatch, CloseIsQuickEvenWhenTheServerIsStalled) {
    MongoScene s;
    WatchLog log;
    auto w = s.watch(log, 30s);
    ASSERT_TRUE(log.wait_batches(1));
    ASSERT_TRUE(s.proxy->wait_commands("getMore", 1));
    s.proxy->set_rule([](const Command& command) -> Fault {
        if (command.name == "hello") return {};
        return {Fault::Kind::Swallow};
    });
    const auto before = std::chrono::steady_clock::now();
    w.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
    const auto calls = log.calls();
    s.put(1);
    s.proxy->cut_all();
    EXPECT_EQ(log.calls(), calls);
}

TEST(MongoWatch, ClosingLeavesNoCursorAtTheServer) {
    MongoScene s;
    for (int i = 0; i < 5; ++i) {
        WatchLog log;
        auto w = s.watch(log, 30s);
        ASSERT_TRUE(log.wait_batches(1));
        w.reset();
    }
    EXPECT_EQ(s.open_cursors(), 0);
}

}  // namespace
}  // namespace angelia::regressions
