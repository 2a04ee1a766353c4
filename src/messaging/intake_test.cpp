// How messages are found: streams, polls, and what happens when one of them fails.
#include "messaging/testing/sim_cluster.h"

#include <gtest/gtest.h>

namespace angelia::messaging::testing {
namespace {

using namespace std::chrono_literals;

Options polling() { return {.use_streams = false}; }
Options rarely_polling() { return {.fallback_poll = 300s}; }

struct Seen {
    std::vector<std::string> texts;
    Handler handler() {
        return [this](const Message& m) -> Reply {
            texts.push_back(m.msg.value_or("-"));
            return no_answer();
        };
    }
};

TEST(Intake, StoredMessagesAreDeliveredToALaterListener) {
    SimCluster cluster;
    Seen seen;
    auto& sender = cluster.start("sender");
    sender.bus->publish({.topic = "t", .msg = "before"}).value_or_throw();
    cluster.start("a", rarely_polling()).bus->listen("t", seen.handler()).value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(seen.texts, std::vector<std::string>{"before"});
}

TEST(Intake, PollingAloneDeliversEverything) {
    SimCluster cluster;
    Seen broadcasts, jobs;
    auto& sender = cluster.start("sender", polling());
    auto& a = cluster.start("a", polling());
    a.bus->listen("t", broadcasts.handler()).value_or_throw();
    a.bus->listen("job", jobs.handler()).value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "t", .msg = "b"}).value_or_throw();
    sender.bus->publish({.topic = "job", .msg = "j", .exclusive = true}).value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(broadcasts.texts.size() + jobs.texts.size(), 2u);
    EXPECT_TRUE(a.bus->status().polling_only);
}

TEST(Intake, PureRequesterGetsItsAnswerByPolling) {
    SimCluster cluster;
    auto& client = cluster.start("client", {.use_streams = false, .status_listener = false});
    cluster.start("server")
        .bus->listen("t", [](const Message&) -> Reply { return answer("ok"); })
        .value_or_throw();
    cluster.pass(1s);
    int answers = 0;
    client.bus->request_async({.topic = "t"}, 5s, [&](const Message&) { ++answers; })
        .value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(answers, 1);
}

// Field report "Standalone server": one warning, no further attempt to open a stream.
TEST(Intake, ServerWithoutStreamsMeansPollingAfterOneWarning) {
    SimCluster cluster;
    cluster.server.set_change_streams(false);
    Seen seen;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a");
    a.bus->listen("t", seen.handler()).value_or_throw();
    cluster.pass(2s);
    sender.bus->publish({.topic = "t", .msg = "x"}).value_or_throw();
    cluster.pass(5s);
    EXPECT_EQ(seen.texts, std::vector<std::string>{"x"});
    const auto calls = cluster.server.call_counts();
    EXPECT_EQ(calls.count("watch"), 0u);
    // One warning per process: an earlier test of this process may have had it.
    EXPECT_LE(sender.log.size() + a.log.size(), 1u);
}

// S2: what happened while the stream was down is found when it comes back.
TEST(Intake, MessageSentWhileTheStreamIsDownIsDelivered) {
    for (const bool drop_events : {true, false}) {
        SimCluster cluster;
        Seen seen;
        auto& sender = cluster.start("sender");
        auto& a = cluster.start("a", rarely_polling());
        a.bus->listen("t", seen.handler()).value_or_throw();
        cluster.pass(1s);
        a.store->lose_streams({ErrorCode::HostUnreachable, "cut"});
        sender.bus->publish({.topic = "t", .msg = "gap"}).value_or_throw();
        a.store->restore_streams(drop_events);
        cluster.settle();
        EXPECT_EQ(seen.texts, std::vector<std::string>{"gap"}) << drop_events;
    }
}

