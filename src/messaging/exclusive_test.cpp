// Exclusive messages: one handler, leases, back-off, crashes, and the rules of at most once.
#include "messaging/testing/sim_cluster.h"

#include <gtest/gtest.h>

#include <set>

namespace angelia::messaging::testing {
namespace {

using namespace std::chrono_literals;

/// Handles by writing down "node/attempt" and rejecting the first `failures` deliveries.
struct ExclusiveLog {
    std::vector<std::string> calls;
    int failures = 0;
    Handler on(const std::string& node) {
        return [this, node](const Message& m) -> Reply {
            calls.push_back(node + "/" + std::to_string(m.attempt) +
                            (m.last_error ? " after " + *m.last_error : ""));
            if (failures == 0) return no_answer();
            --failures;
            return reject("not yet");
        };
    }
};

Options short_lease() { return {.lease = milliseconds(2000)}; }
Options at_most_once() { return {.delivery = DeliveryMode::AtMostOnce}; }

// Field report "Requeued message does not say so".
TEST(Exclusive, SecondDeliverySaysWhichAttemptItIsAndWhyTheFirstFailed) {
    SimCluster cluster;
    ExclusiveLog log;
    log.failures = 1;
    auto& sender = cluster.start("sender");
    cluster.start("a").bus->listen("job", log.on("a")).value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    ASSERT_EQ(log.calls.size(), 1u);
    const auto stored = cluster.documents("msg");
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(stored[0]["last_error"].as_string(), "not yet");
    EXPECT_EQ(cluster.count("msg_lck"), 1u);  // the back-off keeps others away
    cluster.pass(3s);
    EXPECT_EQ(log.calls, (std::vector<std::string>{"a/1", "a/2 after not yet"}));
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

TEST(Exclusive, FailureBacksOffFromOneSecondDoubling) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::vector<std::int64_t> at;
    cluster.start("a")
        .bus
        ->listen("job",
                 [&](const Message&) -> Reply {
                     at.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(
                                      cluster.clock.steady_now().time_since_epoch())
                                      .count());
                     return reject("never");
                 })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.pass(16s);
    ASSERT_GE(at.size(), 5u);
    for (std::size_t i = 1; i < 5; ++i) {
        const auto gap = at[i] - at[i - 1];
        EXPECT_GE(gap, 1000LL << (i - 1));
        EXPECT_LE(gap, (1000LL << (i - 1)) + 500);
    }
}

// Reasons come from exceptions and other programs; what is stored must be a valid document.
TEST(Exclusive, ReasonsOfAnyBytesAndLengthAreStored) {
    const std::string long_one = std::string(65535, 'x') + "\u00e9" + std::string(10, 'y');
    for (const auto& [reason, stored] :
         {std::pair<std::string, std::string>{"caf\xe9 is shut", "caf? is shut"},
          {"caf\u00e9 is shut", "caf\u00e9 is shut"},
          {long_one, std::string(65535, 'x')}}) {
        SimCluster cluster;
        const std::string why = reason;
        cluster.start("worker")
            .bus->listen("t", [&](const Message&) -> Reply { return reject(why); })
            .value_or_throw();
        auto& sender = cluster.start("sender");
        cluster.pass(1s);
        sender.bus->publish({.topic = "t", .exclusive = true}).value_or_throw();
        cluster.settle();
        EXPECT_EQ(cluster.documents("msg").at(0)["last_error"].as_string(), stored);
    }
}

TEST(Exclusive, ExceptionOfAHandlerCountsAsRejection) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    int calls = 0;
    cluster.start("a")
        .bus
        ->listen("job",
                 [&](const Message&) {
                     if (++calls == 1) throw std::runtime_error("boom");
                 })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(cluster.documents("msg").at(0)["last_error"].as_string(), "boom");
    cluster.pass(3s);
    EXPECT_EQ(calls, 2);
}

