// Pure rules, table by table.
#include "delivery/decide.h"
#include "delivery/id_memory.h"
#include "delivery/retry.h"
#include "delivery/server_time.h"

#include <angelia/bson/json.h>

#include <gtest/gtest.h>

namespace angelia::delivery {
namespace {

using namespace std::chrono_literals;

bson::Document json(std::string_view text) { return bson::from_json(text).value_or_throw(); }

Envelope decoded(std::string_view text) {
    const auto document = json(text);
    return decode(document).value_or_throw();
}

std::string decode_error(std::string_view text) {
    const auto document = json(text);
    const auto result = decode(document);
    return result ? "accepted" : result.error().message;
}

Message completed(Message m, SendDefaults defaults = {}) {
    if (defaults.sender.empty()) defaults.sender = "me";
    defaults.sender_host = "host";
    if (defaults.now_millis == 0) defaults.now_millis = 1'787'300'000'123;
    complete(m, defaults).value_or_throw();
    return m;
}

TEST(Envelope, BroadcastIsStoredByteForByteAsOthersExpect) {
    Message m{.topic = "user.created", .msg = "created", .value = "4711"};
    m.id = *bson::ObjectId::from_hex("6a8f00c1e4b0a1b2c3000001");
    m = completed(std::move(m));
    EXPECT_EQ(
        bson::to_json(encode(m), bson::JsonMode::Canonical),
        R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"class_name":"de.caluga.morphium.messaging.Msg","sender":"me","sender_host":"host",)"
        R"("topic":"user.created","name":"user.created","msg":"created","value":"4711","additional":null,"map_value":null,"recipients":null,)"
        R"("in_answer_to":null,"processed_by":[],"timestamp":{"$numberLong":"1787300000123"},"ttl":{"$numberLong":"30000"},)"
        R"("delete_at":{"$date":{"$numberLong":"1787300030123"}},"timing_out":true,"delete_after_processing":false,)"
        R"("delete_after_processing_time":{"$numberInt":"0"},"priority":{"$numberInt":"1000"},"exclusive":false})");
}

TEST(Envelope, ExclusiveJobDoesNotTimeOutAndIsDeletedAfterSuccess) {
    const auto document = encode(completed({.topic = "invoice.run", .exclusive = true}));
    EXPECT_EQ(bson::to_json(document["timing_out"]), "false");
    EXPECT_EQ(bson::to_json(document["delete_at"]), "null");
    EXPECT_EQ(document["ttl"].as_int64(), 0);
    EXPECT_TRUE(document["delete_after_processing"].as_bool());
}

TEST(Envelope, ExclusiveTimesOutWhenATtlIsGivenOrUnderMorphiumsRules) {
    EXPECT_TRUE(*completed({.topic = "t", .exclusive = true, .ttl = 5s}).timing_out);
    const auto m = completed({.topic = "t", .exclusive = true},
                             {.exclusive_times_out = true, .exclusive_is_deleted = false});
    EXPECT_EQ(m.ttl, 30s);
    EXPECT_FALSE(*m.delete_after_processing);
}

TEST(Envelope, EncodedMessageReadsBack) {
    Message m{.topic = "t",
              .map_value = bson::make("jvm.heap.used", std::int64_t{7}),
              .additional = bson::array("a", std::int32_t{1})};
    m.recipients = {"a", "b"};
    m.priority = 5;
    m.in_answer_to = bson::ObjectId::generate();
    m = completed(std::move(m));
    const auto document = encode(m);
    const auto back = decode(document).value_or_throw();
    EXPECT_EQ(bson::to_json(encode(back.message)), bson::to_json(document));
    EXPECT_TRUE(back.addressed);
    EXPECT_FALSE(back.marks_are_null);
}

// S26: absolute deadlines are derived once, after all defaulting.
TEST(Envelope, AnswerWithoutTtlLivesForTheDefaultTtl) {
    Message request = completed({.topic = "t", .priority = 500});
    const auto a = completed(answer_to(request));
    EXPECT_EQ(a.delete_at->millis - a.timestamp, 30'000);
    EXPECT_EQ(a.priority, 490);
    EXPECT_EQ(a.in_answer_to, request.id);
    EXPECT_EQ(a.recipients, std::vector<std::string>{"me"});
}

// S21: one decoder, tolerant of numeric types.
TEST(Envelope, AcceptsEveryNumericWidth) {
    const auto e = decoded(
        R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"topic":"t","sender":"s","priority":{"$numberLong":"7"},
        "timestamp":1787300000123.0,"ttl":{"$numberInt":"5"}})");
    EXPECT_EQ(e.message.priority, 7);
    EXPECT_EQ(e.message.timestamp, 1'787'300'000'123);
    EXPECT_EQ(e.message.ttl, 5ms);
    EXPECT_EQ(
        decoded(
            R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"topic":"t","sender":"s","timestamp":{"$date":{"$numberLong":"9"}}})")
            .message.timestamp,
        9);
}

