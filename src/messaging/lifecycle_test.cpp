// Start, readiness, names and ids, participants, status topic, answers, pull, stop.
#include "messaging/testing/sim_cluster.h"

#include <gtest/gtest.h>

namespace angelia::messaging::testing {
namespace {

using namespace std::chrono_literals;

std::string code_of(const Error& error) { return error_code_name(error.code); }

TEST(Options, EachBadValueIsNamedWithWhatIsAllowed) {
    SimCluster cluster;
    const auto error_of = [&](Options o) {
        const auto started = cluster.add("x", std::move(o)).bus->start();
        return started ? std::string("accepted") : started.error().message;
    };
    EXPECT_EQ(error_of({.window = 0}), "option window is 0; allowed are 1 to 10000");
    EXPECT_EQ(error_of({.lease = 100ms}), "option lease is 100 ms; allowed are 200 to 43200000 ms");
    EXPECT_EQ(error_of({.queue = "a$b"}),
              "option queue is \"a$b\"; allowed are up to 100 bytes without $ and zero bytes");
    EXPECT_EQ(error_of({.threads = 5000}), "option threads is 5000; allowed are 0 to 1000");
}

TEST(Lifecycle, ReadyAfterStreamsAndFirstPoll) {
    SimCluster cluster;
    auto& a = cluster.add("a");
    EXPECT_FALSE(a.bus->wait_ready(0ms));
    a.bus->start().value_or_throw();
    cluster.settle();
    EXPECT_TRUE(a.bus->wait_ready(0ms));
    EXPECT_TRUE(a.bus->status().running);
    EXPECT_TRUE(a.bus->status().streams);
    EXPECT_EQ(code_of(a.bus->start().error()), "IllegalOperation");
}

// S30: transient errors while starting do not keep a node from becoming ready.
TEST(Lifecycle, BecomesReadyAlthoughTheFirstIndexCommandsFail) {
    SimCluster cluster;
    int refused = 0, calls = 0;
    auto& sender = cluster.start("sender");
    auto& a = cluster.add("a");
    a.store->set_fault_before(
        [&](const store::testing::SimulatedCall& call) -> std::optional<Error> {
            if (call.verb != "ensure_indexes" || refused >= 3) return std::nullopt;
            ++refused;
            return Error(ErrorCode::NotWritablePrimary, "election");
        });
    a.bus->listen("t", [&](const Message&) { ++calls; }).value_or_throw();
    a.bus->start().value_or_throw();
    cluster.pass(5s);
    EXPECT_EQ(refused, 3);
    EXPECT_TRUE(a.bus->wait_ready(0ms));
    sender.bus->publish({.topic = "t"}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(counter(a, "index_errors"), 3);
}

TEST(Lifecycle, IdThatIsAliveIsRefusedUntilItIsGone) {
    SimCluster cluster;
    auto& first = cluster.start("worker-1");
    const auto second = cluster.add("worker-1").bus->start();
    ASSERT_FALSE(second);
    EXPECT_EQ(code_of(second.error()), "ConflictingOperationInProgress");
    EXPECT_NE(second.error().message.find("the id \"worker-1\" is alive on the queue"),
              std::string::npos);
    first.bus->stop().value_or_throw();
    EXPECT_TRUE(cluster.add("worker-1").bus->start());
}

TEST(Lifecycle, IdOfACrashedNodeIsFreeAfterTheTimeout) {
    SimCluster cluster;
    cluster.start("worker-1").crash();
    EXPECT_FALSE(cluster.add("worker-1").bus->start());
    cluster.pass(66s);
    EXPECT_TRUE(cluster.add("worker-1").bus->start());
}

TEST(Participants, DocumentHasTheFieldsOthersReadAndGoesWithTheNode) {
    SimCluster cluster;
    auto& a = cluster.start("a");
    auto stored = cluster.documents("msg_participants");
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(stored[0]["_id"].as_string(), "a");
    EXPECT_EQ(stored[0]["implementation"].as_string(), "StandardMessaging");
    const auto seen = stored[0]["last_seen"].as_int64();
    EXPECT_TRUE(stored[0]["started_at"].is(bson::Type::Int64));
    cluster.pass(31s);
    EXPECT_GT(cluster.documents("msg_participants").at(0)["last_seen"].as_int64(), seen);
    a.bus->stop().value_or_throw();
    EXPECT_EQ(cluster.count("msg_participants"), 0u);
}

TEST(Participants, AnotherLayoutIsWarnedAboutOnceOrRefused) {
    SimCluster cluster;
    const auto java =
        bson::make("_id", "java", "implementation", "MultiCollectionMessaging", "hostname", "h",
                   "started_at", std::int64_t{1}, "last_seen", cluster.clock.system_millis());
    cluster.insert("msg_participants", java);
    const auto refused =
        cluster.add("r", {.implementation_check = ImplementationCheck::Refuse}).bus->start();
    ASSERT_FALSE(refused);
    EXPECT_EQ(code_of(refused.error()), "IllegalOperation");
    EXPECT_EQ(cluster.count("msg_participants"), 1u);
    auto& a = cluster.start("a");
    cluster.pass(61s);
    int warnings = 0;
    for (const auto& line : a.log)
        warnings += line.find("MultiCollectionMessaging") != std::string::npos;
    EXPECT_EQ(warnings, 1);
}

TEST(Participants, LongGoneOnesAreRemovedAndIgnoreAnnouncesNothing) {
    SimCluster cluster;
    cluster.insert("msg_participants",
                   bson::make("_id", "old", "implementation", "StandardMessaging", "last_seen",
                              cluster.clock.system_millis() - 200'000));
    cluster.start("hidden", {.implementation_check = ImplementationCheck::Ignore});
    EXPECT_EQ(cluster.count("msg_participants"), 1u);
    cluster.start("a");
    cluster.pass(31s);
    const auto left = cluster.documents("msg_participants");
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0]["_id"].as_string(), "a");
}

// S29: the same name twice; removing what is not there; all or none.
TEST(Listeners, NamesAreUniquePerTopicAndRemovalMatchesIdentity) {
    SimCluster cluster;
    auto& a = cluster.add("a");
    const auto nothing = [](const Message&) {};
    const auto first = a.bus->listen("t", nothing, {.name = "x"}).value_or_throw();
    EXPECT_EQ(code_of(a.bus->listen("t", nothing, {.name = "x"}).error()),
              "ConflictingOperationInProgress");
    EXPECT_TRUE(a.bus->listen("u", nothing, {.name = "x"}));
    EXPECT_FALSE(a.bus->unlisten({.topic = "t", .name = "y"}));
    EXPECT_TRUE(a.bus->unlisten(first));
    EXPECT_FALSE(a.bus->unlisten(first));
    std::vector<TopicHandler> many(2);
    many[0].topic = "v";
    many[0].handler = [](const Message&) -> Reply { return no_answer(); };
    many[1].topic = "bad\n";
    many[1].handler = many[0].handler;
    EXPECT_EQ(code_of(a.bus->listen_many(std::move(many)).error()), "BadValue");
    EXPECT_EQ(a.bus->status().listeners.count("v"), 0u);
}

TEST(Status, EveryNodeAnswersThePingAndTheLevelsOthersKnow) {
    SimCluster cluster;
    auto& monitor = cluster.start("monitor", {.status_listener = false});
    cluster.start("a")
        .bus->listen("orders", [](const Message&) {}, {.name = "book"})
        .value_or_throw();
    cluster.start("b");
    cluster.start("quiet", {.status_listener = false});
    cluster.pass(1s);
    std::map<std::string, std::string> pings, full;
    monitor.bus
        ->request_async({.topic = "morphium.status_info", .value = "PING"}, 5s,
                        [&](const Message& m) { pings[m.sender] = bson::to_json(*m.map_value); })
        .value_or_throw();
    monitor.bus
        ->request_async(
            {.topic = "morphium.status_info", .msg = "status_request", .value = "all"}, 5s,
            [&](const Message& m) {
                full[m.sender] = bson::to_json((*m.map_value)["message_listeners_by_name"]);
            })
        .value_or_throw();
    cluster.settle();
    EXPECT_EQ(pings, (std::map<std::string, std::string>{{"a", "{}"}, {"b", "{}"}}));
    EXPECT_EQ(full.size(), 2u);
    EXPECT_EQ(full["a"], R"({"morphium.status_info":["angelia status"],"orders":["book"]})");
}

// S27: every answer of a broadcast once, of an exclusive request the first only.
TEST(Answers, BroadcastRequestHearsEveryResponderOnceExclusiveOnlyOne) {
    SimCluster cluster;
    auto& client = cluster.start("client", {.fallback_poll = 1s});
    for (const char* id : {"a", "b"})
        cluster.start(id)
            .bus->listen("t", [](const Message&) -> Reply { return answer("x"); })
            .value_or_throw();
    cluster.pass(1s);
    // Marks are late: polls see the answers again.
    client.store->set_fault_before(
        [](const store::testing::SimulatedCall& call) -> std::optional<Error> {
            if (call.verb != "update" || call.collection != "app.msg") return std::nullopt;
            return Error(ErrorCode::NetworkTimeout, "late");
        });
    int broadcast = 0, exclusive = 0;
    client.bus->request_async({.topic = "t"}, 4s, [&](const Message&) { ++broadcast; })
        .value_or_throw();
    client.bus
        ->request_async({.topic = "t", .exclusive = true}, 4s, [&](const Message&) { ++exclusive; })
        .value_or_throw();
    cluster.pass(6s);
    EXPECT_EQ(broadcast, 2);
    EXPECT_EQ(exclusive, 1);
}

TEST(Answers, AnswerWithoutRecipientsReachesTheWaitingNode) {
    SimCluster cluster;
    auto& client = cluster.start("client");
    auto& server = cluster.start("server");
    int answers = 0;
    const auto id =
        client.bus->request_async({.topic = "t"}, 5s, [&](const Message&) { ++answers; })
            .value_or_throw();
    Message a{.topic = "anything"};
    a.in_answer_to = id;
    server.bus->publish(std::move(a)).value_or_throw();
    cluster.settle();
    EXPECT_EQ(answers, 1);
}

TEST(Answers, TimeOutIsReportedOnceAndTheAnswerAfterItIsNot) {
    SimCluster cluster;
    auto& client = cluster.start("client");
    int answers = 0, timeouts = 0;
    client.bus
        ->request_async(
            {.topic = "nobody", .exclusive = true}, 2s, [&](const Message&) { ++answers; },
            [&] { ++timeouts; })
        .value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(timeouts, 0);
    cluster.pass(2s);
    cluster.start("late")
        .bus->listen("nobody", [](const Message&) -> Reply { return answer("x"); })
        .value_or_throw();
    cluster.pass(5s);
    EXPECT_EQ(timeouts, 1);
    EXPECT_EQ(answers, 0);
}

TEST(Answers, AnswersToAnswersAreNotSent) {
    SimCluster cluster;
    auto& a = cluster.start("a");
    auto& b = cluster.start("b");
    for (auto* node : {&a, &b})
        node->bus->listen("t", [](const Message&) -> Reply { return answer("echo"); })
            .value_or_throw();
    cluster.pass(1s);
    a.bus->publish({.topic = "t"})
        .value_or_throw();  // nobody waits: a's own listener hears b's answer
    cluster.pass(3s);
    EXPECT_EQ(cluster.count("msg"), 2u);
    EXPECT_EQ(counter(a, "answers_dropped"), 1);
}

TEST(Answers, RejectionTellsTheSenderWhenAsked) {
    SimCluster cluster;
    auto& client = cluster.start("client");
    cluster.start("server")
        .bus
        ->listen("t",
                 [](const Message&) -> Reply {
                     return reject("no stock").and_tell_sender().and_give_up();
                 })
        .value_or_throw();
    cluster.pass(1s);
    std::string heard;
    client.bus
        ->request_async({.topic = "t"}, 5s,
                        [&](const Message& m) { heard = *m.msg + ": " + *m.value; })
        .value_or_throw();
    cluster.settle();
    EXPECT_EQ(heard, "message rejected by listener: no stock");
}

TEST(Answers, AutoAnswerSaysReceived) {
    SimCluster cluster;
    auto& client = cluster.start("client");
    cluster.start("server", {.auto_answer = true})
        .bus->listen("t", [](const Message&) {})
        .value_or_throw();
    cluster.pass(1s);
    std::string heard;
    client.bus->request_async({.topic = "t"}, 5s, [&](const Message& m) { heard = *m.msg; })
        .value_or_throw();
    cluster.settle();
    EXPECT_EQ(heard, "received");
}

TEST(Pull, ReceiveLeasesAcknowledgeDeletes) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a");
    for (int i = 0; i < 3; ++i)
        sender.bus->publish({.topic = "job", .msg = std::to_string(i), .exclusive = true})
            .value_or_throw();
    const auto got = a.bus->receive("job", 2, 0ms).value_or_throw();
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].attempt, 1);
    EXPECT_EQ(cluster.start("b").bus->receive("job", 10, 0ms).value_or_throw().size(), 1u);
    a.bus->acknowledge(got[0]).value_or_throw();
    EXPECT_EQ(cluster.count("msg"), 2u);
    EXPECT_EQ(cluster.count("msg_lck"), 2u);
    EXPECT_EQ(code_of(a.bus->acknowledge(got[0]).error()), "StaleEpoch");
}

