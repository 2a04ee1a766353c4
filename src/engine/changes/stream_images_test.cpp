// fullDocument and fullDocumentBeforeChange over entries with and without images.
#include "engine/changes/testing/fake_oplog.h"

#include <gtest/gtest.h>

namespace angelia::engine::changes {
namespace {

using test::kNoLimit;
using test::poll;
using test::text_of;
using test::World;

/// Update, replace and delete of one document, with what collections that keep images add.
void change_with_images(World& world) {
    world.feed.before = bson::make("_id", std::int32_t{1}, "a", "old");
    world.feed.after = bson::make("_id", std::int32_t{1}, "a", "new");
    world.feed.update("d.c", 1, bson::make("a", "new"));
    world.feed.after = {};
    world.feed.replace("d.c", 1, bson::make("b", true));
    world.feed.remove("d.c", 1);
    world.feed.before = {};
}

std::string images_of(const ChangeStream::Batch& batch) {
    std::string text;
    for (const auto& event : batch.events) {
        for (const char* field : {"fullDocument", "fullDocumentBeforeChange"}) {
            const auto image = event[field];
            text += image.is_missing() ? "-" : image.is_null() ? "null" : bson::to_json(image);
            text += " ";
        }
    }
    return text;
}

struct ImageCase {
    const char* options;
    const char* with_images;
    const char* without;  ///< of an update alone
};

class ImageModes : public ::testing::TestWithParam<ImageCase> {};

TEST_P(ImageModes, ShowWhatIsKept) {
    World world;
    const auto stream = world.watch("d.c", GetParam().options);
    change_with_images(world);
    EXPECT_EQ(images_of(poll(*stream)), GetParam().with_images);
}

TEST_P(ImageModes, SayWhatIsNotKept) {
    World world;
    const auto stream = world.watch("d.c", GetParam().options);
    world.feed.update("d.c", 1, bson::make("a", "new"));
    const auto batch = stream->poll(kNoLimit, kNoLimit);
    EXPECT_EQ(batch ? images_of(*batch) : batch.error().to_string(), GetParam().without);
}

#define ANGELIA_OLD R"({"_id":1,"a":"old"})"
#define ANGELIA_NEW R"({"_id":1,"a":"new"})"
#define ANGELIA_REPLACED R"({"_id":1,"b":true})"

INSTANTIATE_TEST_SUITE_P(
    All, ImageModes,
    ::testing::Values(
        ImageCase{"{}", "- - " ANGELIA_REPLACED " - - - ", "- - "},
        ImageCase{R"({"fullDocument": "whenAvailable"})",
                  ANGELIA_NEW " - " ANGELIA_REPLACED " - - - ", "null - "},
        ImageCase{R"({"fullDocument": "required"})", ANGELIA_NEW " - " ANGELIA_REPLACED " - - - ",
                  "NoMatchingDocument (47): Change stream was configured to require a post-image "
                  "for all update events, but the post-image was not found for event: "
                  "{operationType: update, ns: d.c}"},
        ImageCase{R"({"fullDocumentBeforeChange": "whenAvailable"})",
                  "- " ANGELIA_OLD " " ANGELIA_REPLACED " " ANGELIA_OLD " - " ANGELIA_OLD " ",
                  "- null "},
        ImageCase{R"({"fullDocumentBeforeChange": "required"})",
                  "- " ANGELIA_OLD " " ANGELIA_REPLACED " " ANGELIA_OLD " - " ANGELIA_OLD " ",
                  "NoMatchingDocument (47): Change stream was configured to require a pre-image "
                  "for all update, delete and replace events, but the pre-image was not found for "
                  "event: {operationType: update, ns: d.c}"},
        ImageCase{R"({"fullDocument": "required", "fullDocumentBeforeChange": "required"})",
                  ANGELIA_NEW " " ANGELIA_OLD " " ANGELIA_REPLACED " " ANGELIA_OLD " - " ANGELIA_OLD
                              " ",
                  "NoMatchingDocument (47): Change stream was configured to require a pre-image "
                  "for all update, delete and replace events, but the pre-image was not found for "
                  "event: {operationType: update, ns: d.c}"}));

TEST(Images, AreRequiredOnlyOfWhatTheFilterLeaves) {
    World world;
    const auto by_key = world.watch("d.c", R"({"fullDocumentBeforeChange": "required"})",
                                    R"([{"$match": {"documentKey._id": 2}}])");
    const auto by_image = world.watch("d.c", R"({"fullDocumentBeforeChange": "required"})",
                                      R"([{"$match": {"fullDocumentBeforeChange.a": "old"}}])");
    world.feed.update("d.c", 1, bson::make("a", "new"));  // no image is kept
    EXPECT_EQ(text_of(*by_key), "");
    EXPECT_EQ(by_image->poll(kNoLimit, kNoLimit).error().code, ErrorCode::NoMatchingDocument);
}

TEST(Images, MayBeFiltered) {
    World world;
    const auto stream = world.watch("d.c", R"({"fullDocument": "whenAvailable"})",
                                    R"([{"$match": {"fullDocument.a": "new"}}])");
    change_with_images(world);
    world.feed.insert("d.c", 2, bson::make("a", "new"));
    EXPECT_EQ(text_of(*stream), "update d.c 1, insert d.c 2");
}

TEST(Images, AFailureIsRepeated) {
    World world;
    const auto stream = world.watch("d.c", R"({"fullDocument": "required"})");
    world.feed.insert("d.c", 1);
    world.feed.update("d.c", 1, bson::make("a", "new"));
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
    for (int i = 0; i < 2; ++i) {
        const auto batch = stream->poll(kNoLimit, kNoLimit);
        ASSERT_FALSE(batch.has_value());
        EXPECT_EQ(batch.error().code, ErrorCode::NoMatchingDocument);
        EXPECT_TRUE(batch.error().labels.empty());
    }
}

}  // namespace
}  // namespace angelia::engine::changes