TEST(Envelope, MissingFieldsReadAsDocumentedDefaults) {
    const auto e = decoded(
        R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"topic":"t","sender":"py-1","msg":"hi","timestamp":1787300000123.0})");
    EXPECT_FALSE(e.message.exclusive);
    EXPECT_FALSE(*e.message.timing_out);  // no end of life, so it has none
    EXPECT_FALSE(*e.message.delete_after_processing);
    EXPECT_EQ(e.message.priority, 1000);
    EXPECT_TRUE(e.marks_are_null);
    EXPECT_FALSE(e.addressed);
}

// S28: a document with only the old name of the topic.
TEST(Envelope, NameStandsInForTopic) {
    EXPECT_EQ(decoded(R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"name":"t","sender":"s"})")
                  .message.topic,
              "t");
    EXPECT_EQ(
        decoded(
            R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"name":"old","topic":"new","sender":"s"})")
            .message.topic,
        "new");
    EXPECT_EQ(
        decoded(
            R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"name":"old","topic":null,"sender":"s"})")
            .message.topic,
        "old");
}

TEST(Envelope, EmptyRecipientsAreAddressedToNobody) {
    const auto e = decoded(
        R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"topic":"t","sender":"s","recipients":[]})");
    EXPECT_TRUE(e.addressed);
    EXPECT_FALSE(e.addressed_to("me"));
}

TEST(Envelope, NamesWhatIsIndispensableOrUnreadable) {
    const std::string id = R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},)";
    EXPECT_EQ(decode_error(R"({"topic":"t","sender":"s"})"), "_id is missing");
    EXPECT_EQ(decode_error(R"({"_id":1,"topic":"t","sender":"s"})"), "_id is not an ObjectId");
    EXPECT_EQ(decode_error(id + R"("sender":"s"})"), "topic and name are missing");
    EXPECT_EQ(decode_error(id + R"("topic":"t"})"), "sender is missing");
    EXPECT_EQ(decode_error(id + R"("topic":"t","sender":"s","priority":"high"})"),
              "priority is not a number");
    EXPECT_EQ(decode_error(id + R"("topic":"t","sender":"s","processed_by":"a"})"),
              "processed_by is not an array");
    EXPECT_EQ(decode_error(id + R"("topic":"t","sender":"s","recipients":[1]})"),
              "recipients is not a list of strings");
    EXPECT_EQ(decode_error(id + R"("topic":"t","sender":"s","map_value":[]})"),
              "map_value is not a document");
}

struct TopicCase {
    std::string topic;
    std::string error;
};
class TopicRule : public ::testing::TestWithParam<TopicCase> {};
TEST_P(TopicRule, SaysWhatIsWrongAndWhatIsAllowed) {
    const auto result = check_topic(GetParam().topic);
    EXPECT_EQ(result ? "" : result.error().message, GetParam().error);
}
INSTANTIATE_TEST_SUITE_P(
    All, TopicRule,
    ::testing::Values(
        TopicCase{"a", ""}, TopicCase{"user.created/now-\xC3\xA4", ""},
        TopicCase{std::string(255, 'x'), ""},
        TopicCase{"", "topic is empty; allowed are 1 to 255 bytes"},
        TopicCase{std::string(256, 'x'), "topic has 256 bytes; allowed are 1 to 255"},
        TopicCase{"a\nb",
                  "topic has a control character at byte 1; allowed is UTF-8 text without them"},
        TopicCase{"ab\x7F",
                  "topic has a control character at byte 2; allowed is UTF-8 text without them"},
        TopicCase{"a\xC2\x85",
                  "topic has a control character at byte 1; allowed is UTF-8 text without them"},
        TopicCase{"\xFF", "topic is not UTF-8"}));