TEST(Pull, LostLeaseIsAnErrorThatChangesNothing) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", {.lease = 2s});
    auto& b = cluster.start("b", {.lease = 2s});
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    const auto got = a.bus->receive("job", 1, 0ms).value_or_throw();
    ASSERT_EQ(got.size(), 1u);
    cluster.pass(1s);
    a.bus->extend(got[0], 5s).value_or_throw();
    cluster.pass(4s);
    EXPECT_TRUE(b.bus->receive("job", 1, 0ms).value_or_throw().empty());
    cluster.pass(3s);
    const auto again = b.bus->receive("job", 1, 0ms).value_or_throw();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].attempt, 2);
    EXPECT_EQ(code_of(a.bus->acknowledge(got[0]).error()), "StaleEpoch");
    EXPECT_EQ(code_of(a.bus->extend(got[0], 5s).error()), "StaleEpoch");
    EXPECT_EQ(code_of(a.bus->reject(got[0], "x").error()), "StaleEpoch");
    b.bus->acknowledge(again[0]).value_or_throw();
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

TEST(Pull, RejectedMessageComesBackWithItsCauseAfterTheBackOff) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a");
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    const auto got = a.bus->receive("job", 1, 0ms).value_or_throw();
    a.bus->reject(got.at(0), "not now").value_or_throw();
    EXPECT_TRUE(a.bus->receive("job", 1, 0ms).value_or_throw().empty());
    cluster.pass(1100ms);
    const auto again = a.bus->receive("job", 1, 0ms).value_or_throw();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].last_error, "not now");
    EXPECT_EQ(again[0].attempt, 2);
}