TEST(Exclusive, CrashedHoldersWorkIsTakenOverAfterTheLease) {
    SimCluster cluster;
    ExclusiveLog log;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", short_lease());
    a.bus
        ->listen("job",
                 [&](const Message&) -> Reply {
                     a.crash();
                     return no_answer();
                 })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    auto& b = cluster.start("b", short_lease());
    b.bus->listen("job", log.on("b")).value_or_throw();
    cluster.pass(1s);
    EXPECT_TRUE(log.calls.empty());
    cluster.pass(4s);
    EXPECT_EQ(log.calls, (std::vector<std::string>{"b/2"}));
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

// A lock that a crash between its insert and the message's update left behind (on a MongoDB server)
// is taken over when its time is up.
TEST(Exclusive, LockLeftBehindByACrashIsTakenOverByItsExactValues) {
    SimCluster cluster;
    ExclusiveLog log;
    auto& sender = cluster.start("sender");
    const auto id = sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.insert("msg_lck", bson::make("_id", id, "lock_id", "dead", "delete_at",
                                         bson::Date{cluster.clock.system_millis() + 3000}));
    cluster.start("b", short_lease()).bus->listen("job", log.on("b")).value_or_throw();
    cluster.pass(2s);
    EXPECT_TRUE(log.calls.empty());
    cluster.scheduler.advance(4s);  // no TTL monitor: the lock stays
    EXPECT_EQ(log.calls, (std::vector<std::string>{"b/1"}));
    EXPECT_EQ(cluster.count("msg_lck"), 0u);
}

TEST(Exclusive, StaleHoldersOutcomeChangesNothingAndIsCounted) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", short_lease());
    ExclusiveLog log;
    a.bus
        ->listen(
            "job",
            [&](const Message& m) {
                // While this handler runs, the node sleeps past its lease and another one takes
                // over.
                cluster.update(
                    "msg", bson::make("_id", m.id),
                    bson::make("$set", bson::make("leased_by", "b", "attempt", std::int32_t{2})));
                cluster.update(
                    "msg_lck", bson::make("_id", m.id),
                    bson::make("$set", bson::make("lock_id", "b", "attempt", std::int32_t{2})));
            })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    const auto stored = cluster.documents("msg");
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(stored[0]["leased_by"].as_string(), "b");
    EXPECT_EQ(stored[0]["processed_by"].get_array()->count(), 0u);
    EXPECT_EQ(cluster.documents("msg_lck").at(0)["lock_id"].as_string(), "b");
    EXPECT_EQ(counter(a, "stale_outcomes"), 1);
}

TEST(Exclusive, LeaseIsRenewedAtAThirdWhileTheHandlerRuns) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", short_lease());
    std::vector<std::int64_t> ends;
    a.bus
        ->listen(
            "job",
            [&](const Message&) {
                for (int i = 0; i < 5; ++i) {
                    cluster.pass(1s);  // the handler works for five seconds, on a lease of two
                    ends.push_back(cluster.documents("msg").at(0)["leased_until"].as_date().millis -
                                   cluster.clock.system_millis());
                    ends.push_back(
                        cluster.documents("msg_lck").at(0)["delete_at"].as_date().millis -
                        cluster.clock.system_millis());
                }
            })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    ASSERT_EQ(ends.size(), 10u);
    for (const auto left : ends) EXPECT_GT(left, 1000);
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
    EXPECT_EQ(counter(a, "stale_outcomes"), 0);
}

// Field report "Claim expires in the local window": what waits here is no more than what is handled
// within a moment.
TEST(Exclusive, OneBusyWorkerLeavesWaitingWorkToOthers) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::map<std::string, std::vector<std::string>> handled;  // id: nodes
    Options one{.window = 5, .threads = 1, .lease = 2s};
    for (const std::string id : {"a", "b"}) {
        auto& node = cluster.start(id, one);
        node.bus
            ->listen("job",
                     [&, id](const Message& m) {
                         handled[m.id.to_hex()].push_back(id);
                         cluster.pass(3s);
                     })
            .value_or_throw();
    }
    cluster.pass(1s);
    std::vector<Message> jobs(5);
    for (auto& job : jobs) {
        job.topic = "job";
        job.exclusive = true;
    }
    sender.bus->publish(std::move(jobs)).value_or_throw();
    cluster.settle();
    cluster.pass(20s);
    EXPECT_EQ(handled.size(), 5u);
    std::set<std::string> nodes;
    for (const auto& [id, by] : handled) {
        EXPECT_EQ(by.size(), 1u);
        nodes.insert(by.begin(), by.end());
    }
    EXPECT_EQ(nodes.size(), 2u);
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

