#include <angelia/bson/compare.h>
#include <angelia/bson/json.h>

#include "bson/test_documents.h"

#include <bson/bson.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace angelia::bson {
namespace {

using test::one;

/// What became of the text: canonical JSON of the document, or the error.
std::string reading(std::string_view text) {
    const auto result = from_json(text);
    return result ? to_json(*result, JsonMode::Canonical) : result.error().to_string();
}

std::string reading_of_value(const std::string& value) { return reading("{\"v\":" + value + "}"); }

Document parsed(std::string_view text) {
    auto result = from_json(text);
    EXPECT_TRUE(result) << result.error().to_string();
    return result ? std::move(result).value() : Document();
}

std::string relaxed(const Document& d) { return to_json(d.view()["v"]); }
std::string canonical(const Document& d) { return to_json(d.view()["v"], JsonMode::Canonical); }

TEST(JsonWrite, SpellsEveryTypeInCanonicalMode) {
    EXPECT_EQ(
        to_json(test::all_types(), JsonMode::Canonical),
        R"json({"double":{"$numberDouble":"1.5"},"string":"text )json"
        "\xC3\xA4"
        R"json(","document":{"a":{"$numberInt":"1"}},)json"
        R"json("array":[{"$numberInt":"1"},"two"],"binary":{"$binary":{"base64":"AAH/","subType":"00"}},)json"
        R"json("old_binary":{"$binary":{"base64":"aGk=","subType":"02"}},"uuid":{"$binary":{"base64":"MDEyMzQ1Njc4OWFiY2RlZg==","subType":"04"}},)json"
        R"json("undefined":{"$undefined":true},"id":{"$oid":"5a5a5a5a5a5a5a5a5a5a5a5a"},"bool":true,)json"
        R"json("date":{"$date":{"$numberLong":"1700000000123"}},"old_date":{"$date":{"$numberLong":"-1"}},"null":null,)json"
        R"json("regex":{"$regularExpression":{"pattern":"^a.*b$","options":"im"}},)json"
        R"json("pointer":{"$dbPointer":{"$ref":"db.c","$id":{"$oid":"070707070707070707070707"}}},"code":{"$code":"f()"},)json"
        R"json("symbol":{"$symbol":"sym"},"scoped":{"$code":"g()","$scope":{"x":{"$numberInt":"1"}}},"int32":{"$numberInt":"-7"},)json"
        R"json("timestamp":{"$timestamp":{"t":12,"i":34}},"int64":{"$numberLong":"1152921504606846976"},)json"
        R"json("decimal":{"$numberDecimal":"1.5"},"min":{"$minKey":1},"max":{"$maxKey":1},"":""})json");
}

TEST(JsonWrite, UsesPlainNumbersAndDatesInRelaxedMode) {
    EXPECT_EQ(relaxed(one(std::int32_t{-7})), "-7");
    EXPECT_EQ(relaxed(one(std::int64_t{1} << 60)), "1152921504606846976");
    EXPECT_EQ(relaxed(one(1.5)), "1.5");
    EXPECT_EQ(relaxed(one(std::nan(""))), R"({"$numberDouble":"NaN"})");
    EXPECT_EQ(relaxed(one(Date{0})), R"({"$date":"1970-01-01T00:00:00Z"})");
    EXPECT_EQ(relaxed(one(Date{1'700'000'000'123})), R"({"$date":"2023-11-14T22:13:20.123Z"})");
    EXPECT_EQ(relaxed(one(Date{253'402'300'799'999})), R"({"$date":"9999-12-31T23:59:59.999Z"})");
    EXPECT_EQ(relaxed(one(Date{253'402'300'800'000})),
              R"({"$date":{"$numberLong":"253402300800000"}})");
    EXPECT_EQ(relaxed(one(Date{-1})), R"({"$date":{"$numberLong":"-1"}})");
    EXPECT_EQ(relaxed(one(Decimal128{15, 0x303E000000000000})), R"({"$numberDecimal":"1.5"})");
}

