// Time, capabilities and the end of a store.
#include "store_under_test.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace angelia::store::contract {
namespace {

TEST_P(StoreContract, ServerTimeIsNearOurs) {
    const auto time = store_.server_time();
    ASSERT_TRUE(time) << time.error().to_string();
    EXPECT_LT(std::abs(time->now.millis - real_clock().system_millis()), 60'000);
    EXPECT_GE(time->round_trip.count(), 0);
    EXPECT_LT(time->round_trip, 5s);
}

TEST_P(StoreContract, CapabilitiesAreWhatTheSuiteUses) {
    const auto c = store_.capabilities();
    ASSERT_TRUE(c) << c.error().to_string();
    EXPECT_TRUE(c->change_streams);
    EXPECT_TRUE(c->batch_tokens);
    EXPECT_TRUE(c->fills_timestamps);
    EXPECT_TRUE(c->ttl_indexes);
    EXPECT_FALSE(c->topology.empty());
    EXPECT_FALSE(c->server_version.empty());
}

TEST_P(StoreContract, DiagnosticsMeasureWriteLatency) {
    const auto diagnostics = store_.diagnostics();
    ASSERT_NE(diagnostics, nullptr);
    const auto scratch = collection("scratch");
    const auto latency = diagnostics->write_latency(scratch, 3);
    ASSERT_TRUE(latency) << latency.error().to_string();
    EXPECT_GE(latency->count(), 0);
    EXPECT_EQ(store_.count(scratch, {}).value_or_throw(), 0)
        << "what was written for the measurement is gone";
    const auto hours = diagnostics->log_window_hours();
    ASSERT_TRUE(hours) << hours.error().to_string();
    EXPECT_GE(*hours, 0.0);
}

TEST_P(StoreContract, DescriptionSaysWhereItIs) { EXPECT_FALSE(store_.describe().empty()); }

TEST_P(StoreContract, VerbsAfterCloseAreRefused) {
    const auto c = collection();
    ASSERT_TRUE(store_.close());
    ASSERT_TRUE(store_.close()) << "closing twice is fine";
    const auto inserted = store_.insert(c, json(R"({"_id": 1})"));
    ASSERT_FALSE(inserted);
    EXPECT_EQ(inserted.error().code, ErrorCode::ShutdownInProgress) << inserted.error().to_string();
    const auto found = store_.find({c, {}, {}, {}, 0, 0});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::ShutdownInProgress) << found.error().to_string();
    WatchLog log;
    WatchRequest request;
    request.collection = c;
    const auto watched = store_.watch(std::move(request), log.events());
    ASSERT_FALSE(watched);
    EXPECT_EQ(watched.error().code, ErrorCode::ShutdownInProgress) << watched.error().to_string();
}

TEST_P(StoreContract, CloseEndsWatchesAndBusyCallers) {
    const auto c = collection();
    WatchLog log;
    WatchRequest request;
    request.max_wait = 30s;
    const auto w = watch(log, c, std::move(request));
    std::atomic<int> started{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (bool open = true; open;) {
                const auto done = store_.insert(c, bson::make("x", std::int32_t{1}));
                ++started;
                open = done.has_value();
                if (!open && done.error().code != ErrorCode::ShutdownInProgress) {
                    ADD_FAILURE() << done.error().to_string();
                    ++wrong;
                }
            }
        });
    }
    ASSERT_TRUE(log.wait_events(20));
    const auto before = std::chrono::steady_clock::now();
    EXPECT_TRUE(store_.close());
    for (auto& t : threads) t.join();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
    EXPECT_EQ(wrong, 0);
    EXPECT_FALSE(w->live());
}

}  // namespace
}  // namespace angelia::store::contract
