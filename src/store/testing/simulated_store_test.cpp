// The faults that simulations ask for. What a store must do without faults is tests/contract.
#include "store/testing/simulated_store.h"

#include <angelia/base/manual_executor.h>
#include <angelia/bson/json.h>

#include <gtest/gtest.h>

namespace angelia::store::testing {
namespace {

using namespace std::chrono_literals;

bson::Document doc(std::string_view json) { return bson::from_json(json).value_or_throw(); }

/// A server with two clients; everything a watch says becomes one line.
struct Scene {
    ManualClock clock;
    ManualExecutor lane{clock};
    SimulatedServer server{lane, clock};
    std::shared_ptr<SimulatedStore> one = server.connect("one");
    std::shared_ptr<SimulatedStore> two = server.connect("two");
    Store writer{one, "db"};
    Store reader{two, "db"};
    CollectionName c = writer.collection("c");
    std::string seen;

    std::unique_ptr<Watch> watch(std::optional<bson::Document> resume_after = std::nullopt) {
        WatchRequest request;
        request.collection = c;
        request.resume_after = std::move(resume_after);
        WatchEvents events;
        events.on_batch = [this](std::vector<bson::Document> batch, const bson::Document& t) {
            for (const auto& e : batch)
                seen += " " + bson::to_json(e.view().find_path("documentKey._id"));
            token = t.copy();
        };
        events.on_started = [this](bool gap) { seen += gap ? " gap" : " on"; };
        events.on_error = [this](const Error& e, bool fatal) {
            seen += " " + error_code_name(e.code) + (fatal ? "!" : "");
        };
        return reader.watch(std::move(request), std::move(events)).value_or_throw();
    }
    void put(int id) {
        EXPECT_TRUE(writer.insert(c, bson::make("_id", static_cast<std::int32_t>(id))));
    }
    bson::Document token;
};

TEST(SimulatedStore, EventsComeAsTasksNotDuringTheWrite) {
    Scene s;
    const auto w = s.watch();
    s.put(1);
    EXPECT_EQ(s.seen, "");
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " gap 1");
}

TEST(SimulatedStore, EventDelayHoldsEventsBack) {
    Scene s;
    s.server.set_event_delay(20ms);
    const auto w = s.watch();
    s.put(1);
    s.lane.advance(19ms);
    EXPECT_EQ(s.seen, " gap");
    s.lane.advance(1ms);
    EXPECT_EQ(s.seen, " gap 1");
}

TEST(SimulatedStore, LostStreamWithDroppedEventsStartsAgainWithAGap) {
    Scene s;
    const auto w = s.watch();
    s.put(1);
    s.lane.run_ready();
    s.two->lose_streams({ErrorCode::HostUnreachable, "cut"});
    s.lane.run_ready();
    EXPECT_FALSE(w->live());
    s.put(2);
    s.two->restore_streams(true);
    s.put(3);
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " gap 1 HostUnreachable gap 3");
    EXPECT_TRUE(w->live());
}

TEST(SimulatedStore, LostStreamWithATokenCatchesUp) {
    Scene s;
    const auto w = s.watch();
    s.lane.run_ready();
    s.two->lose_streams({ErrorCode::HostUnreachable, "cut"});
    s.put(1);
    s.lane.run_ready();
    s.two->restore_streams(false);
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " gap HostUnreachable on 1");
}

TEST(SimulatedStore, EventsOnTheirWayAreLostWithTheStream) {
    Scene s;
    const auto w = s.watch();
    s.lane.run_ready();
    s.put(1);
    s.two->lose_streams({ErrorCode::NetworkTimeout, "cut"});
    s.two->restore_streams(true);
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " gap NetworkTimeout gap");
}

TEST(SimulatedStore, ForgottenHistoryIsAGap) {
    Scene s;
    auto w = s.watch();
    s.put(1);
    s.lane.run_ready();
    w.reset();
    s.put(2);
    s.server.forget_history();
    s.put(3);
    s.seen.clear();
    const auto again = s.watch(s.token.copy());
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " ChangeStreamHistoryLost gap");
}

