// Messaging as applications run it: real threads, embedded engine in memory, blocking calls.
#include <angelia/messaging/messaging.h>
#include <angelia/store/open.h>

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace angelia::messaging {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kPatience = 20s;  // only ever reached by a failing test

store::Store memory_store() {
    static std::atomic<int> number{0};
    return store::open_store("embedded::memory:?name=threads" + std::to_string(++number))
        .value_or_throw();
}

/// Waits for something that other threads bring about.
class Signal {
  public:
    void notify() {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++count_;
        changed_.notify_all();
    }
    bool wait_for_count(std::size_t count) {
        std::unique_lock<std::mutex> lock(mutex_);
        return changed_.wait_for(lock, kPatience, [&] { return count_ >= count; });
    }
    std::size_t count() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return count_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t count_ = 0;
};

std::unique_ptr<Messaging> started(const store::Store& store, Options options = {}) {
    auto bus = std::make_unique<Messaging>(store, std::move(options));
    bus->start().value_or_throw();
    return bus;
}

void make_ready(Messaging& bus) {
    if (!bus.wait_ready(kPatience)) throw std::runtime_error("not ready");
}

TEST(MessagingThreads, ExampleOfTheReadme) {
    const auto store = memory_store();
    angelia::Messaging bus{store, {.queue = "msg", .layout = angelia::Layout::Standard}};
    ASSERT_TRUE(bus.listen("user.lookup", [](const angelia::Message& request) -> angelia::Reply {
        return angelia::answer("ok").with("userId", request.value);
    }));
    ASSERT_TRUE(bus.start());
    angelia::Messaging client{store};
    ASSERT_TRUE(client.start());
    const auto reply = client.request({.topic = "user.lookup", .value = "4711"}, 5s);
    ASSERT_TRUE(reply) << reply.error().to_string();
    EXPECT_EQ(reply->msg, "ok");
    EXPECT_EQ((*reply->map_value)["userId"].as_string(), "4711");
}

TEST(MessagingThreads, PublishersThatMeetEachLearnTheirOwnOutcome) {
    const auto store = memory_store();
    auto bus = started(store);
    Message taken{.topic = "crowd"};
    taken.id = bson::ObjectId::generate();
    const auto id = taken.id;
    bus->publish(std::move(taken)).value_or_throw();
    constexpr int kThreads = 8, kRounds = 100;
    std::atomic<int> stored{0}, refused{0};
    std::vector<std::thread> crew;
    for (int t = 0; t < kThreads; ++t) {
        crew.emplace_back([&] {
            for (int i = 0; i < kRounds; ++i) {
                stored += bus->publish({.topic = "crowd"}) ? 1 : 0;
                Message again{.topic = "crowd"};
                again.id = id;
                const auto twice = bus->publish(std::move(again));
                refused += !twice && twice.error().code == ErrorCode::DuplicateKey ? 1 : 0;
            }
        });
    }
    for (auto& thread : crew) thread.join();
    EXPECT_EQ(stored, kThreads * kRounds);
    EXPECT_EQ(refused, kThreads * kRounds);
    EXPECT_EQ(store::Store(store)
                  .count({store.database(), bus->collection_name()}, bson::make("topic", "crowd"))
                  .value_or_throw(),
              kThreads * kRounds + 1);
}

TEST(MessagingThreads, NestedRequestsWorkWithOneWorkerEach) {
    const auto store = memory_store();
    auto client = started(store), a = started(store, {.threads = 1}),
         b = started(store, {.threads = 1});
    a->listen("outer", [&](const Message&) -> Reply {
         auto inner = a->request({.topic = "inner"}, kPatience);
         return inner ? answer("outer of " + *inner->msg) : reject(inner.error().message);
     }).value_or_throw();
    b->listen("inner", [&](const Message&) -> Reply {
         auto innermost = b->request({.topic = "innermost"}, kPatience);
         return innermost ? answer("inner of " + *innermost->msg)
                          : reject(innermost.error().message);
     }).value_or_throw();
    client->listen("innermost", [](const Message&) -> Reply { return answer("innermost"); })
        .value_or_throw();
    for (auto* bus : {client.get(), a.get(), b.get()}) make_ready(*bus);
    const auto reply = client->request({.topic = "outer", .exclusive = true}, kPatience);
    ASSERT_TRUE(reply) << reply.error().to_string();
    EXPECT_EQ(reply->msg, "outer of inner of innermost");
}

TEST(MessagingThreads, RequestAllHearsEveryResponder) {
    const auto store = memory_store();
    auto client = started(store);
    std::vector<std::unique_ptr<Messaging>> responders;
    for (int i = 0; i < 3; ++i) {
        responders.push_back(started(store));
        responders.back()
            ->listen("who", [i](const Message&) -> Reply { return answer(std::to_string(i)); })
            .value_or_throw();
        make_ready(*responders.back());
    }
    const auto replies = client->request_all({.topic = "who"}, 3, kPatience).value_or_throw();
    std::set<std::string> names;
    for (const auto& reply : replies) names.insert(*reply.msg);
    EXPECT_EQ(names, (std::set<std::string>{"0", "1", "2"}));
}

TEST(MessagingThreads, NoAnswerInTimeIsAClearError) {
    auto bus = started(memory_store());
    const auto reply = bus->request({.topic = "nobody"}, 30ms);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::ExceededTimeLimit);
    EXPECT_EQ(reply.error().message, "no answer on topic \"nobody\" within 30 ms");
}