TEST(Stop, ReleasesWhatWaitsAndRefusesWhatComesLater) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", {.threads = 1});
    int calls = 0;
    a.bus
        ->listen("job",
                 [&](const Message&) {
                     // Stopping while a second claimed message waits behind this one.
                     if (++calls == 1) cluster.nodes.back().bus->stop(1s).value_or_throw();
                 })
        .value_or_throw();
    cluster.pass(1s);
    for (int i = 0; i < 4; ++i)
        sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(cluster.count("msg"), 3u);
    EXPECT_EQ(cluster.count("msg_lck"), 0u);
    EXPECT_EQ(cluster.count("msg_participants"), 1u);
    EXPECT_EQ(code_of(a.bus->publish({.topic = "t"}).error()), "ShutdownInProgress");
    EXPECT_EQ(code_of(a.bus->request({.topic = "t"}, 1s).error()), "ShutdownInProgress");
    EXPECT_EQ(code_of(a.bus->receive("job", 1, 0ms).error()), "ShutdownInProgress");
    EXPECT_TRUE(a.bus->stop());
}

TEST(Publish, BulkIsOneCallAndNamesTheOneThatFailed) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::vector<Message> many(3);
    for (auto& m : many) m.topic = "t";
    many[0].id = many[1].id = bson::ObjectId::generate();
    cluster.server.reset_call_counts();
    const auto result = sender.bus->publish(std::move(many));
    ASSERT_FALSE(result);
    EXPECT_EQ(code_of(result.error()), "DuplicateKey");
    EXPECT_EQ(result.error().message.find("message 1 of 3 (1 failed): "), 0u)
        << result.error().message;
    EXPECT_EQ(cluster.server.calls_total(), 1);
    EXPECT_EQ(cluster.count("msg"), 2u);
}