// What a node holds although its lease has run out is skipped, with a counted reason.
TEST(Exclusive, ClaimedMessageWhoseLeaseRanOutIsNotBegun) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::vector<std::int32_t> attempts;
    auto& a = cluster.start("a", {.threads = 2, .lease = 2s});
    a.bus
        ->listen("job",
                 [&](const Message& m) {
                     // The first handler sleeps with the whole process: no renewal runs, the clock
                     // goes on.
                     attempts.push_back(m.attempt);
                     if (attempts.size() == 1) cluster.clock.advance(10s);
                 })
        .value_or_throw();
    cluster.pass(1s);
    std::vector<Message> jobs(2);
    for (auto& job : jobs) {
        job.topic = "job";
        job.exclusive = true;
    }
    sender.bus->publish(std::move(jobs)).value_or_throw();
    cluster.settle();
    cluster.pass(3s);
    EXPECT_EQ(counter(a, "lease_lost"), 1);
    EXPECT_EQ(attempts, (std::vector<std::int32_t>{
                            1, 2}));  // the second message began with its second attempt only
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

// Field report "Burst on several instances".
TEST(Exclusive, BurstOnFourNodesIsHandledOnceEachAndLeavesNothing) {
    SimCluster cluster(7);
    auto& sender = cluster.start("sender");
    std::map<std::string, int> handled;
    for (const char* id : {"a", "b", "c", "d"}) {
        cluster.start(id, {.threads = 4})
            .bus->listen("job", [&](const Message& m) { ++handled[m.id.to_hex()]; })
            .value_or_throw();
    }
    cluster.pass(1s);
    for (int i = 0; i < 500; ++i)
        sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    std::vector<Message> bulk(500);
    for (auto& m : bulk) {
        m.topic = "job";
        m.exclusive = true;
    }
    sender.bus->publish(std::move(bulk)).value_or_throw();
    cluster.settle();
    cluster.pass(10s);
    EXPECT_EQ(handled.size(), 1000u);
    for (const auto& [id, times] : handled) EXPECT_EQ(times, 1) << id;
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

TEST(Exclusive, KeptMessageIsMarkedAndItsLeaseTaken) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    cluster.start("a").bus->listen("job", [](const Message&) {}).value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true, .delete_after_processing = false})
        .value_or_throw();
    cluster.settle();
    const auto stored = cluster.documents("msg");
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(bson::to_json(stored[0]["processed_by"]), R"(["a"])");
    EXPECT_FALSE(stored[0].has("leased_until"));
    EXPECT_EQ(stored[0]["attempt"].as_int32(), 1);
    EXPECT_EQ(cluster.count("msg_lck"), 0u);
}

// S24: emptied marks are noticed by the stream, not by a timer.
TEST(Exclusive, RequeueByEmptyingTheMarksIsDeliveredAtOnce) {
    SimCluster cluster;
    ExclusiveLog log;
    auto& sender = cluster.start("sender");
    cluster.start("a", {.fallback_poll = 300s}).bus->listen("job", log.on("a")).value_or_throw();
    cluster.pass(1s);
    const auto id =
        sender.bus->publish({.topic = "job", .exclusive = true, .delete_after_processing = false})
            .value_or_throw();
    cluster.settle();
    cluster.update("msg", bson::make("_id", id),
                   bson::make("$set", bson::make("processed_by", bson::Array())));
    cluster.settle();
    EXPECT_EQ(log.calls, (std::vector<std::string>{"a/1", "a/2"}));
}

// S24: ordinary marks cause no poll.
TEST(Exclusive, OrdinaryMarksCauseNoPoll) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", {.fallback_poll = 300s});
    a.bus->listen("job", [](const Message&) {}).value_or_throw();
    cluster.pass(2s);
    const auto polls = counter(a, "polls");
    for (int i = 0; i < 100; ++i)
        sender.bus->publish({.topic = "job", .exclusive = true, .delete_after_processing = false})
            .value_or_throw();
    cluster.pass(2s);
    EXPECT_EQ(counter(a, "handled"), 100);
    EXPECT_EQ(counter(a, "polls"), polls);
}

// S18: a success wakes nobody.
TEST(Exclusive, SuccessesOfOneNodeCauseNoPollOnOthers) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::vector<SimNode*> nodes;
    for (int i = 0; i < 5; ++i) {
        auto& node = cluster.start("n" + std::to_string(i), {.fallback_poll = 300s});
        node.bus->listen("job", [](const Message&) {}).value_or_throw();
        nodes.push_back(&node);
    }
    cluster.pass(2s);
    std::int64_t before = 0, after = 0;
    for (auto* n : nodes) before += counter(*n, "polls");
    for (int i = 0; i < 100; ++i)
        sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.pass(2s);
    for (auto* n : nodes) after += counter(*n, "polls");
    EXPECT_EQ(after, before);
    EXPECT_EQ(cluster.count("msg"), 0u);
}