TEST(MessagingThreads, StopWakesBlockedCallersWithAClearError) {
    auto bus = started(memory_store());
    make_ready(*bus);
    auto request = std::async(std::launch::async,
                              [&] { return bus->request({.topic = "nobody"}, kPatience); });
    auto receive =
        std::async(std::launch::async, [&] { return bus->receive("nothing", 1, kPatience); });
    while (bus->status().waiting_for_answers == 0) std::this_thread::yield();
    const auto before = steady_clock::now();
    bus->stop().value_or_throw();
    EXPECT_EQ(request.get().error().code, ErrorCode::ShutdownInProgress);
    EXPECT_EQ(receive.get().error().code, ErrorCode::ShutdownInProgress);
    EXPECT_LT(steady_clock::now() - before, kPatience / 2);
}

TEST(MessagingThreads, StopLetsRunningHandlersFinishAndSettlesThem) {
    const auto store = memory_store();
    auto sender = started(store), worker = started(store);
    Signal begun, go;
    std::atomic<bool> finished{false};
    worker
        ->listen("job",
                 [&](const Message&) {
                     begun.notify();
                     go.wait_for_count(1);
                     finished = true;
                 })
        .value_or_throw();
    make_ready(*worker);
    sender->publish({.topic = "job", .exclusive = true}).value_or_throw();
    ASSERT_TRUE(begun.wait_for_count(1));
    auto stopping = std::async(std::launch::async, [&] { return worker->stop(kPatience); });
    while (worker->status().running) std::this_thread::yield();
    go.notify();
    ASSERT_TRUE(stopping.get());
    EXPECT_TRUE(finished);
    EXPECT_EQ(store::Store(store).count(store.collection("msg"), bson::Document()).value_or_throw(),
              0);
    EXPECT_EQ(
        store::Store(store).count(store.collection("msg_lck"), bson::Document()).value_or_throw(),
        0);
}

TEST(MessagingThreads, StopReportsAHandlerThatDoesNotEnd) {
    const auto store = memory_store();
    auto sender = started(store), worker = started(store);
    Signal begun, go, ended;
    worker
        ->listen("job",
                 [&](const Message&) {
                     begun.notify();
                     go.wait_for_count(1);
                     ended.notify();
                 })
        .value_or_throw();
    make_ready(*worker);
    sender->publish({.topic = "job", .exclusive = true}).value_or_throw();
    ASSERT_TRUE(begun.wait_for_count(1));
    const auto stopped = worker->stop(50ms);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::ExceededTimeLimit);
    worker.reset();
    go.notify();
    EXPECT_TRUE(ended.wait_for_count(1));
}

