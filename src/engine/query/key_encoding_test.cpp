#include "engine/query/key_encoding.h"

#include "engine/query/test_json.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/compare.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace angelia::engine::query {
namespace {

using testing_support::from;
using testing_support::outcome_code;
using testing_support::text;

/// Values of every type, with the edges of the number types and near misses between them.
std::vector<bson::Value> key_corpus() {
    const auto document = from(R"({"v": [
        {"$minKey": 1}, {"$maxKey": 1}, null, {"$undefined": true}, true, false,
        {"$numberDecimal": "NaN"}, {"$numberDecimal": "Infinity"}, {"$numberDecimal": "-Infinity"}, {"$numberDecimal": "-0"}, {"$numberDecimal": "0E+3"},
        {"$numberDecimal": "0.1"}, {"$numberDecimal": "0.10"}, {"$numberDecimal": "-0.1"}, {"$numberDecimal": "1E-6176"}, {"$numberDecimal": "-1E-6176"},
        {"$numberDecimal": "9.999999999999999999999999999999999E+6144"}, {"$numberDecimal": "-9.999999999999999999999999999999999E+6144"},
        {"$numberDecimal": "1E+400"}, {"$numberDecimal": "1E+308"}, {"$numberDecimal": "2E+308"}, {"$numberDecimal": "1.7976931348623157E+308"},
        {"$numberDecimal": "4.9E-324"}, {"$numberDecimal": "1E-400"}, {"$numberDecimal": "9007199254740993"}, {"$numberDecimal": "9007199254740993.5"},
        {"$numberDecimal": "9007199254740992.1"}, {"$numberDecimal": "9223372036854775807"}, {"$numberDecimal": "9223372036854775808"},
        {"$numberDecimal": "-9223372036854775808"}, {"$numberDecimal": "-9223372036854775809"}, {"$numberDecimal": "1"}, {"$numberDecimal": "1.000"},
        {"$numberDecimal": "0.5"}, {"$numberDecimal": "123456789012345678901234567890.1234"}, {"$numberDecimal": "-9007199254740993"},
        {"$numberLong": "9007199254740993"}, {"$numberLong": "9007199254740992"}, {"$numberLong": "-9007199254740993"}, {"$numberLong": "9223372036854775807"},
        {"$numberLong": "9223372036854775806"}, {"$numberLong": "-9223372036854775808"}, {"$numberLong": "-9223372036854775807"}, {"$numberLong": "1"},
        "", "a", "ab", "a\u0000", "a\u0000b", "b", "é", {"$symbol": "a"}, {"$symbol": "ab"},
        {}, {"a": 1}, {"a": 1.0}, {"a": 2}, {"b": 1}, {"a": "x"}, {"a": 1, "b": 1}, {"a": {}}, {"a": []}, {"a": {"b": null}}, {"": 0}, {"a": null},
        [], [1], [1, 2], [2], [null], [[]], [[1]], [{}], ["a"], [{"$undefined": true}],
        {"$binary": {"base64": "", "subType": "00"}}, {"$binary": {"base64": "AAA=", "subType": "00"}}, {"$binary": {"base64": "AAA=", "subType": "05"}},
        {"$binary": {"base64": "/w==", "subType": "00"}}, {"$binary": {"base64": "AP8A", "subType": "00"}},
        {"$oid": "000000000000000000000000"}, {"$oid": "ffffffffffffffffffffffff"}, {"$oid": "00ff00ff00ff00ff00ff00ff"},
        {"$date": {"$numberLong": "0"}}, {"$date": {"$numberLong": "-1"}}, {"$date": {"$numberLong": "1790000000000"}},
        {"$date": {"$numberLong": "-9223372036854775808"}}, {"$timestamp": {"t": 0, "i": 0}}, {"$timestamp": {"t": 4294967295, "i": 1}}, {"$timestamp": {"t": 1, "i": 2}},
        {"$regularExpression": {"pattern": "a", "options": ""}}, {"$regularExpression": {"pattern": "a", "options": "i"}},
        {"$regularExpression": {"pattern": "ab", "options": ""}},
        {"$dbPointer": {"$ref": "c", "$id": {"$oid": "000000000000000000000001"}}}, {"$dbPointer": {"$ref": "cc", "$id": {"$oid": "000000000000000000000000"}}},
        {"$code": "a"}, {"$code": "b"}, {"$code": "a", "$scope": {}}, {"$code": "a", "$scope": {"x": 1}}, {"$code": "b", "$scope": {}}
    ]})");
    std::vector<bson::Value> values;
    for (const bson::Element& e : document.find("v").as_document()) values.emplace_back(e.value);
    const double doubles[] = {0.0,
                              -0.0,
                              1.0,
                              -1.0,
                              0.1,
                              -0.1,
                              0.5,
                              1.5,
                              std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::max(),
                              std::numeric_limits<double>::lowest(),
                              std::numeric_limits<double>::denorm_min(),
                              -std::numeric_limits<double>::denorm_min(),
                              9007199254740992.0,
                              9007199254740994.0,
                              9223372036854775808.0,
                              -9223372036854775808.0,
                              1e308,
                              1e22,
                              1e23};
    for (const double d : doubles) values.push_back(bson::value(d));
    const std::int32_t ints[] = {0,
                                 1,
                                 -1,
                                 2,
                                 255,
                                 256,
                                 std::numeric_limits<std::int32_t>::max(),
                                 std::numeric_limits<std::int32_t>::min()};
    for (const std::int32_t i : ints) values.push_back(bson::value(i));
    return values;
}

