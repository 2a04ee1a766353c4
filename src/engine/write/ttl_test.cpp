// Documents whose time is over, by a clock that tests turn.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <thread>

namespace angelia::engine {
namespace {

using namespace testing_support;
using Texts = std::vector<std::string>;
const Namespace kLeases{"test", "leases"};

struct TtlFixture {
    ManualClock clock;
    TestEngine engine{options()};
    EngineOptions options() {
        auto o = memory_options();
        o.storage.clock = &clock;
        return o;
    }
    void ttl_index(std::int64_t seconds, std::string_view key = R"({"until": 1})",
                   std::string_view partial = "{}") {
        auto spec = index_spec("ttl", key);
        spec.expire_after_seconds = seconds;
        spec.partial_filter = doc(partial);
        engine.create_index(kLeases, std::move(spec)).value_or_throw();
    }
    bson::Date in(std::int64_t seconds) { return {clock.system_millis() + seconds * 1000}; }
    void add(std::int32_t id, bson::Date until) {
        engine.insert(kLeases, bson::make("_id", id, "until", until));
    }
    Texts ids() { return engine.find(kLeases, "{}", R"({"_id": 1})", R"({"_id": 1})"); }
    std::int64_t pass() { return engine->run_ttl_pass().value_or_throw(); }
};

TEST(Ttl, DeletesWhatIsOverAndNothingElse) {
    TtlFixture t;
    t.ttl_index(10);
    t.add(1, t.in(0));
    t.add(2, t.in(5));
    t.engine.insert(kLeases, R"({"_id": 3, "until": 5})");
    t.engine.insert(kLeases, R"({"_id": 4})");
    EXPECT_EQ(t.pass(), 0);
    t.clock.advance(std::chrono::seconds(10));
    EXPECT_EQ(t.pass(), 1);
    t.clock.advance(std::chrono::seconds(5));
    EXPECT_EQ(t.pass(), 1);
    EXPECT_EQ(t.ids(), (Texts{R"({"_id":3})", R"({"_id":4})"}));
    EXPECT_EQ(t.engine.oplog_kinds(), "cciiiidd");
    EXPECT_EQ(t.engine.validate(kLeases), "valid");
}

TEST(Ttl, TakesTheEarliestDateOfAnArray) {
    TtlFixture t;
    t.ttl_index(0);
    t.engine.insert(
        kLeases, bson::make("_id", std::int32_t{1}, "until", bson::array(t.in(100), t.in(1), "x")));
    EXPECT_EQ(t.pass(), 0);
    t.clock.advance(std::chrono::seconds(1));
    EXPECT_EQ(t.pass(), 1);
}

TEST(Ttl, WorksOnADescendingIndex) {
    TtlFixture t;
    t.ttl_index(0, R"({"until": -1})");
    t.add(1, t.in(-1));
    t.add(2, t.in(0));
    t.add(3, t.in(1));
    EXPECT_EQ(t.pass(), 2);
    EXPECT_EQ(t.ids(), (Texts{R"({"_id":3})"}));
}

TEST(Ttl, HonoursAPartialFilter) {
    TtlFixture t;
    t.ttl_index(0, R"({"until": 1})", R"({"done": true})");
    t.engine.insert(kLeases, bson::make("_id", std::int32_t{1}, "until", t.in(-5), "done", true));
    t.engine.insert(kLeases, bson::make("_id", std::int32_t{2}, "until", t.in(-5), "done", false));
    EXPECT_EQ(t.pass(), 1);
    EXPECT_EQ(t.ids(), (Texts{R"({"_id":2})"}));
}

TEST(Ttl, DeletesNothingEarlyWhenTheClockJumpsBack) {
    TtlFixture t;
    t.ttl_index(0);
    t.add(1, t.in(10));
    t.clock.jump_system(-std::chrono::seconds(3600));
    t.clock.advance(std::chrono::seconds(11));
    EXPECT_EQ(t.pass(), 0);
}

TEST(Ttl, WorksInBatches) {
    TtlFixture t;
    t.ttl_index(0);
    WriteRequest request;
    for (int i = 0; i < 1700; ++i)
        request.writes.push_back(
            insert_write(kLeases, bson::make("_id", std::int32_t{i}, "until", t.in(-1))));
    t.engine.write(std::move(request)).value_or_throw();
    const auto commits = t.engine->storage().statistics().commits;
    EXPECT_EQ(t.pass(), 1700);
    EXPECT_GE(t.engine->storage().statistics().commits - commits, 4u);
    EXPECT_EQ(t.engine.count(kLeases), 0);
}

TEST(Ttl, AnExtendedLeaseWins) {
    TtlFixture t;
    t.ttl_index(0);
    constexpr int kLeaseCount = 400;
    for (int i = 0; i < kLeaseCount; ++i) t.add(i, t.in(-1));
    // Extensions and passes race; whoever was told that its extension took effect keeps its lease.
    std::vector<std::int32_t> extended;
    std::thread extender([&] {
        const auto later = bson::to_json(bson::make("$set", bson::make("until", t.in(1000))),
                                         bson::JsonMode::Canonical);
        for (std::int32_t i = 0; i < kLeaseCount; ++i)
            if (t.engine.update(kLeases, text(bson::make("_id", i)), later).modified == 1)
                extended.push_back(i);
    });
    std::int64_t deleted = 0;
    for (int i = 0; i < 20; ++i) deleted += t.pass();
    extender.join();
    deleted += t.pass();
    EXPECT_EQ(deleted + static_cast<std::int64_t>(extended.size()), kLeaseCount);
    Texts expected;
    for (auto i : extended) expected.push_back(text(bson::make("_id", i)));
    EXPECT_EQ(t.ids(), expected);
    EXPECT_EQ(t.engine.validate(kLeases), "valid");
}

TEST(Ttl, RunsByItself) {
    auto options = memory_options();
    options.ttl_interval = milliseconds(1);
    TestEngine engine(std::move(options));
    auto spec = index_spec("ttl", R"({"until": 1})");
    spec.expire_after_seconds = 0;
    engine.create_index(kLeases, std::move(spec)).value_or_throw();
    engine.insert(kLeases, bson::make("_id", std::int32_t{1}, "until", bson::Date{0}));
    const auto deleted = [&] {
        const auto status = engine->status();
        return *status.view()["ttl"].as_document()["deletedDocuments"].to_int64();
    };
    while (deleted() == 0) std::this_thread::yield();
    EXPECT_EQ(engine.count(kLeases), 0);
    EXPECT_EQ(engine.oplog_kinds().back(), 'd');
}

}  // namespace
}  // namespace angelia::engine
