// Modified and renamed collections, also after the next start.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

namespace angelia::engine {
namespace {

using namespace testing_support;
const Namespace kOld{"shop", "old"};
const Namespace kNew{"shop", "new"};

Result<bson::Timestamp> rename(TestEngine& engine, const Namespace& from, const Namespace& to,
                               RenameOptions options = {}) {
    std::promise<Result<bson::Timestamp>> answer;
    engine->rename_collection(from, to, options, [&](Result<bson::Timestamp> renamed) {
        answer.set_value(std::move(renamed));
    });
    return answer.get_future().get();
}

Result<CollectionChanged> modify(TestEngine& engine, const Namespace& ns, CollectionChange change) {
    std::promise<Result<CollectionChanged>> answer;
    engine->modify_collection(ns, std::move(change), [&](Result<CollectionChanged> changed) {
        answer.set_value(std::move(changed));
    });
    return answer.get_future().get();
}

CollectionChange index_change(std::string name, std::optional<std::int64_t> expire,
                              std::optional<bool> hidden) {
    CollectionChange change;
    change.index.emplace();
    change.index->name = std::move(name);
    change.index->expire_after_seconds = expire;
    change.index->hidden = hidden;
    return change;
}

std::string listed(TestEngine& engine, const Namespace& ns) {
    std::string text;
    for (const auto& spec : engine->list_indexes(ns).value_or_throw())
        text +=
            spec.name + (spec.extra["hidden"].truthy() ? " hidden" : "") +
            (spec.expire_after_seconds ? " " + std::to_string(*spec.expire_after_seconds) : "") +
            ", ";
    return text;
}

TEST(RenamedCollection, GoesOnUnderItsNewName) {
    TestEngine engine;
    engine.create_index(kOld, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    engine.insert(kOld, R"({"_id": 1, "a": 5})");
    rename(engine, kOld, kNew).value_or_throw();
    EXPECT_EQ(engine.count(kOld), 0);
    EXPECT_EQ(engine.find(kNew, R"({"a": 5})"), std::vector<std::string>{R"({"_id":1,"a":5})"});
    EXPECT_FALSE(engine.insert(kNew, R"({"_id": 2, "a": 6})").error);
    EXPECT_EQ(code_of(engine.insert(kNew, R"({"_id": 1})")), "DuplicateKey");
    EXPECT_FALSE(engine.insert(kOld, R"({"_id": 1})").error);  // another collection now
    EXPECT_EQ(engine.validate(kNew), "valid");
    EXPECT_EQ(engine.validate(kOld), "valid");
    EXPECT_EQ(engine.count(kNew), 2);
}

TEST(RenamedCollection, EndsItsCursors) {
    TestEngine engine;
    for (std::int32_t i = 0; i < 10; ++i) engine.insert(kOld, bson::make("_id", i));
    FindSpec spec;
    spec.ns = kOld;
    spec.batch_size = 2;
    const auto first = engine->find(spec).value_or_throw();
    rename(engine, kOld, kNew).value_or_throw();
    GetMoreSpec more;
    more.cursor_id = first.cursor_id;
    more.ns = kOld;
    EXPECT_EQ(code_of(engine.get_more(more)), "QueryPlanKilled");
}

TEST(RenamedCollection, ReplacesOnlyTheTargetThatWasMeant) {
    TestEngine engine;
    engine.insert(kOld, R"({"_id": 1})");
    engine.insert(kNew, R"({"_id": 2})");
    EXPECT_EQ(code_of(rename(engine, kOld, kNew)), "NamespaceExists");
    RenameOptions other;
    other.drop_target = true;
    other.target_uuid = Uuid{1, 2, 3};
    EXPECT_EQ(code_of(rename(engine, kOld, kNew, other)), "NamespaceExists");
    EXPECT_EQ(engine.count(kNew), 1);
    other.target_uuid = engine->list_collections("shop")[0].uuid;  // "new" comes before "old"
    rename(engine, kOld, kNew, other).value_or_throw();
    EXPECT_EQ(engine.find(kNew), std::vector<std::string>{R"({"_id":1})"});
    EXPECT_EQ(engine->list_collections("shop").size(), 1u);
}

TEST(RenamedCollection, KeepsToTheCaseOfDatabases) {
    TestEngine engine;
    engine.insert(kOld, R"({"_id": 1})");
    engine.insert({"other", "c"}, R"({"_id": 1})");
    EXPECT_EQ(code_of(rename(engine, kOld, {"Other", "c"})), "DatabaseDifferCase");
    EXPECT_EQ(engine.count(kOld), 1);
    // The only collection takes its database with it.
    rename(engine, kOld, {"SHOP", "c"}).value_or_throw();
    EXPECT_EQ(engine->list_databases(), (std::vector<std::string>{"SHOP", "other"}));
}

TEST(ModifiedCollection, SurvivesTheNextStartAsARenamedOneDoes) {
    const TempFolder folder;
    {
        TestEngine engine(folder_options(folder.path()));
        engine.create_index(kOld, index_spec("a_1", R"({"a": 1})")).value_or_throw();
        engine.insert(kOld, R"({"_id": 1, "a": 5})");
        auto change = index_change("a_1", 100, true);
        change.keep_images = true;
        modify(engine, kOld, std::move(change)).value_or_throw();
        rename(engine, kOld, kNew).value_or_throw();
        engine.close();
    }
    TestEngine engine(folder_options(folder.path()));
    EXPECT_EQ(engine.count(kOld), 0);
    EXPECT_EQ(engine.find(kNew), std::vector<std::string>{R"({"_id":1,"a":5})"});
    EXPECT_EQ(listed(engine, kNew), "_id_, a_1 hidden 100, ");
    EXPECT_EQ(text(engine->list_collections("shop").at(0).options),
              R"({"changeStreamPreAndPostImages":{"enabled":true}})");
    engine.update(kNew, R"({"_id": 1})", R"({"$set": {"a": 6}})");
    const auto entries =
        engine->oplog().read({engine->oplog().oldest(), 0}, 100, 1 << 20).value_or_throw();
    EXPECT_EQ(bson::to_json(entries.back()->before_image()), R"({"_id":1,"a":5})");
    EXPECT_EQ(bson::to_json(entries.back()->after_image()), R"({"_id":1,"a":6})");
    EXPECT_EQ(engine.validate(kNew), "valid");
}

TEST(ModifiedCollection, ExpiresByTheNewTime) {
    TestEngine engine;
    engine.create_index(kOld, index_spec("at_1", R"({"at": 1})")).value_or_throw();
    engine.insert(kOld, bson::make("_id", std::int32_t{1}, "at", bson::Date{0}));
    EXPECT_EQ(engine->run_ttl_pass().value_or_throw(), 0);
    const auto changed = modify(engine, kOld, index_change("at_1", 10, {})).value_or_throw();
    EXPECT_FALSE(changed.expire_old.has_value());
    EXPECT_EQ(changed.expire_new, 10);
    EXPECT_EQ(engine->run_ttl_pass().value_or_throw(), 1);
    EXPECT_EQ(engine.count(kOld), 0);
}

TEST(ModifiedCollection, AHiddenIndexStillHolds) {
    TestEngine engine;
    auto unique = index_spec("u_1", R"({"u": 1})");
    unique.unique = true;
    engine.create_index(kOld, std::move(unique)).value_or_throw();
    engine.insert(kOld, R"({"_id": 1, "u": 1})");
    modify(engine, kOld, index_change("u_1", {}, true)).value_or_throw();
    EXPECT_EQ(code_of(engine.insert(kOld, R"({"_id": 2, "u": 1})")), "DuplicateKey");
    modify(engine, kOld, index_change("u_1", {}, false)).value_or_throw();
    EXPECT_EQ(listed(engine, kOld), "_id_, u_1, ");
    EXPECT_EQ(engine.validate(kOld), "valid");
}

}  // namespace
}  // namespace angelia::engine