TEST(Complete, RefusesWhatMakesNoSense) {
    const auto error_of = [](Message m) {
        const auto result = complete(m, {.sender = "me"});
        return result ? std::string("accepted") : result.error().message;
    };
    EXPECT_EQ(error_of({.topic = "t", .ttl = 0ms}),
              "ttl is 0 ms; allowed are 1 ms to 10 years, or none");
    EXPECT_EQ(error_of({.topic = "t", .ttl = 5s, .timing_out = false}),
              "ttl is given and timing_out is false; give one of them");
    EXPECT_EQ(error_of({.topic = "t", .msg = "\xFF"}), "msg is not UTF-8");
    EXPECT_EQ(error_of({.topic = "t", .recipients = {""}}),
              "sender id is empty; allowed are 1 to 255 bytes");
}

// -- decide: every row one sight of a message
struct DecideCase {
    const char* name;
    const char* document;  // joined to a base document
    NodeState state;
    Decision expected;
};
NodeState listening(NodeState s = {}) {
    s.self = "me";
    s.now_millis = 1000;
    s.listening = true;
    return s;
}
NodeState with(NodeState s, bool NodeState::*flag) {
    s.*flag = true;
    return s;
}
NodeState without(NodeState s, bool NodeState::*flag) {
    s.*flag = false;
    return s;
}
Decision skip(SkipReason reason) { return {Action::Skip, reason}; }
constexpr Decision kHandle{Action::Handle, SkipReason::None};
constexpr Decision kClaim{Action::Claim, SkipReason::None};
constexpr Decision kAnswer{Action::Answer, SkipReason::None};

class Decide : public ::testing::TestWithParam<DecideCase> {};
TEST_P(Decide, OneSight) {
    const auto& c = GetParam();
    const auto e =
        decoded(R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"topic":"t","sender":"other")" +
                std::string(c.document) + "}");
    const auto d = decide(e, c.state);
    EXPECT_EQ(d, c.expected) << c.name << ": " << skip_reason_name(d.reason);
}
#define ANSWER_TO R"(,"in_answer_to":{"$oid":"6a8f00c1e4b0a1b2c3000002"})"
INSTANTIATE_TEST_SUITE_P(
    All, Decide,
    ::testing::Values(
        DecideCase{"broadcast", "", listening(), kHandle},
        DecideCase{"exclusive", R"(,"exclusive":true)", listening(), kClaim},
        DecideCase{"in progress", "", with(listening(), &NodeState::in_progress),
                   skip(SkipReason::InProgress)},
        DecideCase{"no listener", "", without(listening(), &NodeState::listening),
                   skip(SkipReason::NoListener)},
        DecideCase{"paused", "", with(listening(), &NodeState::paused), skip(SkipReason::Paused)},
        DecideCase{"seen", "", with(listening(), &NodeState::seen), skip(SkipReason::Duplicate)},
        DecideCase{"marked by us", R"(,"processed_by":["me"])", listening(),
                   skip(SkipReason::MarkedByUs)},
        DecideCase{"marked by another", R"(,"processed_by":["x"])", listening(), kHandle},
        DecideCase{"exclusive and marked", R"(,"exclusive":true,"processed_by":["x"])", listening(),
                   skip(SkipReason::Done)},
        DecideCase{"for us", R"(,"recipients":["me"])", listening(), kHandle},
        DecideCase{"for others", R"(,"recipients":["x"])", listening(),
                   skip(SkipReason::NotAddressed)},
        DecideCase{"for nobody", R"(,"recipients":[])", listening(),
                   skip(SkipReason::NotAddressed)},
        DecideCase{"expired", R"(,"timing_out":true,"delete_at":{"$date":{"$numberLong":"1000"}})",
                   listening(), skip(SkipReason::Expired)},
        DecideCase{"alive", R"(,"timing_out":true,"delete_at":{"$date":{"$numberLong":"1001"}})",
                   listening(), kHandle},
        DecideCase{"old timestamp alone", R"(,"timestamp":1,"ttl":5,"timing_out":true)",
                   listening(), kHandle},
        DecideCase{"old timestamp under Morphium's rule",
                   R"(,"timestamp":1,"ttl":5,"timing_out":true)",
                   with(listening(), &NodeState::age_by_timestamp), skip(SkipReason::Expired)},
        DecideCase{"leased", R"(,"exclusive":true,"leased_until":{"$date":{"$numberLong":"1001"}})",
                   listening(), skip(SkipReason::Leased)},
        DecideCase{"lease over",
                   R"(,"exclusive":true,"leased_until":{"$date":{"$numberLong":"1000"}})",
                   listening(), kClaim},
        DecideCase{"awaited answer", ANSWER_TO,
                   with(without(listening(), &NodeState::listening), &NodeState::waited_for),
                   kAnswer},
        DecideCase{"awaited answer, paused topic", ANSWER_TO,
                   with(with(listening(), &NodeState::paused), &NodeState::waited_for), kAnswer},
        DecideCase{"awaited answer, marked", ANSWER_TO R"(,"processed_by":["me"])",
                   with(listening(), &NodeState::waited_for), skip(SkipReason::MarkedByUs)},
        DecideCase{"late answer", ANSWER_TO, with(listening(), &NodeState::asked_before),
                   skip(SkipReason::LateAnswer)},
        DecideCase{"answer to a request that was only published", ANSWER_TO, listening(),
                   kHandle}));

