// validate must see each kind of damage. The damage is done behind the engine's back, through the
// storage.
#include "engine/catalog/catalog.h"
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

namespace angelia::engine {
namespace {

using namespace testing_support;
using storage::Family;
const Namespace kChecked{"test", "checked"};

struct ValidateFixture {
    TestEngine engine;
    std::uint32_t id = 0;

    ValidateFixture() {
        engine.create_index(kChecked, index_spec("a_1", R"({"a": 1})")).value_or_throw();
        engine.insert(kChecked, R"({"_id": 1, "a": 1})");
        engine.insert(kChecked, R"({"_id": 2, "a": 2})");
        engine.update(kChecked, R"({"_id": 2})", R"({"$set": {"b": 5}, "$unset": {"gone": 1}})");
        engine.insert(kChecked, R"({"_id": 3, "a": 3})");
        engine.remove(kChecked, R"({"_id": 3})");
        id = engine->list_collections("test")[0].id;
    }
    std::string key_of(Family family, const std::string& prefix, std::string_view part) {
        auto it = engine->storage().latest().iterate(family, prefix, storage::prefix_end(prefix));
        it->seek_to_first();
        while (it->valid() && it->value().find(part) == std::string_view::npos) it->next();
        return std::string(it->key());
    }
    void damage(const std::function<void(storage::ApplySection&)>& change) {
        auto section = engine->storage().begin_apply();
        change(*section);
        section->commit().value_or_throw();
    }
    void expect_error(std::string_view part) {
        const auto found = engine.validate(kChecked);
        EXPECT_NE(found.find(part), std::string::npos) << found;
    }
    void rewrite(storage::RecordId record, std::string_view json) {
        damage([&](auto& section) {
            section.put(Family::Records, storage::record_key(id, record),
                        storage::record_value({}, doc(json).bytes()));
        });
    }
};

TEST(Validate, ReportsWhatAHealthyCollectionHolds) {
    ValidateFixture f;
    const auto report = f.engine->validate(kChecked).value_or_throw();
    const auto view = report.view();
    EXPECT_TRUE(view["valid"].truthy());
    EXPECT_EQ(view["nrecords"].to_int64(), 2);
    EXPECT_EQ(bson::to_json(view["keysPerIndex"]), R"({"_id_":2,"a_1":2})");
    EXPECT_EQ(view["oplogEntriesChecked"].to_int64(), 7);
}

TEST(Validate, SeesAMissingIndexEntry) {
    ValidateFixture f;
    // Ids are given in order: collection, _id_, a_1.
    const auto prefix = storage::index_prefix(f.id + 2);
    f.damage([&](auto& section) {
        section.erase(Family::Indexes, f.key_of(Family::Indexes, prefix, ""));
    });
    f.expect_error("index a_1 has no entry for record 1");
}

TEST(Validate, SeesAnOrphanedIndexEntry) {
    ValidateFixture f;
    f.damage([&](auto& section) {
        section.put(Family::Indexes, storage::index_entry(f.id + 2, "zz", 77), "");
    });
    f.expect_error("index a_1 points to record 77, which is not there");
}

TEST(Validate, SeesAKeyTheDocumentDoesNotHave) {
    ValidateFixture f;
    f.damage([&](auto& section) {
        section.put(Family::Indexes, storage::index_entry(f.id + 2, "zz", 1), "");
    });
    f.expect_error("index a_1 has a key for record 1 that the document does not have");
}

TEST(Validate, SeesWrongCounters) {
    ValidateFixture f;
    f.damage([&](auto& section) {
        section.put(Family::Meta, counter_key(f.id), encode_counters({7, 8, 1}));
    });
    f.expect_error("the counter says 7 documents, there are 2");
    f.expect_error("the next record id 1 is not above");
}

TEST(Validate, SeesARecordThatDiffersFromTheOplog) {
    ValidateFixture f;
    f.rewrite(1, R"({"_id": 1, "a": 1, "more": true})");
    f.expect_error("holds another document than the record");
    f.rewrite(2, R"({"_id": 2, "a": 2, "b": 6})");
    f.expect_error("sets 'b' to another value than the record has");
}

TEST(Validate, SeesARecordThatIsGone) {
    ValidateFixture f;
    f.damage([&](auto& section) { section.erase(Family::Records, storage::record_key(f.id, 1)); });
    f.expect_error("points to record 1, which is not there");
    f.expect_error("says that it exists, but the document is not there");
}

TEST(Validate, SeesDamagedBytes) {
    ValidateFixture f;
    f.damage([&](auto& section) {
        section.put(Family::Records, storage::record_key(f.id, 1),
                    storage::record_value({}, "\x07\x00\x00\x00zz"));
    });
    f.expect_error("record 1 is no well-formed document");
}

TEST(Validate, NeedsTheCollection) {
    TestEngine engine;
    EXPECT_EQ(code_of(engine->validate(kChecked)), "NamespaceNotFound");
}

}  // namespace
}  // namespace angelia::engine