std::string key_of(bson::ValueView v, bool descending) {
    std::string key;
    append_key(key, v, descending);
    return key;
}

int sign(int n) { return (n > 0) - (n < 0); }

/// Compares order, equality and prefixes of all pairs.
void expect_same_order(const std::vector<bson::Value>& values) {
    for (const auto& a : values) {
        for (const auto& b : values) {
            const int wanted = sign(bson::compare(a.view(), b.view()));
            const std::string up_a = key_of(a.view(), false);
            const std::string up_b = key_of(b.view(), false);
            ASSERT_EQ(sign(up_a.compare(up_b)), wanted)
                << bson::to_json(a.view(), bson::JsonMode::Canonical) << " against "
                << bson::to_json(b.view(), bson::JsonMode::Canonical);
            ASSERT_EQ(sign(key_of(a.view(), true).compare(key_of(b.view(), true))), -wanted);
            ASSERT_TRUE(wanted == 0 || up_b.compare(0, up_a.size(), up_a) != 0)
                << "a key is the beginning of another";
        }
    }
}

TEST(KeyEncoding, BytesOrderAsValuesDo) { expect_same_order(key_corpus()); }

TEST(KeyEncoding, RandomNumbersOfAllTypesOrderAsNumbers) {
    const unsigned seed = 20261130;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<bson::Value> values;
    for (int i = 0; i < 150; ++i) {
        const std::uint64_t bits = random();
        const auto whole = static_cast<std::int64_t>(bits) >> (bits % 50);
        values.push_back(bson::value(whole));
        values.push_back(bson::value(static_cast<double>(whole)));
        values.push_back(
            bson::value(std::ldexp(static_cast<double>(whole), -static_cast<int>(bits % 80))));
        const auto json = from("{\"d\": {\"$numberDecimal\": \"" + std::to_string(whole) + "E" +
                               std::to_string(static_cast<int>(bits % 3) * 9 - 9) + "\"}}");
        values.emplace_back(json.find("d"));
    }
    expect_same_order(values);
}

TEST(KeyEncoding, NestedValuesOrderAsValuesDo) {
    std::vector<bson::Value> values;
    const auto corpus = key_corpus();
    for (std::size_t i = 0; i < corpus.size(); i += 2) {
        const auto document =
            bson::make("d", bson::make("x", corpus[i]), "a", bson::array(corpus[i]), "e",
                       bson::make("x", corpus[i], "y", corpus[corpus.size() - 1 - i]));
        values.emplace_back(document.find("d"));
        values.emplace_back(document.find("a"));
        values.emplace_back(document.find("e"));
    }
    expect_same_order(values);
}