TEST(Decide, SkipsOwnMessagesButNotThoseToSelf) {
    auto e = decoded(R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"topic":"t","sender":"me"})");
    EXPECT_EQ(decide(e, listening()), skip(SkipReason::OwnMessage));
    e = decoded(
        R"({"_id":{"$oid":"6a8f00c1e4b0a1b2c3000001"},"topic":"t","sender":"self","recipients":["me"]})");
    EXPECT_EQ(decide(e, listening()), kHandle);
}

TEST(Retry, DoublesFromOneSecondToOneMinute) {
    std::vector<std::int64_t> seconds;
    for (std::int32_t attempt : {0, 1, 2, 3, 6, 7, 8, 1'000'000})
        seconds.push_back(retry_delay(attempt).count() / 1000);
    EXPECT_EQ(seconds, (std::vector<std::int64_t>{1, 1, 2, 4, 32, 60, 60, 60}));
}

TEST(Rank, PriorityThenAgeThenArrival) {
    EXPECT_LT((Rank{1, 9, 9}), (Rank{2, 1, 1}));
    EXPECT_LT((Rank{1, 1, 9}), (Rank{1, 2, 1}));
    EXPECT_LT((Rank{1, 1, 1}), (Rank{1, 1, 2}));
}

TEST(IdMemory, ForgetsTheOldestBeyondItsSize) {
    IdMemory memory(2, 1h);
    const bson::ObjectId a{{1}}, b{{2}}, c{{3}};
    EXPECT_TRUE(memory.insert(a, SteadyTime{}));
    EXPECT_FALSE(memory.insert(a, SteadyTime{}));
    memory.insert(b, SteadyTime{});
    memory.insert(c, SteadyTime{});
    EXPECT_FALSE(memory.contains(a));
    EXPECT_TRUE(memory.contains(b) && memory.contains(c));
}

TEST(IdMemory, ForgetsByAgeButNotWhatCameAgain) {
    IdMemory memory(10, 1min);
    const bson::ObjectId a{{1}};
    memory.insert(a, SteadyTime{});
    memory.erase(a);
    memory.insert(a, SteadyTime{50s});
    memory.trim(SteadyTime{70s});
    EXPECT_TRUE(memory.contains(a));
    memory.trim(SteadyTime{120s});
    EXPECT_FALSE(memory.contains(a));
}

TEST(ServerTimeEstimate, FollowsTheMonotonicClockFromTheReply) {
    ServerTimeEstimate estimate;
    EXPECT_EQ(estimate.at(SteadyTime{5s}, 42), 42);
    estimate.add(1'000'000, 20ms, SteadyTime{10s});
    EXPECT_EQ(estimate.at(SteadyTime{11s}, 42), 1'001'010);
}

TEST(ServerTimeEstimate, KeepsTheSharperSampleUntilItHasAged) {
    ServerTimeEstimate estimate;
    estimate.add(1'000'000, 2ms, SteadyTime{0s});
    estimate.add(5'000'000, 2s, SteadyTime{1s});
    EXPECT_EQ(estimate.at(SteadyTime{1s}, 0), 1'001'001);
    estimate.add(9'000'000, 2ms, SteadyTime{1s});
    EXPECT_EQ(estimate.at(SteadyTime{1s}, 0), 9'000'001);
}

}  // namespace
}  // namespace angelia::delivery
