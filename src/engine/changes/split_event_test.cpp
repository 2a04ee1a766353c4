// Events over 16 MiB: refused, or split with $changeStreamSplitLargeEvent.
#include "engine/changes/split_event.h"

#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

namespace angelia::engine::changes {
namespace {

using test::hex_of;
using test::kNoLimit;
using test::poll;
using test::text_of;
using test::token_of;
using test::World;

constexpr std::string_view kSplit = R"([{"$changeStreamSplitLargeEvent": {}}])";
constexpr std::string_view kImages =
    R"({"fullDocument": "required", "fullDocumentBeforeChange": "required"})";
const ResumeToken kToken = ResumeToken::event({1000, 1}, 0, test::kTestStore);

/// Field names of a fragment and its place, such as "1/2: a b".
std::string shape_of(bson::DocumentView fragment) {
    std::string text = bson::to_json(fragment.find_path("splitEvent.fragment")) + "/" +
                       bson::to_json(fragment.find_path("splitEvent.of")) + ":";
    for (const bson::Element& e : fragment)
        if (e.key != "_id" && e.key != "splitEvent") text += " " + std::string(e.key);
    return text;
}

std::string shapes_of(const std::vector<bson::Document>& fragments) {
    std::string text;
    for (const auto& fragment : fragments)
        text += (text.empty() ? "" : ", ") + shape_of(fragment.view());
    return text;
}

/// An update whose images are 9 MiB each: too much for one document, enough for two.
void large_update(World& world, std::int32_t id) {
    const std::string text(std::size_t{9} << 20, 'x');
    world.feed.before = bson::make("_id", id, "text", text);
    world.feed.after = bson::make("_id", id, "text", text, "a", true);
    world.feed.update("d.c", id, bson::make("a", true));
    world.feed.before = {};
    world.feed.after = {};
}

bson::Document options_from(std::string_view name, const bson::Document& token) {
    return bson::make("fullDocument", "required", "fullDocumentBeforeChange", "required", name,
                      token);
}

TEST(SplitEvent, PutsSmallFieldsFirstAndLosesNone) {
    const auto event =
        bson::make("_id", kToken.to_document(), "big", std::string(600, 'b'), "small", true,
                   "large", std::string(700, 'l'), "tiny", bson::Null{});
    const auto fragments = split_event(event.view(), kToken, 1024).value_or_throw();
    EXPECT_EQ(shapes_of(fragments), "1/2: tiny small big, 2/2: large");
    EXPECT_LE(fragments[0].size_bytes(), 1024u);
    EXPECT_EQ(fragments[1]["large"].as_string().size(), 700u);
    EXPECT_LT(kToken.to_hex(), hex_of(token_of(fragments[0].view())));
    EXPECT_LT(hex_of(token_of(fragments[0].view())), hex_of(token_of(fragments[1].view())));
}

TEST(SplitEvent, RefusesAFieldThatFitsNowhere) {
    const auto event = bson::make("_id", kToken.to_document(), "big", std::string(1000, 'b'));
    EXPECT_EQ(split_event(event.view(), kToken, 1024).error().code, ErrorCode::BSONObjectTooLarge);
}

TEST(SplitEvent, IsForLargeEventsOnly) {
    World world;
    const auto stream = world.watch("d.c", kImages, kSplit);
    world.feed.insert("d.c", 1);
    large_update(world, 1);
    world.feed.insert("d.c", 2);
    const auto first = poll(*stream);
    ASSERT_EQ(first.events.size(), 4u);
    EXPECT_FALSE(first.events[0].has("splitEvent"));
    EXPECT_EQ(shape_of(first.events[1].view()),
              "1/2: wallTime clusterTime operationType documentKey ns updateDescription "
              "fullDocument");
    EXPECT_EQ(shape_of(first.events[2].view()), "2/2: fullDocumentBeforeChange");
    EXPECT_FALSE(first.events[3].has("splitEvent"));
    EXPECT_EQ(text_of(*stream), "");
}

TEST(SplitEvent, WithoutTheStageEndsTheStream) {
    World world;
    const auto stream = world.watch("d.c", kImages);
    large_update(world, 1);
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(stream->poll(kNoLimit, kNoLimit).error().code, ErrorCode::BSONObjectTooLarge);
}

TEST(SplitEvent, MayBeResumedBetweenItsFragments) {
    World world;
    const auto stream = world.watch("d.c", kImages, kSplit);
    large_update(world, 1);
    world.feed.insert("d.c", 2);
    const auto first = poll(*stream, 1);  // a batch ends inside the event
    ASSERT_EQ(first.events.size(), 1u);
    EXPECT_EQ(first.resume_token.bytes(), token_of(first.events[0].view()).bytes());
    const auto resume = bson::to_json(options_from("resumeAfter", first.resume_token));
    const auto resumed = poll(*world.watch("d.c", resume, kSplit));
    ASSERT_EQ(resumed.events.size(), 2u);
    EXPECT_EQ(shape_of(resumed.events[0].view()), "2/2: fullDocumentBeforeChange");
    EXPECT_EQ(test::line_of(resumed.events[1].view()), "insert d.c 2");
    const auto rest = poll(*stream);
    EXPECT_EQ(hex_of(token_of(rest.events.at(0).view())),
              hex_of(token_of(resumed.events[0].view())));
    const auto behind = bson::to_json(options_from("startAfter", token_of(rest.events[0].view())));
    EXPECT_EQ(text_of(*world.watch("d.c", behind, kSplit)), "insert d.c 2");
}

TEST(SplitEvent, StandsInItsGroup) {
    World world;
    const auto stream = world.watch("d.c", kImages, kSplit);
    world.feed.durable = false;
    world.feed.insert("d.c", 1);
    world.feed.same_commit = true;
    world.feed.write(OpKind::Command, "d.other", {}, bson::make("create", "other"));
    large_update(world, 1);
    world.feed.insert("d.c", 2);
    world.oplog.advance();
    EXPECT_EQ(poll(*stream, 1).events.size(), 1u);
    const auto inside = poll(*stream, 1);
    EXPECT_EQ(inside.resume_token.bytes(), token_of(inside.events.at(0).view()).bytes());
    const auto rest = poll(*stream);
    ASSERT_EQ(rest.events.size(), 2u);
    EXPECT_EQ(bson::to_json(rest.events[0]["splitEvent"]), R"({"fragment":2,"of":2})");
    EXPECT_EQ(test::line_of(rest.events[1].view()), "insert d.c 2");
    const auto resume = bson::to_json(options_from("resumeAfter", inside.resume_token));
    const auto again = poll(*world.watch("d.c", resume, kSplit));
    ASSERT_EQ(again.events.size(), 2u);
    EXPECT_TRUE(again.events[0].view().identical(rest.events[0]));
    EXPECT_TRUE(again.events[1].view().identical(rest.events[1]));
}

TEST(SplitEvent, InTheMiddleNeedsTheSameSplit) {
    World world;
    const auto stream = world.watch("d.c", kImages, kSplit);
    large_update(world, 1);
    const auto token = poll(*stream, 1).resume_token;
    const auto without_stage =
        world.try_watch("d.c", bson::to_json(options_from("resumeAfter", token)));
    ASSERT_FALSE(without_stage.has_value());
    EXPECT_EQ(without_stage.error().code, ErrorCode::ChangeStreamFatalError);
    EXPECT_TRUE(without_stage.error().has_label("NonResumableChangeStreamError"));
    // Without the images the event is small.
    const auto whole = world.watch_from("d.c", "resumeAfter", token, kSplit);
    EXPECT_EQ(whole->poll(kNoLimit, kNoLimit).error().code, ErrorCode::ChangeStreamFatalError);
}

TEST(SplitEvent, StageStandsLastAndEmpty) {
    World world;
    EXPECT_EQ(world.refusal_code("d.c", "{}",
                                 R"([{"$changeStreamSplitLargeEvent": {}}, {"$match": {}}])"),
              ErrorCode::Location7182802);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$changeStreamSplitLargeEvent": {"a": 1}}])"),
              ErrorCode::Location7182800);
    EXPECT_EQ(world.refusal_code("d.c", "{}", R"([{"$changeStreamSplitLargeEvent": true}])"),
              ErrorCode::Location7182800);
    EXPECT_EQ(world.refusal_code("d.c", "{}",
                                 R"([{"$match": {}}, {"$changeStreamSplitLargeEvent": {}}])"),
              ErrorCode::Ok);
}

}  // namespace
}  // namespace angelia::engine::changes
