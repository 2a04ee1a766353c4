// The node over a simulated store: what applications see.
#include "messaging/testing/sim_cluster.h"

#include <gtest/gtest.h>

namespace angelia::messaging::testing {
namespace {

using namespace std::chrono_literals;

TEST(Messaging, BroadcastReachesEveryListenerOnceAndIsMarked) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    int a = 0, b = 0, own = 0;
    auto& node_a = cluster.start("a");
    auto& node_b = cluster.start("b");
    ASSERT_TRUE(
        node_a.bus->listen("user.created", [&](const Message& m) { a += m.msg == "created"; }));
    ASSERT_TRUE(
        node_b.bus->listen("user.created", [&](const Message& m) { b += m.value == "4711"; }));
    ASSERT_TRUE(sender.bus->listen("user.created", [&](const Message&) { ++own; }));
    cluster.pass(1s);
    ASSERT_TRUE(sender.bus->publish({.topic = "user.created", .msg = "created", .value = "4711"}));
    cluster.settle();
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 1);
    EXPECT_EQ(own, 0);
    cluster.pass(12s);  // a fallback poll changes nothing
    EXPECT_EQ(a + b, 2);
    const auto stored = cluster.documents("msg");
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(stored[0]["processed_by"].get_array()->count(), 2u);
}

TEST(Messaging, MarksWaitAMomentAndAnswersDoNot) {
    SimCluster cluster;
    auto& sender = cluster.start("sender", {.settle_delay = 5ms});
    auto& node = cluster.start("a", {.settle_delay = 20ms});
    ASSERT_TRUE(node.bus->listen("ask", [](const Message&) { return answer("ok"); }));
    cluster.pass(1s);
    int answers = 0;
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(sender.bus->request_async({.topic = "ask", .exclusive = true}, 5s,
                                              [&](const Message&) { ++answers; }, {}));
    }
    cluster.settle();
    EXPECT_EQ(answers, 3);
    EXPECT_EQ(cluster.documents("msg", bson::make("topic", "ask", "leased_by", "a")).size(), 3u);
    EXPECT_EQ(cluster.count("msg_lck"), 3u);
    cluster.pass(20ms);
    EXPECT_EQ(cluster.documents("msg", bson::make("leased_by", "a")).size(), 0u);
    EXPECT_EQ(cluster.documents("msg", bson::make("processed_by", "sender")).size(), 3u);
    EXPECT_EQ(cluster.count("msg_lck"), 0u);
    EXPECT_EQ(counter(node, "stale_outcomes"), 0);
}

TEST(Messaging, ExclusiveMessageIsHandledByOneNodeAndLeavesNothing) {
    SimCluster cluster;
    auto& sender = cluster.start("sender");
    int handled = 0;
    std::int32_t attempt = 0;
    for (const char* id : {"a", "b", "c"}) {
        auto& node = cluster.start(id);
        ASSERT_TRUE(node.bus->listen("invoice.run", [&](const Message& m) {
            ++handled;
            attempt = m.attempt;
        }));
    }
    cluster.pass(1s);
    ASSERT_TRUE(sender.bus->publish({.topic = "invoice.run", .exclusive = true}));
    cluster.settle();
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(attempt, 1);
    EXPECT_EQ(cluster.count("msg"), 0u);
    EXPECT_EQ(cluster.count("msg_lck"), 0u);
}

TEST(Messaging, RequestGetsItsAnswer) {
    SimCluster cluster;
    auto& client = cluster.start("client");
    auto& server = cluster.start("server");
    ASSERT_TRUE(server.bus->listen("user.lookup", [](const Message& m) -> Reply {
        return answer("ok").with("userId", m.value);
    }));
    cluster.pass(1s);
    std::vector<std::string> answers;
    int timeouts = 0;
    ASSERT_TRUE(client.bus->request_async(
        {.topic = "user.lookup", .value = "4711"}, 5s,
        [&](const Message& m) { answers.push_back(*m.msg + " " + bson::to_json(*m.map_value)); },
        [&] { ++timeouts; }));
    cluster.settle();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0], R"(ok {"userId":"4711"})");
    cluster.pass(6s);
    EXPECT_EQ(timeouts, 1);  // of a broadcast request: the end of waiting
    const auto stored =
        cluster.documents("msg", bson::make("in_answer_to", bson::make("$ne", bson::Null{})));
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(bson::to_json(stored[0]["processed_by"]), R"(["client"])");
    EXPECT_EQ(stored[0]["priority"].as_int32(), 990);
}

}  // namespace
}  // namespace angelia::messaging::testing