TEST(MessagingThreads, BurstOnFourNodesIsHandledOnceEach) {
    const auto store = memory_store();
    auto sender = started(store);
    std::mutex mutex;
    std::map<std::string, int> handled;
    Signal done;
    std::vector<std::unique_ptr<Messaging>> workers;
    for (int i = 0; i < 4; ++i) {
        workers.push_back(started(store, {.threads = 4}));
        workers.back()
            ->listen("job",
                     [&](const Message& m) {
                         const std::lock_guard<std::mutex> lock(mutex);
                         if (++handled[m.id.to_hex()] == 1) done.notify();
                     })
            .value_or_throw();
        make_ready(*workers.back());
    }
    std::vector<Message> bulk(500);
    for (auto& m : bulk) {
        m.topic = "job";
        m.exclusive = true;
    }
    sender->publish(std::move(bulk)).value_or_throw();
    for (int i = 0; i < 500; ++i)
        sender->publish({.topic = "job", .exclusive = true}).value_or_throw();
    ASSERT_TRUE(done.wait_for_count(1000));
    for (auto& worker : workers) worker->stop().value_or_throw();
    for (const auto& [id, times] : handled) EXPECT_EQ(times, 1) << id;
    EXPECT_EQ(store::Store(store).count(store.collection("msg"), bson::Document()).value_or_throw(),
              0);
    EXPECT_EQ(
        store::Store(store).count(store.collection("msg_lck"), bson::Document()).value_or_throw(),
        0);
}

TEST(MessagingThreads, BroadcastBurstReachesEveryListenerOnce) {
    const auto store = memory_store();
    auto sender = started(store);
    std::vector<std::unique_ptr<Messaging>> nodes;
    std::mutex mutex;
    std::map<std::string, int> heard;
    Signal done;
    for (int i = 0; i < 3; ++i) {
        nodes.push_back(started(store));
        nodes.back()
            ->listen("news",
                     [&, i](const Message& m) {
                         const std::lock_guard<std::mutex> lock(mutex);
                         if (++heard[m.id.to_hex() + std::to_string(i)] == 1) done.notify();
                     })
            .value_or_throw();
        make_ready(*nodes.back());
    }
    for (int round = 0; round < 10; ++round) {
        std::vector<Message> bulk(300);
        for (auto& m : bulk) m.topic = "news";
        sender->publish(std::move(bulk)).value_or_throw();
    }
    ASSERT_TRUE(done.wait_for_count(9000));
    for (auto& node : nodes) node->stop().value_or_throw();
    for (const auto& [key, times] : heard) EXPECT_EQ(times, 1) << key;
}

TEST(MessagingThreads, PullWaitsForTheFirstMessage) {
    const auto store = memory_store();
    auto sender = started(store), worker = started(store);
    make_ready(*worker);
    auto pulled =
        std::async(std::launch::async, [&] { return worker->receive("job", 10, kPatience); });
    sender->publish({.topic = "job", .msg = "x", .exclusive = true}).value_or_throw();
    const auto messages = pulled.get().value_or_throw();
    ASSERT_EQ(messages.size(), 1u);
    worker->acknowledge(messages[0]).value_or_throw();
    EXPECT_EQ(store::Store(store).count(store.collection("msg"), bson::Document()).value_or_throw(),
              0);
}

// S29: registrations race with the start and with one another.
TEST(MessagingThreads, ConcurrentRegistrationsAreAllThere) {
    Messaging bus{memory_store()};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 60; ++i)
                bus.listen("topic-" + std::to_string(t * 60 + i), [](const Message&) {})
                    .value_or_throw();
        });
    }
    bus.start().value_or_throw();
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(bus.status().listeners.size(), 481u);
}

TEST(MessagingThreads, NodesMayBeStoppedWhileMessagesFlow) {
    const auto store = memory_store();
    auto sender = started(store);
    std::atomic<bool> going{true};
    std::thread publisher([&] {
        while (going) sender->publish({.topic = "job", .exclusive = true}).value_or_throw();
    });
    for (int i = 0; i < 10; ++i) {
        auto worker = started(store, {.threads = 3});
        Signal some;
        worker->listen("job", [&](const Message&) { some.notify(); }).value_or_throw();
        EXPECT_TRUE(some.wait_for_count(20));
        EXPECT_TRUE(worker->stop());
    }
    going = false;
    publisher.join();
    EXPECT_EQ(
        store::Store(store).count(store.collection("msg_lck"), bson::Document()).value_or_throw(),
        0);
}

}  // namespace
}  // namespace angelia::messaging
