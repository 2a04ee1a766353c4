#include <angelia/bson/builder.h>

#include "bson/decimal.h"
#include "bson/test_documents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <thread>

namespace angelia::bson {
namespace {

using test::one;

TEST(DocumentView, FindsTheFirstFieldOfAName) {
    const Document d = make("a", std::int32_t{1}, "b", "x", "a", std::int32_t{2});
    EXPECT_EQ(d["a"].as_int32(), 1);
    EXPECT_EQ(d["b"].as_string(), "x");
    EXPECT_TRUE(d["c"].is_missing());
    EXPECT_FALSE(d.has(""));
    EXPECT_EQ(d.view().count(), 3U);
}

TEST(DocumentView, WalksPathsThroughDocumentsAndArrayIndexes) {
    const Document d = make("a", make("b", array(make("c", "deep"), "x")), "a.b", "dotted");
    EXPECT_EQ(d.view().find_path("a.b.0.c").as_string(), "deep");
    EXPECT_EQ(d.view().find_path("a.b.1").as_string(), "x");
    EXPECT_TRUE(d.view().find_path("a.b.c").is_missing());
    EXPECT_TRUE(d.view().find_path("a.b.0.c.d").is_missing());
    EXPECT_TRUE(d.view().find_path("z.b").is_missing());
    EXPECT_EQ(d["a.b"].as_string(), "dotted");
}

TEST(DocumentView, IteratesInOrderOverEveryType) {
    const Document d = test::all_types();
    Builder copy;
    std::string names;
    for (const Element& e : d.view()) {
        names += e.key;
        names += ' ';
        copy.add(e.key, e.value);
    }
    EXPECT_EQ(names,
              "double string document array binary old_binary uuid undefined id bool date old_date "
              "null regex pointer code symbol scoped int32 timestamp "
              "int64 decimal min max  ");
    EXPECT_EQ(copy.take().bytes(), d.bytes());
}

TEST(DocumentView, TheEmptyOneHasFiveBytes) {
    EXPECT_TRUE(DocumentView().empty());
    EXPECT_EQ(Document().size_bytes(), 5U);
    EXPECT_EQ(DocumentView().count(), 0U);
}

TEST(ValueView, GettersAskForExactlyTheirType) {
    const Document d = make("s", "x", "d", Document{}, "a", array(), "b", true, "i",
                            test::object_id(1), "t", Timestamp{1, 2}, "at", Date{3});
    EXPECT_EQ(d["s"].get_string(), "x");
    EXPECT_EQ(d["b"].get_string(), std::nullopt);
    EXPECT_TRUE(d["d"].get_document().has_value());
    EXPECT_FALSE(d["a"].get_document().has_value());
    EXPECT_TRUE(d["a"].get_array().has_value());
    EXPECT_EQ(d["b"].get_bool(), true);
    EXPECT_EQ(d["i"].get_object_id(), test::object_id(1));
    EXPECT_EQ(d["t"].get_timestamp(), (Timestamp{1, 2}));
    EXPECT_EQ(d["at"].get_date(), Date{3});
    EXPECT_EQ(d["at"].get_timestamp(), std::nullopt);
    EXPECT_EQ(test::symbol("y")["v"].get_string(), std::nullopt);
}

std::optional<std::int64_t> as_int64(const Document& d) { return d["v"].to_int64(); }

TEST(ValueView, ConvertsNumbersToInt64OnlyWhenNothingIsLost) {
    EXPECT_EQ(as_int64(one(std::int32_t{-5})), -5);
    EXPECT_EQ(as_int64(one(5.0)), 5);
    EXPECT_EQ(as_int64(one(5.5)), std::nullopt);
    EXPECT_EQ(as_int64(one(std::nan(""))), std::nullopt);
    EXPECT_EQ(as_int64(one(9223372036854775808.0)), std::nullopt);
    EXPECT_EQ(as_int64(one(-9223372036854775808.0)), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(as_int64(one(decimal_from_int64(7))), 7);
    EXPECT_EQ(as_int64(one(true)), std::nullopt);
    EXPECT_EQ(as_int64(one("5")), std::nullopt);
}

TEST(ValueView, KnowsTruth) {
    const Document truths =
        make("a", std::int32_t{2}, "b", 0.5, "c", "", "d", Document{}, "e", array(), "f", true, "g",
             std::nan(""), "h", Date{0}, "i", decimal_from_string("1E-6176").value());
    for (const Element& e : truths.view()) EXPECT_TRUE(e.value.truthy()) << e.key;
    const Document lies =
        make("a", std::int32_t{0}, "b", -0.0, "c", Null{}, "d", Undefined{}, "e", false, "f",
             std::int64_t{0}, "g", decimal_from_string("0E5").value());
    for (const Element& e : lies.view()) EXPECT_FALSE(e.value.truthy()) << e.key;
    EXPECT_FALSE(ValueView().truthy());
}

TEST(ValueViewDeathTest, TakingTheWrongTypeAborts) {
    const Document d = one("x");
    EXPECT_DEATH(static_cast<void>(d["v"].as_int32()), "broken promise");
}

TEST(Builder, BuildsNestedDocuments) {
    Builder b;
    b.add("ok", 1.0)
        .open("cursor")
        .add("id", std::int64_t{0})
        .open_array("batch")
        .push("x")
        .push_document()
        .add("y", true)
        .close()
        .close()
        .close();
    const Document built = b.take();
    const Document expected = make(
        "ok", 1.0, "cursor", make("id", std::int64_t{0}, "batch", array("x", make("y", true))));
    EXPECT_EQ(built.bytes(), expected.bytes());
}

TEST(Builder, WritesTheBytesOfTheSpecificationsExample) {
    const Document d = make("hello", "world");
    EXPECT_EQ(d.bytes(), std::string_view("\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0", 22));
}

TEST(Builder, CopiesAndSkips) {
    const Document source = make("a", std::int32_t{1}, "b", "x");
    Builder b(std::string(100, 'z'));
    b.add_all(source).add("nothing", ValueView{}).add("c", source["b"]);
    EXPECT_EQ(b.take().bytes(), make("a", std::int32_t{1}, "b", "x", "c", "x").bytes());
    const Value five = value(std::int64_t{5});
    EXPECT_EQ(five.view().as_int64(), 5);
}

TEST(BuilderDeathTest, BrokenPromisesAbort) {
    EXPECT_DEATH(make(std::string_view("a\0b", 3), true), "broken promise");
    EXPECT_DEATH(
        {
            Builder b;
            b.open("a");
            b.take();
        },
        "broken promise");
    EXPECT_DEATH(Builder().close(), "broken promise");
}

TEST(ObjectId, WritesAndReadsHexadecimal) {
    const ObjectId id = ObjectId::from_hex("0123456789abcdefABCDEF00").value();
    EXPECT_EQ(id.to_hex(), "0123456789abcdefabcdef00");
    EXPECT_EQ(ObjectId::from_hex("0123456789abcdefabcdef0"), std::nullopt);
    EXPECT_EQ(ObjectId::from_hex("0123456789abcdefabcdef0g"), std::nullopt);
}

TEST(ObjectId, GeneratesDistinctOnesFromManyThreads) {
    std::array<std::vector<ObjectId>, 4> made;
    {
        std::vector<std::jthread> threads;
        for (auto& ids : made) {
            threads.emplace_back([&ids] {
                for (int i = 0; i < 5000; ++i) ids.push_back(ObjectId::generate());
            });
        }
    }
    std::set<ObjectId> all;
    for (const auto& ids : made) all.insert(ids.begin(), ids.end());
    EXPECT_EQ(all.size(), 20'000U);
}

TEST(TypeAlias, IsWhatTheTypeOperatorCallsIt) {
    EXPECT_EQ(type_alias(Type::Binary), "binData");
    EXPECT_EQ(type_alias(Type::Int32), "int");
    EXPECT_EQ(type_alias(Type::Missing), "missing");
    EXPECT_EQ(type_alias(Type::JavaScriptWithScope), "javascriptWithScope");
}

}  // namespace
}  // namespace angelia::bson