TEST(Publish, WorksBeforeStartAndMakesSureThatMessagesCanExpire) {
    SimCluster cluster;
    auto& sender = cluster.add("sender");
    sender.bus->publish({.topic = "t", .ttl = 1s}).value_or_throw();
    EXPECT_EQ(cluster.count("msg"), 1u);
    cluster.pass(3s);
    EXPECT_EQ(cluster.count("msg"), 0u);
    EXPECT_EQ(code_of(sender.bus->request({.topic = "t"}, 1s).error()), "IllegalOperation");
    EXPECT_EQ(code_of(sender.bus->publish({.topic = ""}).error()), "BadValue");
}

TEST(Publish, NeedsNoRightToMakeIndexesAndSaysSoOnce) {
    SimCluster cluster;
    auto& a = cluster.add("a");
    a.store->set_fault_before(
        [](const store::testing::SimulatedCall& call) -> std::optional<Error> {
            if (call.verb != "ensure_indexes") return std::nullopt;
            return Error(ErrorCode::Unauthorized, "not authorized on app to createIndexes");
        });
    EXPECT_TRUE(a.bus->publish({.topic = "t"}));
    EXPECT_TRUE(a.bus->publish({.topic = "t"}));
    EXPECT_EQ(cluster.count("msg"), 2u);
    ASSERT_EQ(a.log.size(), 1u);
    EXPECT_NE(a.log[0].find("indexes of collection app.msg could not be made"), std::string::npos)
        << a.log[0];
    EXPECT_EQ(counter(a, "index_errors"), 1);
}