// S19: a message given back wakes those that wait.
TEST(Exclusive, ReleasedMessageIsTakenByAnotherNodeAtOnce) {
    SimCluster cluster;
    ExclusiveLog log;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", {.threads = 1, .fallback_poll = 300s});
    auto& b = cluster.start("b", {.fallback_poll = 300s});
    a.bus->listen("job", [&](const Message&) -> Reply { return reject("not mine").and_give_up(); })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    b.bus->listen("job", log.on("b")).value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(log.calls.size(), 1u);
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

// S23: only what reached a handler is remembered; what was skipped is not.
TEST(Exclusive, NodeThatLostTheRaceTakesTheMessageWhenItComesBack) {
    SimCluster cluster;
    ExclusiveLog log;
    auto& sender = cluster.start("sender");
    auto& a = cluster.start("a", {.fallback_poll = 300s});
    auto& b = cluster.start("b", {.fallback_poll = 300s});
    bool first = true;
    for (auto* node : {&a, &b}) {
        node->bus
            ->listen("job",
                     [&, node](const Message& m) -> Reply {
                         log.calls.push_back(node->bus->id() + "/" + std::to_string(m.attempt));
                         if (!first) return no_answer();
                         first = false;
                         return reject("go on").and_give_up();
                     })
            .value_or_throw();
    }
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.pass(1s);
    ASSERT_EQ(log.calls.size(), 2u);
    EXPECT_NE(log.calls[0][0], log.calls[1][0]);
}

// S17: documents whose mark list is null or missing.
TEST(Exclusive, NullMarksAreRepairedAndDeliveredOnce) {
    for (const bool once : {false, true}) {
        SimCluster cluster;
        int calls = 0;
        for (const char* id : {"a", "b"}) {
            cluster.start(id, once ? at_most_once() : Options{})
                .bus->listen("job", [&](const Message&) { ++calls; })
                .value_or_throw();
        }
        cluster.pass(1s);
        for (const bool missing : {false, true}) {
            bson::Builder document;
            document.add("_id", bson::ObjectId::generate())
                .add("topic", "job")
                .add("sender", "py")
                .add("exclusive", true);
            if (!missing) document.add("processed_by", bson::Null{});
            cluster.insert("msg", document.take());
        }
        cluster.pass(15s);
        EXPECT_EQ(calls, 2);
        for (const auto& d : cluster.documents("msg"))
            EXPECT_EQ(d["processed_by"].get_array()->count(), 1u);
    }
}

// S15: the mark stands before the handler runs, so a lost lock does not bring it a second time.
TEST(AtMostOnce, LockLostDuringALongRunDoesNotRunItTwice) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    int calls = 0;
    for (const char* id : {"a", "b"}) {
        cluster.start(id, at_most_once())
            .bus
            ->listen("job",
                     [&](const Message& m) {
                         ++calls;
                         cluster.pass(500ms);
                         cluster.look()
                             .remove({"app", "msg_lck"},
                                     [&] {
                                         std::vector<store::DeleteOp> ops(1);
                                         ops[0].filter = bson::make("_id", m.id);
                                         return ops;
                                     }())
                             .value_or_throw();
                         cluster.pass(10s);
                     })
            .value_or_throw();
    }
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    EXPECT_EQ(calls, 1);
}

// S16: a lock that no message bounds lives for seven days.
TEST(AtMostOnce, LockOfAMessageWithoutEndLivesForSevenDays) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::int64_t life = 0;
    cluster.start("a", at_most_once())
        .bus
        ->listen("job",
                 [&](const Message& m) {
                     EXPECT_EQ(m.processed_by, std::vector<std::string>{"a"});
                     life = cluster.documents("msg_lck").at(0)["delete_at"].as_date().millis -
                            cluster.clock.system_millis();
                 })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.settle();
    EXPECT_NEAR(static_cast<double>(life), 7.0 * 24 * 3600 * 1000, 10);
    EXPECT_EQ(cluster.count("msg_lck"), 0u);
}