TEST(Intake, DeadStreamIsReplacedByPollsUntilItLives) {
    SimCluster cluster;
    Seen seen;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", rarely_polling());
    a.bus->listen("t", seen.handler()).value_or_throw();
    cluster.pass(1s);
    a.store->lose_streams({ErrorCode::HostUnreachable, "cut"});
    sender.bus->publish({.topic = "t", .msg = "meanwhile"}).value_or_throw();
    cluster.pass(2s);
    EXPECT_EQ(seen.texts, std::vector<std::string>{"meanwhile"});
    EXPECT_GE(counter(a, "stream_errors"), 1);
}

// S9: a node sees only what it can process; the filter follows the listeners.
TEST(Intake, StreamCarriesOnlyListenedTopicsAndFollowsTheListeners) {
    SimCluster cluster;
    Seen seen;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", rarely_polling());
    a.bus->listen("mine", seen.handler()).value_or_throw();
    cluster.pass(1s);
    const auto before = counter(a, "events");
    for (int i = 0; i < 20; ++i)
        sender.bus->publish({.topic = "other", .msg = "x"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(counter(a, "events"), before);
    a.bus->listen("other", seen.handler()).value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(seen.texts.size(), 20u);  // those that are stored
    sender.bus->publish({.topic = "other", .msg = "new"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(seen.texts.size(), 21u);
    EXPECT_EQ(seen.texts.back(), "new");
}

// S10: a filter is current only after its stream has started.
TEST(Intake, FailedRebuildOfTheStreamIsTriedAgain) {
    SimCluster cluster;
    Seen seen;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", rarely_polling());
    cluster.pass(1s);
    int refused = 0;
    a.store->set_fault_before(
        [&](const store::testing::SimulatedCall& call) -> std::optional<Error> {
            if (call.verb != "watch" || refused++ > 0) return std::nullopt;
            return Error(ErrorCode::HostUnreachable, "no");
        });
    a.bus->listen("late", seen.handler()).value_or_throw();
    cluster.pass(3s);
    EXPECT_GE(refused, 2);
    sender.bus->publish({.topic = "late", .msg = "x"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(seen.texts, std::vector<std::string>{"x"});
}

// S13: a burst of deleted locks is one poll.
TEST(Intake, BurstOfLockDeletionsCostsAHandfulOfPolls) {
    SimCluster cluster;
    auto& a = cluster.start("a", {.fallback_poll = 300s, .delivery = DeliveryMode::AtMostOnce});
    a.bus->listen("t", [](const Message&) {}).value_or_throw();
    cluster.pass(1s);
    for (int i = 0; i < 1000; ++i)
        cluster.insert("msg_lck", bson::make("_id", bson::ObjectId::generate(), "lock_id", "x"));
    const auto before = counter(a, "polls");
    std::vector<store::DeleteOp> all(1);
    all[0].multi = true;
    cluster.look().remove({"app", "msg_lck"}, std::move(all)).value_or_throw();
    cluster.pass(1s);
    EXPECT_LE(counter(a, "polls") - before, 3);
    EXPECT_GE(counter(a, "polls") - before, 1);
}

// S14: a message that nobody handles restarts no stream.
TEST(Intake, IdleNodeRestartsNoStream) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a");
    a.bus->listen("t", [](const Message&) {}).value_or_throw();
    cluster.pass(1s);
    const auto before = counter(a, "streams_started");
    sender.bus->publish({.topic = "nobody", .exclusive = true}).value_or_throw();
    cluster.pass(90s);
    EXPECT_EQ(counter(a, "streams_started"), before);
    EXPECT_EQ(counter(a, "stream_errors"), 0);
}

// S20: what this node does not handle neither fills its polls nor is marked.
TEST(Intake, UnlistenedMessagesDoNotFillThePollsWindow) {
    SimCluster cluster;
    Seen seen, later;
    auto& sender = cluster.start("sender", polling());
    auto& a = cluster.start("a", {.window = 5, .use_streams = false});
    a.bus->listen("mine", seen.handler()).value_or_throw();
    cluster.pass(1s);
    for (int i = 0; i < 15; ++i)
        sender.bus->publish({.topic = "other", .msg = "o"}).value_or_throw();
    sender.bus->publish({.topic = "mine", .msg = "m"}).value_or_throw();
    cluster.pass(500ms);
    EXPECT_EQ(seen.texts, std::vector<std::string>{"m"});
    a.bus->listen("other", later.handler()).value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(later.texts.size(), 15u);
}

// S21 and field report "Document without an optional field".
TEST(Intake, DocumentsOfOtherLanguagesAreDeliveredOnceAndBadOnesCounted) {
    for (const bool before_start : {true, false}) {
        SimCluster cluster;
        Seen broadcasts, jobs;
        const auto insert = [&] {
            const auto id = [] { return bson::ObjectId::generate(); };
            cluster.insert("msg", bson::make("_id", id(), "topic", "t", "sender", "py-1", "msg",
                                             "hi", "timestamp", 1787300000123.0));
            cluster.insert(
                "msg", bson::make("_id", id(), "name", "j", "sender", "py-1", "exclusive", true,
                                  "timestamp", static_cast<double>(cluster.clock.system_millis())));
            cluster.insert("msg", bson::make("_id", id(), "topic", "t", "sender", "py-1", "msg",
                                             "64", "priority", std::int64_t{5}));
            cluster.insert(
                "msg", bson::make("_id", id(), "topic", "t", "sender", "py-1", "priority", "high"));
            cluster.insert("msg", bson::make("_id", id(), "topic", "t", "msg", "nobody sent this"));
        };
        if (before_start) insert();
        auto& a = cluster.start("a");
        a.bus->listen("t", broadcasts.handler()).value_or_throw();
        a.bus->listen("j", jobs.handler()).value_or_throw();
        cluster.pass(1s);
        if (!before_start) insert();
        cluster.pass(25s);
        std::sort(broadcasts.texts.begin(), broadcasts.texts.end());
        EXPECT_EQ(broadcasts.texts, (std::vector<std::string>{"64", "hi"}));
        EXPECT_EQ(jobs.texts.size(), 1u);
        EXPECT_EQ(a.bus->status().malformed,
                  (std::map<std::string, std::int64_t>{{"priority is not a number", 1},
                                                       {"sender is missing", 1}}));
    }
}

// S22: late answers are marked, so that polls do not find them for the rest of their life.
TEST(Intake, LateAnswersDoNotComeBackAtEveryPoll) {
    SimCluster cluster;
    auto& client = cluster.start("client", {.fallback_poll = 1s});
    client.bus->listen("t", [](const Message&) {}).value_or_throw();
    cluster.pass(1s);
    const auto id =
        client.bus->request_async({.topic = "t"}, 100ms, [](const Message&) {}).value_or_throw();
    cluster.pass(1s);
    auto& server = cluster.start("server");
    Message late{.topic = "t", .recipients = {"client"}};
    late.in_answer_to = id;
    server.bus->publish(std::move(late)).value_or_throw();
    cluster.pass(5s);
    EXPECT_EQ(bson::to_json(
                  cluster.documents("msg", bson::make("in_answer_to", id)).at(0)["processed_by"]),
              R"(["client"])");
    EXPECT_EQ(counter(client, "poll_found"), 0);
}

// S22, second half: an error in a poll is counted and visible, and the next tick polls again.
TEST(Intake, FailedPollIsCountedAndRepeated) {
    SimCluster cluster;
    Seen seen;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", polling());
    a.bus->listen("t", seen.handler()).value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "t", .msg = "x"}).value_or_throw();
    a.store->fail_next(1, {ErrorCode::NetworkTimeout, "slow"});
    cluster.pass(1s);
    EXPECT_GE(counter(a, "poll_errors"), 1);
    EXPECT_EQ(seen.texts, std::vector<std::string>{"x"});
}

// S25: the safety net works by the clock, whatever the tick.
TEST(Intake, FallbackPollRescuesWithinItsIntervalWhateverTheTick) {
    for (const auto pause : {10ms, 250ms, 1000ms}) {
        SimCluster cluster;
        Seen seen;
        auto& sender = cluster.start("sender");
        auto& a = cluster.start("a", {.poll_pause = pause});
        a.bus->listen("t", seen.handler()).value_or_throw();
        cluster.pass(2s);
        cluster.server.set_event_delay(std::chrono::hours(1));  // streams live, but nothing comes
        sender.bus->publish({.topic = "t", .msg = "x"}).value_or_throw();
        cluster.pass(11s);
        EXPECT_EQ(seen.texts, std::vector<std::string>{"x"}) << pause.count();
        EXPECT_EQ(counter(a, "rescued"), 1);
    }
}

// S11: a burst larger than any batch arrives completely.
TEST(Intake, BurstOfFiveThousandArrivesCompletely) {
    SimCluster cluster;
    std::size_t count = 0;
    auto& sender = cluster.start("sender");
    cluster.start("a", rarely_polling())
        .bus->listen("t", [&](const Message&) { ++count; })
        .value_or_throw();
    cluster.pass(1s);
    std::vector<Message> burst(5000);
    for (auto& m : burst) m.topic = "t";
    sender.bus->publish(std::move(burst)).value_or_throw();
    cluster.settle();
    EXPECT_EQ(count, 5000u);
}

TEST(Intake, PausedTopicStaysWhereItIsUntilResumed) {
    SimCluster cluster;
    Seen seen;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a");
    a.bus->listen("t", seen.handler()).value_or_throw();
    a.bus->pause_topic("t");
    cluster.pass(1s);
    sender.bus->publish({.topic = "t", .msg = "b"}).value_or_throw();
    sender.bus->publish({.topic = "t", .msg = "x", .exclusive = true}).value_or_throw();
    cluster.pass(15s);
    EXPECT_TRUE(seen.texts.empty());
    EXPECT_EQ(cluster.count("msg_lck"), 0u);
    EXPECT_EQ(a.bus->status().paused_topics, std::vector<std::string>{"t"});
    EXPECT_EQ(a.bus->resume_topic("t"), 16s);
    cluster.pass(500ms);
    EXPECT_EQ(seen.texts.size(), 2u);
    EXPECT_EQ(a.bus->resume_topic("t"), 0ms);
}

TEST(Intake, ExpiredMessagesAreCountedPerTopicAndNotDelivered) {
    SimCluster cluster;
    Seen seen;
    auto& sender = cluster.start("sender");
    sender.bus->publish({.topic = "t", .ttl = 1s}).value_or_throw();
    cluster.clock.advance(2s);
    auto& a = cluster.add("a", {.fallback_poll = 1s});
    a.bus->listen("t", seen.handler()).value_or_throw();
    a.bus->start().value_or_throw();
    cluster.server.set_event_delay(0us);
    cluster.scheduler.advance(500ms);
    EXPECT_TRUE(seen.texts.empty());
    // One that expires while its topic has the handler's attention elsewhere is counted.
    a.bus->listen("slow", [&](const Message&) { cluster.clock.advance(5s); }).value_or_throw();
    cluster.scheduler.advance(500ms);
    sender.bus->publish({.topic = "slow", .priority = 1}).value_or_throw();
    sender.bus->publish({.topic = "t", .ttl = 2s}).value_or_throw();
    cluster.settle();
    EXPECT_TRUE(seen.texts.empty());
    EXPECT_EQ(a.bus->status().expired_by_topic, (std::map<std::string, std::int64_t>{{"t", 1}}));
}

// Age is judged by server time, never by a sender's or receiver's clock.
TEST(Intake, WrongLocalClockNeitherExpiresNorRevivesMessages) {
    SimCluster cluster;
    cluster.server.set_clock_offset(
        -3'600'000ms);  // every client's clock is an hour ahead of the server's
    Seen seen;
    auto& sender = cluster.start("sender");
    cluster.start("a").bus->listen("t", seen.handler()).value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "t", .msg = "x"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(seen.texts, std::vector<std::string>{"x"});
    const auto stored = cluster.documents("msg");
    EXPECT_NEAR(static_cast<double>(stored.at(0)["timestamp"].as_int64()),
                static_cast<double>(cluster.clock.system_millis() - 3'600'000), 2000);
    cluster.clock.jump_system(std::chrono::hours(5));
    cluster.server.set_clock_offset(-6 * 3'600'000ms);
    sender.bus->publish({.topic = "t", .msg = "y"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(seen.texts.size(), 2u);
}

TEST(Intake, RejectedBroadcastComesAgainToTheSameNodeWithBackOff) {
    SimCluster cluster;
    int a_calls = 0, b_calls = 0;
    auto& sender = cluster.start("sender");
    cluster.start("a")
        .bus
        ->listen(
            "t",
            [&](const Message&) -> Reply { return ++a_calls < 3 ? reject("later") : no_answer(); })
        .value_or_throw();
    cluster.start("b").bus->listen("t", [&](const Message&) { ++b_calls; }).value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "t"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(a_calls, 1);
    cluster.pass(20s);
    EXPECT_EQ(a_calls, 3);
    EXPECT_EQ(b_calls, 1);
    EXPECT_EQ(cluster.documents("msg").at(0)["processed_by"].get_array()->count(), 2u);
}

TEST(Intake, DirectedMessagesReachTheirRecipientsOnly) {
    SimCluster cluster;
    std::string who;
    auto& sender = cluster.start("sender");
    for (const std::string id : {"a", "b", "c"}) {
        cluster.start(id)
            .bus->listen("t", [&who, id](const Message&) { who += id; })
            .value_or_throw();
    }
    cluster.pass(1s);
    sender.bus->publish({.topic = "t", .recipients = {"a", "c"}}).value_or_throw();
    cluster.pass(12s);
    std::sort(who.begin(), who.end());
    EXPECT_EQ(who, "ac");
    sender.bus->publish({.topic = "t", .exclusive = true, .recipients = {"a", "c"}})
        .value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(who.size(), 3u);
    EXPECT_NE(who.back(), 'b');
}

TEST(Intake, SelfMessagesReachOwnListenersOnly) {
    SimCluster cluster;
    int own = 0, other = 0;
    auto& a = cluster.start("a");
    a.bus->listen("t", [&](const Message& m) { own += m.sender == "self"; }).value_or_throw();
    cluster.start("b").bus->listen("t", [&](const Message&) { ++other; }).value_or_throw();
    cluster.pass(1s);
    a.bus->publish_to_self({.topic = "t"}).value_or_throw();
    cluster.pass(12s);
    EXPECT_EQ(own, 1);
    EXPECT_EQ(other, 0);
}

TEST(Intake, ListenersOfOneTopicRunInOrderOfRegistration) {
    SimCluster cluster;
    std::string order;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a");
    for (const std::string name : {"x", "y", "z"})
        a.bus->listen("t", [&, name](const Message&) { order += name; }, {.name = name})
            .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "t"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(order, "xyz");
}

TEST(Intake, DeletionAfterProcessingWaitsAsLongAsAsked) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    cluster.start("a").bus->listen("t", [](const Message&) {}).value_or_throw();
    cluster.pass(1s);
    Message now{.topic = "t", .delete_after_processing = true},
        later{.topic = "t", .exclusive = true};
    later.delete_after_processing_time = 5s;
    sender.bus->publish(std::move(now)).value_or_throw();
    sender.bus->publish(std::move(later)).value_or_throw();
    cluster.settle();
    ASSERT_EQ(cluster.count("msg"), 1u);
    EXPECT_EQ(cluster.documents("msg").at(0)["processed_by"].get_array()->count(), 1u);
    cluster.pass(7s);
    EXPECT_EQ(cluster.count("msg"), 0u);
}

}  // namespace
}  // namespace angelia::messaging::testing
