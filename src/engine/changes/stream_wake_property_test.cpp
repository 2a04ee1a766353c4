// Random filters against random entries: whoever is shown something was woken for it, however its
// filter was taken apart; and being woken for nothing is the exception.
#include "engine/changes/testing/fake_oplog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace angelia::engine::changes {
namespace {

using test::Bell;
using test::World;

class Dice {
  public:
    explicit Dice(std::uint32_t seed) : random_(seed) {}
    int roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
    std::string pick(std::initializer_list<const char*> list) {
        return *(list.begin() + roll(static_cast<int>(list.size())));
    }
    std::string scalar() {
        return pick({"1", "2", "2.0", R"("x")", R"("y")", "true", "null",
                     R"({"$oid": "000000000000000000000001"})"});
    }
    std::string path() {
        return pick({"fullDocument.a", "fullDocument.b", "fullDocument.a.c", "documentKey._id",
                     "operationType", "ns.coll", "ns.db", "fullDocumentBeforeChange.a",
                     "updateDescription.updatedFields.a"});
    }
    std::string value_of(const std::string& path) {
        if (path == "operationType")
            return pick({R"("insert")", R"("update")", R"("delete")", R"("drop")"});
        if (path == "ns.coll") return pick({R"("c0")", R"("c1")", R"("c2")"});
        if (path == "ns.db") return pick({R"("d")", R"("e")"});
        return scalar();
    }
    std::string condition(const std::string& path) {
        switch (roll(6)) {
            case 0:
                return fmt::format(R"({{"$eq": {}}})", value_of(path));
            case 1:
                return fmt::format(R"({{"$in": [{}, {}]}})", value_of(path), value_of(path));
            case 2:
                return fmt::format(R"({{"$ne": {}}})", value_of(path));
            case 3:
                return R"({"$exists": true})";
            default:
                return value_of(path);
        }
    }
    std::string filter(int depth) {
        std::string text = "{";
        const int conditions = 1 + roll(2);
        for (int i = 0; i < conditions; ++i) {
            const std::string name = path();
            text += fmt::format(R"({}"{}": {})", i > 0 ? ", " : "", name, condition(name));
        }
        if (depth > 0 && roll(2) == 0)
            text += fmt::format(R"(, "{}": [{}, {}])", pick({"$and", "$or", "$nor"}),
                                filter(depth - 1), filter(depth - 1));
        return text + "}";
    }
    std::string options() {
        return pick({"{}", "{}", R"({"fullDocument": "updateLookup"})",
                     R"({"fullDocument": "whenAvailable"})", R"({"showExpandedEvents": true})",
                     R"({"fullDocumentBeforeChange": "whenAvailable"})"});
    }
    bson::Document document() {
        const auto text = fmt::format(R"({{"a": {}, "b": {}}})",
                                      pick({"1", R"("x")", R"([1, "y"])", R"({"c": 2})",
                                            R"([{"c": "x"}, {"c": 1}])", "null"}),
                                      scalar());
        return bson::from_json(text).value_or_throw();
    }

  private:
    std::mt19937 random_;
};

void random_entry(World& world, Dice& dice) {
    const std::string ns = dice.pick({"d.c0", "d.c1", "d.c2", "e.c0"});
    const std::int32_t id = dice.roll(3);
    switch (dice.roll(8)) {
        case 0:
            world.feed.remove(ns, id);
            return;
        case 1:
            world.feed.update(ns, id, dice.document());
            return;
        case 2:
            world.feed.after = dice.document();
            world.feed.before = dice.document();
            world.feed.update(ns, id, dice.document());
            world.feed.after = {};
            world.feed.before = {};
            return;
        case 3:
            world.feed.replace(ns, id, dice.document());
            return;
        case 4:
            world.feed.write(OpKind::Command, ns, {}, bson::make("create", ns.substr(2)));
            return;
        default:
            world.feed.insert(ns, id, dice.document());
    }
}

class WakeProperty : public ::testing::TestWithParam<std::uint32_t> {};

struct Watcher {
    std::string ns, options, stages;
    std::shared_ptr<ChangeStream> stream;
    Bell bell;

    /// What a stream shows that reads the newest entry itself, without having waited for it.
    std::string shown(World& world) const {
        const auto given = bson::from_json(options).value_or_throw();
        bson::Builder b;
        b.add_all(given.view()).add("startAtOperationTime", world.oplog.newest_durable());
        return test::text_of(*world.watch(ns, bson::to_json(b.take()), stages));
    }
};

TEST_P(WakeProperty, NothingIsShownWithoutAWakeUp) {
    Dice dice(GetParam());
    World world;
    for (std::int32_t id = 0; id < 2; ++id) world.documents[id] = dice.document();
    std::vector<std::unique_ptr<Watcher>> watchers;
    for (int i = 0; i < 100; ++i) {
        auto watcher = std::make_unique<Watcher>();
        watcher->ns = dice.pick({"d.c0", "d.c1", "d", "e"});
        watcher->options = dice.options();
        watcher->stages = fmt::format(R"([{{"$match": {}}}])", dice.filter(2));
        watcher->stream = world.watch(watcher->ns, watcher->options, watcher->stages);
        watcher->bell.hang(*watcher->stream);
        watchers.push_back(std::move(watcher));
    }
    int shown = 0, woken = 0;
    for (int round = 0; round < 40; ++round) {
        std::vector<int> before;
        for (const auto& watcher : watchers) before.push_back(watcher->bell.rung());
        random_entry(world, dice);
        for (std::size_t i = 0; i < watchers.size(); ++i) {
            Watcher& watcher = *watchers[i];
            const bool rang = watcher.bell.rung() > before[i];
            const std::string text = watcher.shown(world);
            ASSERT_TRUE(rang || text.empty()) << watcher.ns << watcher.stages << text;
            ASSERT_EQ(test::text_of(*watcher.stream), text) << watcher.ns << watcher.stages;
            shown += text.empty() ? 0 : 1;
            woken += rang ? 1 : 0;
            if (rang) watcher.bell.hang(*watcher.stream);
        }
    }
    EXPECT_GT(shown, 50);
    EXPECT_LT(woken, shown * 2);
    EXPECT_LT(world.streams.counters().candidates, 100u * 40u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WakeProperty, ::testing::Range(1u, 4u));

}  // namespace
}  // namespace angelia::engine::changes