TEST(JsonWrite, PrintsDoublesShortestWithAPoint) {
    EXPECT_EQ(relaxed(one(1.0)), "1.0");
    EXPECT_EQ(relaxed(one(-0.0)), "-0.0");
    EXPECT_EQ(relaxed(one(0.1)), "0.1");
    EXPECT_EQ(relaxed(one(1e20)), "1e+20");
    EXPECT_EQ(relaxed(one(123456.0)), "123456.0");
    EXPECT_EQ(canonical(one(1.0)), R"({"$numberDouble":"1.0"})");
    EXPECT_EQ(canonical(one(-std::numeric_limits<double>::infinity())),
              R"({"$numberDouble":"-Infinity"})");
    EXPECT_EQ(canonical(one(std::numeric_limits<double>::denorm_min())),
              R"({"$numberDouble":"5e-324"})");
}

TEST(JsonWrite, EscapesStrings) {
    EXPECT_EQ(relaxed(one(std::string_view("\"\\/\b\f\n\r\t\x01\x1F\x7F\0z", 13))),
              R"("\"\\/\b\f\n\r\t\u0001\u001f)"
              "\x7F"
              R"(\u0000z")");
    EXPECT_EQ(to_json(make("a\"b", true)), R"({"a\"b":true})");
}

TEST(JsonWrite, PrettyFormSpreadsOverLines) {
    EXPECT_EQ(to_json_pretty(make("a", std::int32_t{1}, "b", array(make("c", true), "x"), "d",
                                  Document{}, "e", array())),
              "{\n  \"a\": 1,\n  \"b\": [\n    {\n      \"c\": true\n    },\n    \"x\"\n  ],\n  "
              "\"d\": {},\n  \"e\": []\n}");
    EXPECT_EQ(to_json_pretty(Document{}), "{}");
}

TEST(JsonRead, CanonicalTextGivesTheSameBytes) {
    const Document d = test::all_types();
    EXPECT_EQ(to_json(parsed(to_json(d, JsonMode::Canonical)), JsonMode::Canonical),
              to_json(d, JsonMode::Canonical));
    EXPECT_EQ(parsed(to_json(d, JsonMode::Canonical)).bytes(), d.bytes());
}

TEST(JsonRead, RelaxedTextGivesEqualValues) {
    const Document d = test::all_types();
    EXPECT_EQ(compare(parsed(to_json(d)), d), 0);
    EXPECT_EQ(compare(parsed(to_json_pretty(d)), d), 0);
    EXPECT_EQ(parsed(to_json(d)).find("date").type(), Type::Date);
}

TEST(JsonRead, ReadsPlainJson) {
    EXPECT_EQ(
        reading(R"( {"a" : [1, 2.0, "x", null, true, false, {}, []], "b":{"c":"d"}}  )"),
        R"({"a":[{"$numberInt":"1"},{"$numberDouble":"2.0"},"x",null,true,false,{},[]],"b":{"c":"d"}})");
    EXPECT_EQ(reading_of_value(R"("\u00e4\ud834\udd1e\u0000\/")"),
              "{\"v\":\"\xC3\xA4\xF0\x9D\x84\x9E\\u0000/\"}");
    EXPECT_EQ(reading(R"({"b":1,"a":2,"b":3})"),
              R"({"b":{"$numberInt":"1"},"a":{"$numberInt":"2"},"b":{"$numberInt":"3"}})");
}

TEST(JsonRead, PicksTheSmallestIntegerTypeThatFits) {
    EXPECT_EQ(reading_of_value("2147483647"), R"({"v":{"$numberInt":"2147483647"}})");
    EXPECT_EQ(reading_of_value("2147483648"), R"({"v":{"$numberLong":"2147483648"}})");
    EXPECT_EQ(reading_of_value("-2147483649"), R"({"v":{"$numberLong":"-2147483649"}})");
    EXPECT_EQ(reading_of_value("9223372036854775807"),
              R"({"v":{"$numberLong":"9223372036854775807"}})");
    EXPECT_EQ(reading_of_value("-9223372036854775808"),
              R"({"v":{"$numberLong":"-9223372036854775808"}})");
    EXPECT_EQ(reading_of_value("9223372036854775808"),
              R"({"v":{"$numberDouble":"9223372036854775808.0"}})");
    EXPECT_EQ(reading_of_value("1E2"), R"({"v":{"$numberDouble":"100.0"}})");
}