TEST(Publish, NeverStoresWhatHasExpiredByTheServersClock) {
    SimCluster cluster;
    cluster.server.set_clock_offset(1h);
    auto& a = cluster.add("a");
    a.bus->publish({.topic = "t", .ttl = 30s}).value_or_throw();
    const auto stored = cluster.documents("msg");
    EXPECT_EQ(stored.at(0)["delete_at"].as_date().millis - cluster.clock.system_millis(),
              (1h + 30s) / 1ms);
}

TEST(Publish, ChecksItsOptionsBeforeStart) {
    SimCluster cluster;
    const auto published = cluster.add("a", {.queue = "a$b"}).bus->publish({.topic = "t"});
    ASSERT_FALSE(published);
    EXPECT_EQ(code_of(published.error()), "BadValue");
    EXPECT_EQ(published.error().message,
              "option queue is \"a$b\"; allowed are up to 100 bytes without $ and zero bytes");
}

TEST(Decisions, RingTellsWhatWasDecided) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a");
    a.bus->listen("job", [](const Message&) {}).value_or_throw();
    cluster.pass(1s);
    const auto id = sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    const auto ring = a.bus->decisions();
    ASSERT_FALSE(ring.empty());
    EXPECT_EQ(ring.back().id, id);
    EXPECT_EQ(ring.back().what, "claim");
}

}  // namespace
}  // namespace angelia::messaging::testing