TEST(AtMostOnce, RejectionRollsTheMarkBackAndOffersItAgain) {
    SimCluster cluster;
    ExclusiveLog log;
    log.failures = 1;
    auto& sender = cluster.start("sender");
    cluster.start("a", at_most_once()).bus->listen("job", log.on("a")).value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(log.calls.size(), 2u);
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

// S19 for locks of other makes: released by hand.
TEST(AtMostOnce, LockReleasedByAnybodyIsNoticedWithinATick) {
    SimCluster cluster;
    ExclusiveLog log;
    auto& sender = cluster.start("sender");
    const auto id = sender.bus->publish({.topic = "job", .exclusive = true}).value_or_throw();
    cluster.insert("msg_lck", bson::make("_id", id, "lock_id", "java", "delete_at",
                                         bson::Date{cluster.clock.system_millis() + 3'600'000}));
    auto& a = cluster.start("a", {.fallback_poll = 300s, .delivery = DeliveryMode::AtMostOnce});
    a.bus->listen("job", log.on("a")).value_or_throw();
    cluster.pass(2s);
    EXPECT_TRUE(log.calls.empty());
    std::vector<store::DeleteOp> all(1);
    all[0].multi = true;
    cluster.look().remove({"app", "msg_lck"}, std::move(all)).value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(log.calls.size(), 1u);
}

TEST(Morphium, ExclusiveMessageTimesOutAndExceptionDeletesLikeSuccess) {
    SimCluster cluster;
    auto& sender = cluster.start("sender", {.compat = Compat::Morphium});
    int calls = 0;
    cluster.start("a", {.compat = Compat::Morphium})
        .bus
        ->listen("job",
                 [&](const Message&) {
                     ++calls;
                     throw std::runtime_error("boom");
                 })
        .value_or_throw();
    cluster.pass(1s);
    sender.bus->publish({.topic = "job", .exclusive = true, .delete_after_processing = true})
        .value_or_throw();
    cluster.pass(2s);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(cluster.count("msg"), 0u);
}

TEST(Exclusive, MoreUrgentMessagesGoFirst) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::vector<std::string> order;
    for (std::int32_t p : {1000, 5, 500}) {
        sender.bus
            ->publish({.topic = "job", .msg = std::to_string(p), .exclusive = true, .priority = p})
            .value_or_throw();
    }
    cluster.start("a", {.threads = 1})
        .bus->listen("job", [&](const Message& m) { order.push_back(*m.msg); })
        .value_or_throw();
    cluster.pass(1s);
    EXPECT_EQ(order, (std::vector<std::string>{"5", "500", "1000"}));
}

// Field report "Take rate and backlog": the next batch is fetched when the last one is nearly
// through, not at the next fallback.
TEST(Exclusive, LargeBacklogIsWorkedOffWithoutWaitingForTheFallbackPoll) {
    SimCluster cluster(11);
    auto& sender = cluster.start("sender");
    for (int round = 0; round < 8; ++round) {
        std::vector<Message> jobs(1000);
        for (auto& job : jobs) {
            job.topic = "job";
            job.exclusive = true;
            job.priority = round % 3;
        }
        sender.bus->publish(std::move(jobs)).value_or_throw();
    }
    std::map<std::string, int> handled;
    for (const char* id : {"a", "b"}) {
        cluster.start(id, {.fallback_poll = 300s})
            .bus->listen("job", [&](const Message& m) { ++handled[m.id.to_hex()]; })
            .value_or_throw();
    }
    cluster.pass(2s);
    EXPECT_EQ(handled.size(), 8000u);
    for (const auto& [id, times] : handled) EXPECT_EQ(times, 1) << id;
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

// Batching: all steps take lists.
TEST(Exclusive, FiveHundredWaitingMessagesCostFewerThanThirtyStoreCalls) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    std::vector<Message> jobs(500);
    for (auto& job : jobs) {
        job.topic = "job";
        job.exclusive = true;
    }
    sender.bus->publish(std::move(jobs)).value_or_throw();
    int handled = 0;
    auto& a = cluster.start("a");
    cluster.pass(1s);
    cluster.server.reset_call_counts();
    a.bus->listen("job", [&](const Message&) { ++handled; }).value_or_throw();
    cluster.pass(300ms);
    EXPECT_EQ(handled, 500);
    EXPECT_LT(cluster.server.calls_total(), 30);
    EXPECT_EQ(cluster.count("msg") + cluster.count("msg_lck"), 0u);
}

}  // namespace
}  // namespace angelia::messaging::testing