TEST(JsonRead, LeavesOperatorsAndUnknownDollarNamesAlone) {
    for (const char* text :
         {R"({"$set":{"a":"x"}})", R"({"a":{"$in":["x",null]}})", R"({"a":{"$regex":"^x"}})",
          R"({"a":{"$regex":"^x","$options":"i","$ne":"y"}})",
          R"({"a":{"$regex":{"$regularExpression":{"pattern":"x","options":""}},"$options":"i"}})",
          R"({"a":{"$type":"string"}})", R"({"$ref":"c","$id":"x","$db":"d"})",
          R"({"a":{"$options":"i"}})", R"({"a":{"$scope":{}}})", R"({"$":"x","$oidx":true})"}) {
        EXPECT_EQ(reading(text), text);
    }
}

TEST(JsonRead, ReadsOldForms) {
    EXPECT_EQ(reading_of_value(R"({"$date":1700000000123})"),
              R"({"v":{"$date":{"$numberLong":"1700000000123"}}})");
    EXPECT_EQ(reading_of_value(R"({"$date":-5})"), R"({"v":{"$date":{"$numberLong":"-5"}}})");
    EXPECT_EQ(reading_of_value(R"({"$binary":"AAH/","$type":"80"})"),
              R"({"v":{"$binary":{"base64":"AAH/","subType":"80"}}})");
    EXPECT_EQ(reading_of_value(R"({"$type":5,"$binary":"AAH/"})"),
              R"({"v":{"$binary":{"base64":"AAH/","subType":"05"}}})");
    EXPECT_EQ(reading_of_value(R"({"$regex":"^a","$options":"mi"})"),
              R"({"v":{"$regularExpression":{"pattern":"^a","options":"im"}}})");
    EXPECT_EQ(reading_of_value(R"({"$options":"","$regex":"^a"})"),
              R"({"v":{"$regularExpression":{"pattern":"^a","options":""}}})");
    EXPECT_EQ(reading_of_value(R"({"$uuid":"30313233-3435-3637-3839-616263646566"})"),
              R"({"v":{"$binary":{"base64":"MDEyMzQ1Njc4OWFiY2RlZg==","subType":"04"}}})");
}

TEST(JsonRead, ReadsDates) {
    const auto millis = [](const std::string& text) {
        return parsed(R"({"v":{"$date":")" + text + "\"}}").find("v").as_date().millis;
    };
    EXPECT_EQ(millis("1970-01-01T00:00:00Z"), 0);
    EXPECT_EQ(millis("1970-01-01T00:00:00.5Z"), 500);
    EXPECT_EQ(millis("1970-01-01T00:00:00.123456789Z"), 123);
    EXPECT_EQ(millis("1969-12-31T23:59:59.999Z"), -1);
    EXPECT_EQ(millis("2024-02-29T12:00:00+02:00"), 1'709'200'800'000);
    EXPECT_EQ(millis("2024-02-29T12:00:00-0230"), 1'709'217'000'000);
    EXPECT_EQ(millis("2024-02-29T12:00:00+02"), 1'709'200'800'000);
    EXPECT_EQ(millis("0001-01-01T00:00:00Z"), -62'135'596'800'000);
}

