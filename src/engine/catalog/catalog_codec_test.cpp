// The stored bytes of the catalog: stores written by an older build are opened by a newer one.
#include "engine/testing/test_engine.h"

#include "engine/catalog/catalog.h"

#include <gtest/gtest.h>

namespace angelia::engine {
namespace {

using namespace testing_support;

std::string to_hex(std::string_view bytes) {
    std::string out;
    for (char c : bytes) {
        constexpr char kDigits[] = "0123456789abcdef";
        out += kDigits[static_cast<unsigned char>(c) >> 4];
        out += kDigits[static_cast<unsigned char>(c) & 15];
    }
    return out;
}

TEST(CatalogFormat, KeysAndCounters) {
    EXPECT_EQ(to_hex(catalog_key(0x01020304)), to_hex("catalog/collection/") + "01020304");
    EXPECT_EQ(to_hex(counter_key(5)), to_hex("counter/") + "00000005");
    EXPECT_EQ(to_hex(encode_counters({1, 258, 3})),
              "000000000000000100000000000001020000000000000003");
    const auto counters = decode_counters(encode_counters({7, -8, 9}));
    EXPECT_EQ(counters.count, 7);
    EXPECT_EQ(counters.bytes, -8);
    EXPECT_EQ(counters.next_record, 9u);
}

TEST(CatalogFormat, ACollectionWithEveryKindOfIndex) {
    auto collection = std::make_shared<Collection>();
    collection->ns = {"db", "c"};
    collection->id = 3;
    collection->options = doc(R"({"comment": "x"})");
    collection->indexes.push_back(make_index(4, id_index_spec(), false).value_or_throw());
    auto spec = index_spec("a_1", R"({"a": 1})");
    spec.sparse = true;
    spec.expire_after_seconds = 60;
    spec.extra = doc(R"({"hidden": true})");
    collection->indexes.push_back(make_index(5, spec, true).value_or_throw());
    auto partial = index_spec("b_1", R"({"b": -1})");
    partial.unique = true;
    partial.partial_filter = doc(R"({"b": {"$gt": 0}})");
    collection->indexes.push_back(make_index(6, partial, false).value_or_throw());
    const auto stored = encode_collection(*collection);
    EXPECT_EQ(
        text(stored),
        R"({"id":3,"db":"db","name":"c","uuid":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}},"options":{"comment":"x"},"indexes":[)"
        R"({"id":4,"name":"_id_","key":{"_id":1},"unique":true,"sparse":false,"multikey":false},)"
        R"({"id":5,"name":"a_1","key":{"a":1},"unique":false,"sparse":true,"multikey":true,"ttl":60,"extra":{"hidden":true}},)"
        R"({"id":6,"name":"b_1","key":{"b":-1},"unique":true,"sparse":false,"multikey":false,"partial":{"b":{"$gt":0}}}]})");
    EXPECT_EQ(text(encode_collection(*decode_collection(stored).value_or_throw())), text(stored));
}

TEST(CatalogFormat, DamageIsAnError) {
    EXPECT_EQ(code_of(decode_collection(doc(R"({"id": 1})"))), "InternalError");
    EXPECT_EQ(
        code_of(decode_collection(doc(
            R"({"id": 1, "db": "d", "name": "c", "uuid": {"$uuid": "00000000-0000-0000-0000-000000000000"}, "indexes": []})"))),
        "InternalError");
}

}  // namespace
}  // namespace angelia::engine
