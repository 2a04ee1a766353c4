#include "engine/query/disambiguated_paths.h"

#include "engine/query/test_json.h"

#include <gtest/gtest.h>

namespace angelia::engine::query {
namespace {

using testing_support::from;

/// For one updated path; `after` is the document behind the update.
std::string paths_of(std::string_view path, const std::string& after) {
    UpdateDescription description;
    description.updated_fields = bson::make(path, true);
    const auto document = from(after);
    return bson::to_json(disambiguated_paths(description, document.view(), document.view()));
}

TEST(DisambiguatedPaths, PlainOnesAreNotListed) {
    EXPECT_EQ(paths_of("a", R"({"a": 1})"), "{}");
    EXPECT_EQ(paths_of("0", R"({"0": 1})"), "{}");
    EXPECT_EQ(paths_of("a.b", R"({"a": {"b": 1}})"), "{}");
    EXPECT_EQ(paths_of("a.0.1.b", R"({"a": [[0, {"b": 1}]]})"), "{}");
}

TEST(DisambiguatedPaths, NumbersAreNamesInDocumentsAndIndexesInArrays) {
    EXPECT_EQ(paths_of("a.0", R"({"a": {"0": 1}})"), R"({"a.0":["a","0"]})");
    EXPECT_EQ(paths_of("a.0.1", R"({"a": [{"1": 1}]})"), R"({"a.0.1":["a",0,"1"]})");
    EXPECT_EQ(paths_of("a.0.1", R"({"a": {"0": [5, 6]}})"), R"({"a.0.1":["a","0",1]})");
}

TEST(DisambiguatedPaths, DotsInsideNamesAreKept) {
    EXPECT_EQ(paths_of("a.b", R"({"a.b": 1})"), R"({"a.b":["a.b"]})");
    EXPECT_EQ(paths_of("x.b.c", R"({"x": {"b.c": 1}})"), "{}");
    EXPECT_EQ(paths_of("x.y.0.b.c", R"({"x.y": [{"b.c": 1}]})"),
              R"({"x.y.0.b.c":["x.y",0,"b.c"]})");
}

TEST(DisambiguatedPaths, WhatWasRemovedIsFoundInTheDocumentBefore) {
    UpdateDescription description;
    description.removed_fields = bson::array("a.0", "b", "c.d");
    const auto before = from(R"({"a": {"0": 1, "k": 1}, "b": 1, "c": {"d": 1}})");
    const auto after = from(R"({"a": {"k": 1}, "c": {}})");
    EXPECT_EQ(bson::to_json(disambiguated_paths(description, before.view(), after.view())),
              R"({"a.0":["a","0"]})");
}

TEST(DisambiguatedPaths, TruncatedArraysToo) {
    UpdateDescription description;
    description.truncated_arrays =
        bson::array(bson::make("field", "a.1", "newSize", std::int32_t{2}));
    const auto after = from(R"({"a": {"1": [1, 2]}})");
    EXPECT_EQ(bson::to_json(disambiguated_paths(description, after.view(), after.view())),
              R"({"a.1":["a","1"]})");
}

}  // namespace
}  // namespace angelia::engine::query