TEST(JsonRead, RefusesWrappersWithWrongInsides) {
    for (const char* value :
         {R"({"$oid":5})",
          R"({"$oid":"123"})",
          R"({"$oid":"5a5a5a5a5a5a5a5a5a5a5a5g"})",
          R"({"$oid":"5a5a5a5a5a5a5a5a5a5a5a5a","x":1})",
          R"({"x":1,"$oid":"5a5a5a5a5a5a5a5a5a5a5a5a"})",
          R"({"$numberInt":1})",
          R"({"$numberInt":"2147483648"})",
          R"({"$numberInt":"1.0"})",
          R"({"$numberInt":""})",
          R"({"$numberLong":"9223372036854775808"})",
          R"({"$numberLong":5})",
          R"({"$numberDouble":1.5})",
          R"({"$numberDouble":"inf"})",
          R"({"$numberDouble":"0x1"})",
          R"({"$numberDouble":"1e999"})",
          R"({"$numberDecimal":"1.2.3"})",
          R"({"$numberDecimal":1})",
          R"({"$date":"yesterday"})",
          R"({"$date":1.5})",
          R"({"$date":"2023-02-29T00:00:00Z"})",
          R"({"$date":"2023-01-01T24:00:00Z"})",
          R"({"$date":"2023-01-01T00:00:00"})",
          R"({"$date":"2023-01-01T00:00:00.Z"})",
          R"({"$date":"2023-01-01T00:00:00Zx"})",
          R"({"$binary":"AAH/"})",
          R"({"$binary":{"base64":"AAH","subType":"00"}})",
          R"({"$binary":{"base64":"AAH/","subType":"000"}})",
          R"({"$binary":{"base64":"AAH/","subType":0}})",
          R"({"$binary":{"base64":"AAH/"}})",
          R"({"$binary":{"base64":"AAH/","subType":"00","x":1}})",
          R"({"$binary":"AAH/","$type":256})",
          R"({"$uuid":"30313233-3435-3637-3839-61626364656"})",
          R"({"$uuid":"303132333-435-3637-3839-616263646566"})",
          R"({"$timestamp":{"t":-1,"i":0}})",
          R"({"$timestamp":{"t":1,"i":4294967296}})",
          R"({"$timestamp":{"t":1}})",
          R"({"$timestamp":{"t":1,"i":1,"x":1}})",
          R"({"$regularExpression":{"pattern":"a"}})",
          R"({"$regularExpression":{"pattern":"a\u0000","options":""}})",
          R"({"$regularExpression":"a"})",
          R"({"$minKey":true})",
          R"({"$maxKey":2})",
          R"({"$undefined":false})",
          R"({"$symbol":1})",
          R"({"$code":1})",
          R"({"$code":"f","$scope":1})",
          R"({"$code":"f","x":{}})",
          R"({"$dbPointer":{"$ref":"a","$id":"b"}})",
          R"({"$dbPointer":{"$ref":1,"$id":{"$oid":"5a5a5a5a5a5a5a5a5a5a5a5a"}}})"}) {
        EXPECT_TRUE(
            reading_of_value(value).starts_with("FailedToParse (9): JSON at line 1, column "))
            << value << " gave " << reading_of_value(value);
    }
}

TEST(JsonRead, TellsWhatIsWrongAndWhere) {
    EXPECT_EQ(reading("{\n  \"a\": 1,\n  \"id\": {\"$oid\": \"x\"}\n}"),
              "FailedToParse (9): JSON at line 3, column 21: $oid must be a string of 24 "
              "hexadecimal digits");
    EXPECT_EQ(reading("{\"a\": 1"),
              "FailedToParse (9): JSON at line 1, column 7: syntax error while parsing object - "
              "unexpected end of input; expected '}'");
    EXPECT_EQ(reading(R"({"a":{"$numberInt":"1","b":2}})"),
              "FailedToParse (9): JSON at line 1, column 29: other fields beside $numberInt are "
              "not allowed");
    EXPECT_EQ(reading(R"({"$numberInt":"1"})"),
              "FailedToParse (9): JSON at line 1, column 18: a document is wanted at the top, not "
              "the value that this object spells");
}

TEST(JsonRead, RefusesWhatIsNotOneJsonObject) {
    for (const char* text : {"",
                             "  ",
                             "1",
                             "\"x\"",
                             "[1]",
                             "null",
                             "{",
                             "{]",
                             "{a:1}",
                             "{'a':1}",
                             "{\"a\":1,}",
                             "{\"a\":01}",
                             "{\"a\":1}x",
                             "{\"a\":1}{\"b\":2}",
                             "{\"a\":\"\\ud800\"}",
                             "{\"a\":\"\xFF\"}",
                             "{\"a\":\"\n\"}",
                             "{\"a\\u0000b\":1}",
                             "{\"a\":1e999}",
                             "{\"a\":+1}",
                             "{\"a\":NaN}"}) {
        EXPECT_TRUE(reading(text).starts_with("FailedToParse (9): JSON at line "))
            << text << " gave " << reading(text);
    }
    EXPECT_EQ(reading(std::string_view("{\"a\":1}\0", 8)),
              "FailedToParse (9): JSON at line 1, column 8: a zero byte is not JSON");
}

