#include <angelia/base/threads.h>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace angelia {
namespace {

using std::chrono::seconds;

/// Keeps one thread of an executor busy until opened.
class Gate {
  public:
    Executor::Task holder() {
        return [this] {
            entered_.count_down();
            open_.wait();
        };
    }
    void wait_entered() { entered_.wait(); }
    void open() { open_.count_down(); }

  private:
    std::latch entered_{1};
    std::latch open_{1};
};

TEST(SerialExecutor, RunsTasksInOrderOnOneThread) {
    SerialExecutor lane;
    ASSERT_TRUE(lane.start());
    std::vector<int> seen;
    std::promise<void> done;
    bool own_thread = false;
    for (int i = 0; i < 1000; ++i) lane.post([&seen, i] { seen.push_back(i); });
    lane.post([&] {
        own_thread = lane.on_own_thread();
        done.set_value();
    });
    done.get_future().wait();
    std::vector<int> expected(1000);
    for (int i = 0; i < 1000; ++i) expected[static_cast<std::size_t>(i)] = i;
    EXPECT_EQ(seen, expected);
    EXPECT_TRUE(own_thread);
    EXPECT_FALSE(lane.on_own_thread());
}

TEST(SerialExecutor, StartsNoThreadBeforeStart) {
    SerialExecutor lane;
    std::promise<void> ran;
    lane.post([&] { ran.set_value(); });
    EXPECT_EQ(lane.tasks_waiting(), 1U);
    ASSERT_TRUE(lane.start());
    ran.get_future().wait();
}

TEST(SerialExecutor, LosesNothingWithManyPosters) {
    SerialExecutor lane;
    ASSERT_TRUE(lane.start());
    int count = 0;  // touched by the lane only
    {
        std::vector<std::jthread> posters;
        for (int t = 0; t < 4; ++t) {
            posters.emplace_back([&] {
                for (int i = 0; i < 5000; ++i) lane.post([&count] { ++count; });
            });
        }
    }
    lane.stop(StopMode::Drain);
    EXPECT_EQ(count, 20'000);
}

TEST(SerialExecutor, FiresTimersInOrderOfDeadline) {
    SerialExecutor lane;
    ASSERT_TRUE(lane.start());
    std::string order;
    std::promise<void> done;
    lane.post([&] {  // from the lane itself, so that none fires before all are set
        lane.post_after(milliseconds(30), [&] {
            order += 'c';
            done.set_value();
        });
        lane.post_after(milliseconds(20), [&] { order += 'b'; });
        lane.post_after(milliseconds(10), [&] { order += 'a'; });
    });
    done.get_future().wait();
    EXPECT_EQ(order, "abc");
}

TEST(SerialExecutor, AnEarlierTimerCutsALongSleepShort) {
    SerialExecutor lane;
    ASSERT_TRUE(lane.start());
    std::promise<void> fired;
    lane.post_after(seconds(3600), [] {});
    std::promise<void> asleep;
    lane.post([&] { asleep.set_value(); });
    asleep.get_future().wait();
    lane.post_after(milliseconds(1), [&] { fired.set_value(); });
    EXPECT_EQ(fired.get_future().wait_for(seconds(60)), std::future_status::ready);
}

TEST(SerialExecutor, CancelTellsWhetherTheTimerWillRun) {
    SerialExecutor lane;
    ASSERT_TRUE(lane.start());
    bool ran = false;
    std::promise<std::pair<bool, bool>> answers;
    lane.post([&] {
        const auto due = lane.post_after(microseconds(0), [&] { ran = true; });
        const bool first = lane.cancel(due);
        answers.set_value({first, lane.cancel(due)});
    });
    EXPECT_EQ(answers.get_future().get(), std::pair(true, false));
    lane.stop(StopMode::Drain);
    EXPECT_FALSE(ran);
}

TEST(SerialExecutor, TimersDoNotStarvePosts) {
    SerialExecutor lane;
    ASSERT_TRUE(lane.start());
    std::promise<void> posted_ran;
    std::function<void()> again = [&] { lane.post_after(microseconds(0), again); };
    lane.post([&] {
        again();
        lane.post([&] { posted_ran.set_value(); });
    });
    EXPECT_EQ(posted_ran.get_future().wait_for(seconds(60)), std::future_status::ready);
    lane.stop(StopMode::Drop);
}

TEST(SerialExecutor, DrainRunsWhatWaitsAndDropDoesNot) {
    for (const auto& [mode, expected] :
         {std::pair(StopMode::Drain, 3), std::pair(StopMode::Drop, 0)}) {
        SerialExecutor lane;
        ASSERT_TRUE(lane.start());
        Gate gate;
        std::atomic<int> ran{0};
        const auto token = std::make_shared<int>(0);
        lane.post(gate.holder());
        gate.wait_entered();
        for (int i = 0; i < 3; ++i) lane.post([&ran, token] { ++ran; });
        lane.post_after(seconds(3600), [&ran, token] { ran += 100; });
        std::jthread stopper([&lane, mode = mode] { lane.stop(mode); });
        for (
            Executor::Task probe = [] {}; lane.try_post(probe); probe = [] {})
            std::this_thread::yield();  // until stop() has begun
        gate.open();
        stopper.join();
        EXPECT_EQ(ran, expected);
        EXPECT_EQ(token.use_count(), 1) << "dropped tasks are destroyed";
    }
}

TEST(SerialExecutor, RefusesWorkAfterStop) {
    SerialExecutor lane;
    ASSERT_TRUE(lane.start());
    lane.stop(StopMode::Drain);
    lane.stop(StopMode::Drop);
    const auto token = std::make_shared<int>(0);
    lane.post([token] {});
    lane.post_after(microseconds(1), [token] {});
    Executor::Task task = [token] {};
    EXPECT_FALSE(lane.try_post(task));
    EXPECT_TRUE(task) << "left with the caller";
    EXPECT_EQ(token.use_count(), 2);
    EXPECT_EQ(lane.start().error().code, ErrorCode::ShutdownInProgress);
}

TEST(SerialExecutor, BoundRefusesOrWaits) {
    SerialExecutor lane({.name = "bounded", .tasks_max = 2});
    ASSERT_TRUE(lane.start());
    Gate gate;
    lane.post(gate.holder());
    gate.wait_entered();
    lane.post([] {});
    lane.post([] {});
    Executor::Task third = [] {};
    EXPECT_FALSE(lane.try_post(third));
    std::promise<void> posted;
    std::jthread poster([&] {
        lane.post([] {});
        posted.set_value();
    });
    gate.open();
    EXPECT_EQ(posted.get_future().wait_for(seconds(60)), std::future_status::ready);
    lane.stop(StopMode::Drain);
}

TEST(SerialExecutor, MayPassItsOwnBoundInsteadOfWaitingForItself) {
    SerialExecutor lane({.name = "bounded", .tasks_max = 1});
    ASSERT_TRUE(lane.start());
    std::promise<void> done;
    lane.post([&] {
        lane.post([] {});
        lane.post([] {});
        lane.post([&] { done.set_value(); });
    });
    EXPECT_EQ(done.get_future().wait_for(seconds(60)), std::future_status::ready);
}

TEST(SerialExecutorDeathTest, StoppingFromATaskOfItsOwnAborts) {
    EXPECT_DEATH(
        {
            SerialExecutor lane;
            lane.start().value();
            lane.post([&] { lane.stop(StopMode::Drain); });
            lane.stop(StopMode::Drain);
        },
        "broken promise");
}

TEST(ThreadPool, RunsSideBySideUpToItsLimit) {
    ThreadPool pool({.name = "pool", .threads_max = 3});
    ASSERT_TRUE(pool.start());
    std::latch all_inside(3);
    std::atomic<int> ran{0};
    for (int i = 0; i < 3; ++i) {
        pool.post([&] {
            all_inside.arrive_and_wait();  // only three threads at once get past this
            ++ran;
        });
    }
    all_inside.wait();
    EXPECT_EQ(pool.thread_count(), 3U);
    for (int i = 0; i < 100; ++i) pool.post([&] { ++ran; });
    pool.stop(StopMode::Drain);
    EXPECT_EQ(ran, 103);
}

TEST(ThreadPool, IdleThreadsLeaveButOne) {
    ThreadPool pool({.name = "pool", .threads_max = 4, .idle_time = milliseconds(1)});
    ASSERT_TRUE(pool.start());
    std::latch all_inside(4);
    for (int i = 0; i < 4; ++i) pool.post([&] { all_inside.arrive_and_wait(); });
    all_inside.wait();
    while (pool.thread_count() > 1) std::this_thread::yield();
    std::promise<void> alive;
    pool.post([&] { alive.set_value(); });
    EXPECT_EQ(alive.get_future().wait_for(seconds(60)), std::future_status::ready);
}

TEST(ThreadPool, ATimerFiresWhileOthersAreBusy) {
    ThreadPool pool({.name = "pool", .threads_max = 2});
    ASSERT_TRUE(pool.start());
    Gate gate;
    pool.post(gate.holder());
    gate.wait_entered();
    std::promise<void> fired;
    pool.post_after(milliseconds(1), [&] { fired.set_value(); });
    EXPECT_EQ(fired.get_future().wait_for(seconds(60)), std::future_status::ready);
    gate.open();
}

TEST(ThreadPool, TheWatchOverTimersIsHandedOn) {
    ThreadPool pool({.name = "pool", .threads_max = 2, .idle_time = milliseconds(1)});
    ASSERT_TRUE(pool.start());
    Gate gate;
    std::promise<void> fired;
    // The thread that watches the timers gets stuck in the first one; the second must fire all the
    // same.
    pool.post_after(milliseconds(1), gate.holder());
    pool.post_after(milliseconds(20), [&] { fired.set_value(); });
    EXPECT_EQ(fired.get_future().wait_for(seconds(60)), std::future_status::ready);
    gate.open();
}

TEST(ThreadPool, SurvivesPostersTimersAndCancelsAtOnce) {
    ThreadPool pool({.name = "pool", .threads_max = 3, .idle_time = milliseconds(0)});
    ASSERT_TRUE(pool.start());
    std::atomic<int> ran{0};
    std::atomic<int> cancelled{0};
    {
        std::vector<std::jthread> posters;
        for (int t = 0; t < 3; ++t) {
            posters.emplace_back([&] {
                for (int i = 0; i < 2000; ++i) {
                    pool.post([&] { ++ran; });
                    const auto timer = pool.post_after(microseconds(i % 50), [&] { ++ran; });
                    cancelled += pool.cancel(timer);
                }
            });
        }
    }
    while (ran + cancelled < 12'000) std::this_thread::yield();
    pool.stop(StopMode::Drain);
    EXPECT_EQ(ran + cancelled, 12'000);
}

}  // namespace
}  // namespace angelia
