#include <angelia/bson/validate.h>

#include "bson/libbson_oracle.h"
#include "bson/test_documents.h"

#include <gtest/gtest.h>

#include <random>

namespace angelia::bson {
namespace {

using test::raw_int32;

std::string complaint(std::string_view bytes, const ValidateLimits& limits = {}) {
    const auto result = validate(bytes, limits);
    return result ? "fine" : result.error().to_string();
}

/// A document around `body` with the right length and closing zero.
std::string wrap(const std::string& body) {
    return raw_int32(static_cast<std::int32_t>(body.size() + 5)) + body + std::string(1, '\0');
}

std::string field(Type type, const std::string& value) {
    return wrap(std::string(1, static_cast<char>(type)) + std::string("k\0", 2) + value);
}

TEST(Validate, AcceptsEveryType) {
    const Document d = test::all_types();
    const auto result = validate(d.bytes());
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(result->bytes(), d.bytes());
}

TEST(Validate, LeavesBytesBehindTheDocumentAlone) {
    const std::string bytes = std::string(make("a", true).bytes()) + "tail";
    EXPECT_EQ(validate(bytes)->size_bytes(), bytes.size() - 4);
}

TEST(Validate, RefusesBrokenLengths) {
    EXPECT_EQ(
        complaint(""),
        "InvalidBSON (22): invalid BSON: 0 bytes are too few for a document, which has at least 5");
    EXPECT_EQ(
        complaint(std::string(4, '\0')),
        "InvalidBSON (22): invalid BSON: 4 bytes are too few for a document, which has at least 5");
    EXPECT_EQ(
        complaint(raw_int32(4) + '\0'),
        "InvalidBSON (22): invalid BSON at byte 0: document length 4 does not fit into 5 bytes");
    EXPECT_EQ(
        complaint(raw_int32(6) + '\0'),
        "InvalidBSON (22): invalid BSON at byte 0: document length 6 does not fit into 5 bytes");
    EXPECT_EQ(
        complaint(raw_int32(-1) + '\0'),
        "InvalidBSON (22): invalid BSON at byte 0: document length -1 does not fit into 5 bytes");
    EXPECT_EQ(complaint(raw_int32(5) + '\1'),
              "InvalidBSON (22): invalid BSON at byte 4: document does not end with a zero byte");
    EXPECT_EQ(
        complaint(wrap(std::string(1, '\0'))),
        "InvalidBSON (22): invalid BSON at byte 4: closing zero before the end of the document");
    EXPECT_EQ(complaint(wrap("\x0A"
                             "abc")),
              "InvalidBSON (22): invalid BSON at byte 5: field name without a closing zero");
}

TEST(Validate, RefusesBrokenValues) {
    const std::string zero(1, '\0');
    const std::string at_7 = "InvalidBSON (22): invalid BSON at byte 7: ";
    EXPECT_EQ(complaint(field(Type::Int32, "123")),
              at_7 + "value reaches beyond the end of the document");
    EXPECT_EQ(complaint(field(Type::Decimal128, "123456789012345")),
              at_7 + "value reaches beyond the end of the document");
    EXPECT_EQ(complaint(field(Type::Bool, "\2")), at_7 + "bool is neither 0 nor 1");
    EXPECT_EQ(complaint(field(Type::Bool, "")),
              at_7 + "value reaches beyond the end of the document");
    EXPECT_EQ(complaint(field(Type::String, "1234")),
              at_7 + "string reaches beyond the end of the document");
    EXPECT_EQ(complaint(field(Type::String, raw_int32(0) + zero)),
              at_7 + "string length 0 does not fit");
    EXPECT_EQ(complaint(field(Type::String, raw_int32(-5) + zero)),
              at_7 + "string length -5 does not fit");
    EXPECT_EQ(complaint(field(Type::Symbol, raw_int32(3) + "a" + zero)),
              at_7 + "string length 3 does not fit");
    EXPECT_EQ(complaint(field(Type::JavaScript, raw_int32(2) + "ab")),
              at_7 + "string does not end with a zero byte");
    EXPECT_EQ(complaint(field(Type::Binary, raw_int32(2) + zero + "a")),
              at_7 + "binary length 2 does not fit");
    EXPECT_EQ(complaint(field(Type::Binary, raw_int32(-1) + zero)),
              at_7 + "binary length -1 does not fit");
    EXPECT_EQ(complaint(field(Type::Binary, raw_int32(5) + "\2" + raw_int32(2) + "x")),
              "InvalidBSON (22): invalid BSON at byte 12: inner length of old binary data (subtype "
              "2) does not fit");
    EXPECT_EQ(complaint(field(Type::Regex, "a")),
              at_7 + "regular expression without a closing zero");
    EXPECT_EQ(complaint(field(Type::Regex, "a" + zero + "i")),
              "InvalidBSON (22): invalid BSON at byte 9: regular expression options without a "
              "closing zero");
    EXPECT_EQ(complaint(field(Type::Document, raw_int32(4) + zero)),
              at_7 + "document length 4 does not fit");
    EXPECT_EQ(complaint(field(Type::Array, raw_int32(6) + zero)),
              at_7 + "document length 6 does not fit");
    EXPECT_EQ(complaint(field(static_cast<Type>(0x14), "")),
              "InvalidBSON (22): invalid BSON at byte 4: unknown type 0x14");
    EXPECT_EQ(complaint(field(static_cast<Type>(0x80), "")),
              "InvalidBSON (22): invalid BSON at byte 4: unknown type 0x80");
}

TEST(Validate, HoldsCodeWithScopeToItsOwnLength) {
    const std::string code = test::string_bytes("c");
    const std::string scope(make("x", true).bytes());
    const auto size = static_cast<std::int32_t>(4 + code.size() + scope.size());
    EXPECT_EQ(complaint(field(Type::JavaScriptWithScope, raw_int32(size) + code + scope)), "fine");
    const std::string bad_scope =
        "InvalidBSON (22): invalid BSON at byte 17: scope does not fill the code with scope";
    EXPECT_EQ(complaint(field(Type::JavaScriptWithScope, raw_int32(size - 1) + code + scope)),
              bad_scope);
    EXPECT_EQ(complaint(field(Type::JavaScriptWithScope, raw_int32(size + 1) + code + scope + "x")),
              bad_scope);
    EXPECT_EQ(complaint(field(Type::JavaScriptWithScope, raw_int32(size + 1) + code + scope)),
              "InvalidBSON (22): invalid BSON at byte 7: code with scope length 20 does not fit");
}

TEST(Validate, ChecksUtf8OfStringsAndNames) {
    EXPECT_EQ(complaint(make("a", "\xC3").bytes()),
              "InvalidBSON (22): invalid BSON at byte 7: string is not UTF-8");
    EXPECT_TRUE(
        validate(make("a", "\xC3").bytes(), {kDocumentBytesInternalMax, kNestingMax, false}))
        << "unless other bytes are allowed";
    EXPECT_EQ(complaint(make("\xFF", true).bytes()),
              "InvalidBSON (22): invalid BSON at byte 5: field name is not UTF-8");
    EXPECT_EQ(complaint(make("a", RegexView{"\x80", ""}).bytes()),
              "InvalidBSON (22): invalid BSON at byte 7: regular expression is not UTF-8");
    EXPECT_EQ(complaint(make("a", std::string_view("a\0b", 3)).bytes()), "fine");
}

TEST(Validate, KnowsUtf8) {
    for (const char* good : {"", "plain", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                             "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
                             "eight ASCII bytes, then \xC3\xA4 and more of them"}) {
        EXPECT_TRUE(is_utf8(good)) << good;
    }
    for (const char* bad :
         {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2z", "\xE0\x9F\xBF", "\xE1\x80",
          "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF0\x90\x80", "\xF4\x90\x80\x80",
          "\xF5\x80\x80\x80", "\xFE", "\xFF", "12345678\xC3", "1234567\xFF"}) {
        EXPECT_FALSE(is_utf8(bad)) << bad;
    }
}

TEST(Validate, BoundsNestingAndSize) {
    EXPECT_EQ(complaint(test::nested(200).bytes()), "fine");
    EXPECT_EQ(complaint(test::nested(201).bytes()),
              "Overflow (15): BSON at byte 1400 exceeds the maximum nesting of 200 levels");
    EXPECT_EQ(complaint(test::nested(3).bytes(), {.nesting_max = 2}),
              "Overflow (15): BSON at byte 14 exceeds the maximum nesting of 2 levels");
    const Document d = make("a", "0123456789");
    EXPECT_EQ(complaint(d.bytes(), {.bytes_max = d.size_bytes()}), "fine");
    EXPECT_EQ(complaint(d.bytes(), {.bytes_max = d.size_bytes() - 1}),
              "BSONObjectTooLarge (10334): BSON document of 23 bytes is larger than the 22 bytes "
              "allowed");
}

std::string mutate(std::string bytes, std::mt19937_64& random) {
    const auto changes = 1 + random() % 3;
    for (std::uint64_t i = 0; i < changes; ++i) {
        const std::size_t at = 4 + random() % (bytes.size() - 4);
        const std::uint64_t kind = random() % 4;
        const auto byte = static_cast<unsigned char>(bytes[at]);
        const unsigned char choices[] = {
            static_cast<unsigned char>(random() % 256), static_cast<unsigned char>(byte + 1),
            static_cast<unsigned char>(byte - 1), static_cast<unsigned char>(random() % 0x14)};
        bytes[at] = static_cast<char>(choices[kind]);
    }
    return bytes;
}

TEST(Validate, AgreesWithLibbsonOnMutatedDocuments) {
    const Document all = test::all_types();
    const std::string original(
        make("a", all, "b", array(all, "x"), "c", "\xC3\xA4\xF0\x90\x80\x80").bytes());
    std::mt19937_64 random(20240229);
    std::size_t accepted = 0;
    for (int i = 0; i < 200'000; ++i) {
        const std::string bytes = mutate(original, random);
        const auto ours = validate(bytes);
        ASSERT_EQ(ours.has_value(), oracle::libbson_accepts(bytes))
            << "mutation " << i << ": " << complaint(bytes);
        accepted += ours.has_value();
    }
    EXPECT_GT(accepted, 20'000U);  // the mutations must not all be broken ones
    EXPECT_LT(accepted, 180'000U);
}

}  // namespace
}  // namespace angelia::bson