TEST(SimulatedStore, HeartbeatKeepsAnIdleStreamAlive) {
    Scene s;
    const auto w = s.watch();
    s.lane.advance(60s);
    EXPECT_TRUE(w->live());
    s.put(1);
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " gap 1");
}

TEST(SimulatedStore, WithoutChangeStreamsAWatchFailsFatally) {
    Scene s;
    s.server.set_change_streams(false);
    const auto w = s.watch();
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " Location40573!");
    EXPECT_FALSE(s.reader.capabilities().value_or_throw().change_streams);
}

TEST(SimulatedStore, PlannedFailuresHappenBeforeOrAfterTheEffect) {
    Scene s;
    s.one->fail_next(1, {ErrorCode::HostUnreachable, "request lost"});
    EXPECT_FALSE(s.writer.insert(s.c, doc(R"({"_id": 1})")));
    s.one->fail_next(1, {ErrorCode::NetworkTimeout, "reply lost"}, true);
    EXPECT_FALSE(s.writer.insert(s.c, doc(R"({"_id": 2})")));
    EXPECT_EQ(s.reader.count(s.c, doc(R"({"_id": 1})")).value_or_throw(), 0);
    EXPECT_EQ(s.reader.count(s.c, doc(R"({"_id": 2})")).value_or_throw(), 1);
}

TEST(SimulatedStore, FaultHookSeesTheCallAndMayTurnTheClock) {
    Scene s;
    std::string calls;
    s.one->set_fault_before([&](const SimulatedCall& call) -> std::optional<Error> {
        calls += std::string(call.client) + ":" + std::string(call.verb) + ":" +
                 std::string(call.collection) + " ";
        s.clock.advance(5ms);
        return std::nullopt;
    });
    const auto before = s.clock.steady_now();
    s.put(1);
    EXPECT_EQ(calls, "one:insert:db.c ");
    EXPECT_EQ(s.clock.steady_now() - before, 5ms);
}

TEST(SimulatedStore, CrashedClientIsSilentAndItsWritesStay) {
    Scene s;
    const auto w = s.watch();
    s.lane.run_ready();
    ASSERT_TRUE(s.reader.insert(s.c, doc(R"({"_id": 1})")));
    s.two->crash();
    s.put(2);
    s.lane.run_ready();
    EXPECT_EQ(s.seen, " gap");
    EXPECT_EQ(s.reader.count(s.c, {}).error().code, ErrorCode::HostUnreachable);
    EXPECT_EQ(s.writer.count(s.c, {}).value_or_throw(), 2);
    EXPECT_FALSE(w->live());
}

TEST(SimulatedStore, TtlFollowsTheServersClock) {
    Scene s;
    IndexDefinition ttl;
    ttl.name = "delete_at_1";
    ttl.key = doc(R"({"delete_at": 1})");
    ttl.expire_after_seconds = 0;
    std::vector<IndexDefinition> indexes;
    indexes.push_back(std::move(ttl));
    ASSERT_TRUE(s.writer.ensure_indexes(s.c, std::move(indexes)));
    ASSERT_TRUE(s.writer.insert(s.c, bson::make("_id", std::int32_t{1}, "delete_at",
                                                bson::Date{s.clock.system_millis() + 1000})));
    EXPECT_EQ(s.server.run_ttl_pass(), 0);
    s.clock.advance(1s);
    EXPECT_EQ(s.server.run_ttl_pass(), 1);
    s.server.set_clock_offset(-5s);
    EXPECT_EQ(s.reader.server_time().value_or_throw().now.millis, s.clock.system_millis() - 5000);
}

TEST(SimulatedStore, CountsCalls) {
    Scene s;
    s.put(1);
    s.put(2);
    EXPECT_EQ(s.reader.count(s.c, {}).value_or_throw(), 2);
    EXPECT_EQ(s.server.call_counts(),
              (std::map<std::string, std::int64_t>{{"count", 1}, {"insert", 2}}));
    EXPECT_EQ(s.server.calls_total(), 3);
}

}  // namespace
}  // namespace angelia::store::testing