struct KeyBytesCase {
    const char* value;
    const char* hex;
};

TEST(KeyEncoding, StoredBytesStayAsTheyAre) {
    const KeyBytesCase cases[] = {
        {R"({"v": {"$minKey": 1}})", "08"},
        {R"({"v": {"$undefined": true}})", "10"},
        {R"({"v": null})", "18"},
        {R"({"v": 1})", "20bff000000000000000"},
        {R"({"v": 0})", "20800000000000000000"},
        {R"({"v": -1})", "20400fffffffffffffff"},
        {R"({"v": {"$numberDouble": "NaN"}})", "20000000000000000000"},
        {R"({"v": {"$numberLong": "9007199254740993"}})",
         "20c340000000000000"
         "01"
         "400f"
         "39303037313939323534373430393933"
         "00"},
        {R"({"v": "a\u0000b"})",
         "28"
         "6100ff62"
         "0001"},
        {R"({"v": {"a": "x"}})",
         "30"
         "28"
         "610001"
         "780001"
         "00"},
        {R"({"v": [true]})",
         "38"
         "50"
         "01"
         "00"},
        {R"({"v": {"$binary": {"base64": "AP8=", "subType": "04"}}})",
         "40"
         "00000002"
         "04"
         "00ff"},
        {R"({"v": {"$oid": "0102030405060708090a0b0c"}})",
         "48"
         "0102030405060708090a0b0c"},
        {R"({"v": false})", "5000"},
        {R"({"v": {"$date": {"$numberLong": "1"}}})",
         "58"
         "8000000000000001"},
        {R"({"v": {"$timestamp": {"t": 1, "i": 2}}})",
         "60"
         "0000000100000002"},
        {R"({"v": {"$regularExpression": {"pattern": "a", "options": "i"}}})",
         "68"
         "610001"
         "690001"},
        {R"({"v": {"$maxKey": 1}})", "88"},
    };
    for (const KeyBytesCase& c : cases) {
        const auto document = from(c.value);
        std::string hex;
        for (const char byte : key_of(document.find("v"), false)) {
            hex += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
            hex += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
        }
        EXPECT_EQ(hex, c.hex) << c.value;
    }
}

// ---- keys of documents

std::string keys_text(const char* pattern, const char* document, bool sparse = false) {
    const auto parsed = IndexKeyPattern::parse(from(pattern)).value_or_throw();
    const auto doc = from(document);
    const auto keys = index_keys(parsed, doc.view(), sparse);
    if (!keys) return "error " + outcome_code(keys);
    std::string result = keys->multikey ? "multi" : "single";
    for (const std::string& key : keys->keys) {
        const bson::Document values = key_values(parsed, doc.view(), key);
        result += " " + text(values.view());
    }
    return result;
}

std::string with_texts(std::string result, std::initializer_list<const char*> documents) {
    for (const char* d : documents) result += " " + text(d);
    return result;
}

