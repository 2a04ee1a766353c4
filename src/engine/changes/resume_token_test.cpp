#include "engine/changes/resume_token.h"

#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace angelia::engine::changes {
namespace {

constexpr StoreId kTokenStore = {0xA0, 1, 2, 3, 4, 5, 6, 0xFF};

ResumeToken parsed(const std::string& hex) {
    return ResumeToken::parse(bson::make("_data", hex)).value_or_throw();
}

std::string refusal(const bson::Document& token) {
    const auto result = ResumeToken::parse(token.view());
    return result ? "accepted" : result.error().to_string();
}

std::string with_byte(std::string hex, std::size_t byte, const std::string& digits) {
    return hex.replace(byte * 2, 2, digits);
}

TEST(ResumeToken, HasTheDocumentedBytes) {
    EXPECT_EQ(ResumeToken::event({0x65000001, 7}, 3, kTokenStore).to_hex(),
              "01"
              "65000001"
              "00000007"
              "80"
              "00000003"
              "00"
              "0000"
              "A0010203040506FF");
    EXPECT_EQ(ResumeToken::high_water({1, 2}, kTokenStore).to_hex(),
              "01"
              "00000001"
              "00000002"
              "00"
              "00000000"
              "00"
              "0000"
              "A0010203040506FF");
    EXPECT_EQ(ResumeToken::invalidate({1, 2}, 0, kTokenStore).to_hex(),
              "01"
              "00000001"
              "00000002"
              "80"
              "00000000"
              "01"
              "0000"
              "A0010203040506FF");
}

TEST(ResumeToken, ComesBackAsItWasWritten) {
    const ResumeToken token =
        parsed(ResumeToken::invalidate({0xFFFFFFFF, 0x80000000}, 0xFFFFFFFE, kTokenStore).to_hex());
    EXPECT_EQ(token.time, (bson::Timestamp{0xFFFFFFFF, 0x80000000}));
    EXPECT_EQ(token.kind, ResumeToken::Kind::Event);
    EXPECT_EQ(token.index, 0xFFFFFFFEu);
    EXPECT_TRUE(token.from_invalidate);
    EXPECT_EQ(token.store, kTokenStore);
}

std::string fragment_text(std::uint16_t fragment) {
    ResumeToken token = ResumeToken::event({1, 1}, 0, kTokenStore);
    token.fragment = fragment;
    const bson::Document document = token.to_document();
    const auto again = ResumeToken::parse(document.view()).value_or_throw();
    EXPECT_EQ(again.fragment, fragment);
    return token.to_hex();
}

TEST(ResumeToken, TextsCompareInTheOrderOfEvents) {
    const std::vector<std::string> in_order = {
        ResumeToken::high_water({1, 1}, kTokenStore).to_hex(),
        ResumeToken::event({1, 1}, 0, kTokenStore).to_hex(),
        fragment_text(1),
        fragment_text(2),
        fragment_text(300),
        ResumeToken::invalidate({1, 1}, 0, kTokenStore).to_hex(),
        ResumeToken::place({1, 1}, 0, kTokenStore).to_hex(),
        ResumeToken::event({1, 1}, 1, kTokenStore).to_hex(),
        ResumeToken::event({1, 1}, 0x100, kTokenStore).to_hex(),
        ResumeToken::high_water({1, 2}, kTokenStore).to_hex(),
        ResumeToken::event({1, 2}, 0, kTokenStore).to_hex(),
        ResumeToken::event({1, 0x10000}, 0, kTokenStore).to_hex(),
        ResumeToken::high_water({2, 0}, kTokenStore).to_hex(),
        ResumeToken::event({0x80000000, 0}, 0, kTokenStore).to_hex(),
    };
    EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
    EXPECT_EQ(std::adjacent_find(in_order.begin(), in_order.end()), in_order.end());
}

TEST(ResumeToken, IsRefusedWhenDamaged) {
    const std::string good = ResumeToken::event({5, 6}, 7, kTokenStore).to_hex();
    const std::string prefix = "InvalidResumeToken (260): The resume token cannot be read: ";
    EXPECT_EQ(refusal(bson::make("_data", good)), "accepted");
    EXPECT_EQ(refusal(bson::Document()), prefix + "it has no string field '_data'");
    EXPECT_EQ(refusal(bson::make("_data", std::int32_t{5})),
              prefix + "it has no string field '_data'");
    EXPECT_EQ(refusal(bson::make("_data", "")), prefix + "'_data' has 0 characters, expected 50");
    EXPECT_EQ(refusal(bson::make("_data", good + "00")),
              prefix + "'_data' has 52 characters, expected 50");
    EXPECT_EQ(refusal(bson::make("_data", with_byte(good, 3, "0g"))),
              prefix + "'_data' is not upper-case hexadecimal");
    EXPECT_EQ(refusal(bson::make("_data", with_byte(good, 3, "ab"))),
              prefix + "'_data' is not upper-case hexadecimal");
    EXPECT_EQ(refusal(bson::make("_data", with_byte(good, 0, "02"))),
              prefix + "version 2, this server reads version 1");
    EXPECT_EQ(refusal(bson::make("_data", with_byte(good, 9, "01"))), prefix + "unknown kind 1");
    EXPECT_EQ(refusal(bson::make("_data", with_byte(good, 14, "03"))), prefix + "unknown flag 3");
    const std::string invalidate = ResumeToken::invalidate({5, 6}, 7, kTokenStore).to_hex();
    EXPECT_EQ(refusal(bson::make("_data", with_byte(invalidate, 16, "01"))),
              prefix + "only an event is split");
    EXPECT_EQ(refusal(bson::make("_data", with_byte(good, 9, "00"))),
              prefix + "a high-water mark that names an entry");
}

}  // namespace
}  // namespace angelia::engine::changes