std::string nested_json(std::size_t levels, const std::string& innermost) {
    std::string text;
    for (std::size_t i = 1; i < levels; ++i) text += "{\"d\":";
    return text + innermost + std::string(levels - 1, '}');
}

TEST(JsonRead, BoundsNesting) {
    const std::string too_deep =
        "Overflow (15): JSON nests deeper than the 200 levels that BSON allows";
    EXPECT_EQ(parsed(nested_json(200, "{}")).bytes(), test::nested(200).bytes());
    EXPECT_EQ(reading(nested_json(201, "{}")), too_deep);
    EXPECT_EQ(reading(nested_json(100'000, "{}")), too_deep);
    EXPECT_EQ(reading("{\"a\":" + std::string(100'000, '[')), too_deep);
    // Objects that spell values do not count.
    EXPECT_TRUE(from_json(nested_json(200, R"({"t":{"$date":{"$numberLong":"1"}}})")));
}

TEST(JsonRead, BoundsSize) {
    const std::string too_large =
        "BSONObjectTooLarge (10334): JSON makes a document larger than the 16777216 bytes that "
        "BSON allows";
    const std::size_t fits = kDocumentBytesMax - make("a", "").size_bytes();
    EXPECT_EQ(parsed("{\"a\":\"" + std::string(fits, 'x') + "\"}").size_bytes(), kDocumentBytesMax);
    EXPECT_EQ(reading("{\"a\":\"" + std::string(fits + 1, 'x') + "\"}"), too_large);
    EXPECT_EQ(reading("{\"a\":\"" + std::string(3 * kDocumentBytesMax, 'x') + "\"}"), too_large);
}

/// libbson's document for a JSON text.
Document by_libbson(const std::string& text) {
    bson_error_t error;
    bson_t* b = bson_new_from_json(reinterpret_cast<const std::uint8_t*>(text.data()),
                                   static_cast<ssize_t>(text.size()), &error);
    EXPECT_NE(b, nullptr) << error.message;
    Document d(DocumentView(bson_get_data(b)));
    bson_destroy(b);
    return d;
}

std::string text_by_libbson(const Document& d, char* (*print)(const bson_t*, std::size_t*)) {
    bson_t view;
    EXPECT_TRUE(bson_init_static(&view, reinterpret_cast<const std::uint8_t*>(d.bytes().data()),
                                 d.size_bytes()));
    char* text = print(&view, nullptr);
    std::string copy = text;
    bson_free(text);
    return copy;
}

TEST(JsonOracle, LibbsonReadsOurCanonicalText) {
    const Document d = test::all_types();
    EXPECT_EQ(by_libbson(to_json(d, JsonMode::Canonical)).bytes(), d.bytes());
}

TEST(JsonOracle, LibbsonReadsOurRelaxedTextAsWeDo) {
    const std::string text = to_json(test::all_types());
    EXPECT_EQ(by_libbson(text).bytes(), parsed(text).bytes());
}

TEST(JsonOracle, WeReadLibbsonsTexts) {
    const Document d = test::all_types();
    EXPECT_EQ(parsed(text_by_libbson(d, bson_as_canonical_extended_json)).bytes(), d.bytes());
    EXPECT_EQ(compare(parsed(text_by_libbson(d, bson_as_relaxed_extended_json)), d), 0);
}

TEST(JsonOracle, DoublesSurviveBothModes) {
    std::mt19937_64 random(42);
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t bits = random();
        double v;
        std::memcpy(&v, &bits, sizeof v);
        v = std::isnan(v) ? 0.5 : v;
        const Document d = one(v);
        ASSERT_EQ(parsed(to_json(d)).bytes(), d.bytes()) << to_json(d);
        ASSERT_EQ(parsed(to_json(d, JsonMode::Canonical)).bytes(), d.bytes())
            << to_json(d, JsonMode::Canonical);
    }
}

}  // namespace
}  // namespace angelia::bson