TEST(IndexKeys, OneForEachWayThroughTheArrays) {
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({"a": 5})"), with_texts("single", {R"({"a": 5})"}));
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({})"), with_texts("single", {R"({"a": null})"}));
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({"a": [3, 1, 3]})"),
              with_texts("multi", {R"({"a": 1})", R"({"a": 3})"}));
    EXPECT_EQ(keys_text(R"({"a": -1})", R"({"a": [3, 1]})"),
              with_texts("multi", {R"({"a": 3})", R"({"a": 1})"}));
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({"a": []})"),
              with_texts("multi", {R"({"a": {"$undefined": true}})"}));
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({"a": [[1, 2]]})"),
              with_texts("multi", {R"({"a": [1, 2]})"}));
    EXPECT_EQ(keys_text(R"({"a.b": 1})", R"({"a": [{"b": 1}, {"b": [2, 3]}, 4]})"),
              with_texts("multi",
                         {R"({"a.b": null})", R"({"a.b": 1})", R"({"a.b": 2})", R"({"a.b": 3})"}));
    EXPECT_EQ(keys_text(R"({"a.b": 1})", R"({"a": []})"),
              with_texts("multi", {R"({"a.b": null})"}));
    EXPECT_EQ(keys_text(R"({"a.b": 1})", R"({"a": 7})"),
              with_texts("single", {R"({"a.b": null})"}));
    EXPECT_EQ(keys_text(R"({"a.0": 1})", R"({"a": [5, 6]})"),
              with_texts("multi", {R"({"a.0": 5})"}));
    EXPECT_EQ(keys_text(R"({"a.0": 1})", R"({"a": [{"0": 9}]})"),
              with_texts("multi", {R"({"a.0": 9})", R"({"a.0": {"0": 9}})"}));
    EXPECT_EQ(keys_text(R"({"a": 1, "b": 1})", R"({"a": [1, 2], "b": 3})"),
              with_texts("multi", {R"({"a": 1, "b": 3})", R"({"a": 2, "b": 3})"}));
    EXPECT_EQ(keys_text(R"({"a.b": 1, "a.c": 1})", R"({"a": [{"b": 1, "c": 2}, {"b": 3}]})"),
              with_texts("multi", {R"({"a.b": 1, "a.c": 2})", R"({"a.b": 3, "a.c": null})"}));
    EXPECT_EQ(keys_text(R"({"a.b": 1, "a": 1})", R"({"a": [{"b": 1}]})"),
              with_texts("multi", {R"({"a.b": 1, "a": {"b": 1}})"}));
}

TEST(IndexKeys, ParallelArraysAreRefused) {
    EXPECT_EQ(keys_text(R"({"a": 1, "b": 1})", R"({"a": [1], "b": [2]})"), "error 171");
    EXPECT_EQ(keys_text(R"({"a": 1, "b": 1})", R"({"a": [], "b": []})"), "error 171");
    EXPECT_EQ(keys_text(R"({"a.b": 1, "a.c": 1})", R"({"a": [{"b": [1], "c": [2]}]})"),
              "error 171");
}

TEST(IndexKeys, SparseLeavesOutWhatHasNoneOfTheFields) {
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({"b": 1})", true), "single");
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({"a": null})", true),
              with_texts("single", {R"({"a": null})"}));
    EXPECT_EQ(keys_text(R"({"a": 1, "b": 1})", R"({"b": 1})", true),
              with_texts("single", {R"({"a": null, "b": 1})"}));
    EXPECT_EQ(keys_text(R"({"a": 1})", R"({"a": []})", true),
              with_texts("multi", {R"({"a": {"$undefined": true}})"}));
}

TEST(IndexKeyPattern, RefusesWhatIsNoPattern) {
    const auto code = [](const char* pattern) {
        return outcome_code(IndexKeyPattern::parse(from(pattern)));
    };
    EXPECT_EQ(code("{}"), "67");
    EXPECT_EQ(code(R"({"a": 0})"), "67");
    EXPECT_EQ(code(R"({"a": "text"})"), "67");
    EXPECT_EQ(code(R"({"a": true})"), "67");
    EXPECT_EQ(code(R"({"$**": 1})"), "67");
    EXPECT_EQ(code(R"({"a..b": 1})"), "67");
    EXPECT_EQ(code(R"({"": 1})"), "67");
    EXPECT_EQ(code(R"({"a": 1, "b.c": -1.0})"), "ok");
    std::string wide = "{\"f0\": 1";
    for (int i = 1; i < 33; ++i) wide += ", \"f" + std::to_string(i) + "\": 1";
    EXPECT_EQ(code((wide + "}").c_str()), "67");
}

}  // namespace
}  // namespace angelia::engine::query
