// What reads see: the newest moment that nothing can take away, with the catalog that belongs to
// it. The disk's syncs are held or fail, so that there is more in the store than in that moment.
#include "engine/storage/testing/fault_env.h"
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace angelia::engine {
namespace {

using namespace testing_support;
using storage::testing::FaultEnvironment;
const Namespace kThings{"test", "things"};

class Views : public ::testing::Test {
  protected:
    Views() {
        auto options = folder_options(folder_.path());
        options.storage.environment = disk_.environment();
        options.storage.resume_retry = milliseconds(2);
        options.slow_move = microseconds(0);  // every move teaches the gap cache
        engine_.emplace(std::move(options));
    }
    ~Views() override { disk_.release_log_syncs(); }

    TestEngine& engine() { return *engine_; }
    /// Applied, not synced, and not waited for.
    void write_without_waiting(ConditionalWrite write) {
        WriteRequest request;
        request.writes.push_back(std::move(write));
        request.wait_durable = false;
        EXPECT_TRUE(engine().write(std::move(request)));
    }
    void insert_without_waiting(std::string_view json) {
        ConditionalWrite write;
        write.kind = WriteKind::Insert;
        write.ns = kThings;
        write.document = doc(json);
        write_without_waiting(std::move(write));
    }
    void remove_without_waiting(std::string_view filter) {
        ConditionalWrite write;
        write.kind = WriteKind::Delete;
        write.ns = kThings;
        write.multi = true;
        write.filter = matcher(filter);
        write_without_waiting(std::move(write));
    }
    std::vector<std::string> aggregate(std::string_view pipeline) {
        AggregateSpec spec;
        spec.ns = kThings;
        const auto wrapped = doc("{\"p\": " + std::string(pipeline) + "}");
        spec.pipeline = bson::Document(*wrapped["p"].get_array());
        std::vector<std::string> found;
        for (const auto& document : engine()->aggregate(spec).value_or_throw().documents)
            found.push_back(text(document));
        return found;
    }
    std::vector<std::string> collections() {
        std::vector<std::string> names;
        for (const auto& info : engine()->list_collections("test")) names.push_back(info.name);
        return names;
    }
    /// True once reads see as much as writes.
    void catch_up() {
        disk_.release_log_syncs();
        auto& storage = engine()->storage();
        EXPECT_TRUE(storage.wait_durable(storage.applied()));
    }

    TempFolder folder_;
    FaultEnvironment disk_;
    std::optional<TestEngine> engine_;
};

using Lines = std::vector<std::string>;

TEST_F(Views, NoReadShowsWhatIsNotSynced) {
    engine().insert(kThings, R"({"_id": 1, "a": 1})");
    const auto before = engine()->operation_time();
    disk_.hold_log_syncs();
    insert_without_waiting(R"({"_id": 2, "a": 2})");
    EXPECT_EQ(engine().find(kThings), Lines{R"({"_id":1,"a":1})"});
    EXPECT_EQ(engine().find(kThings, R"({"_id": 2})"), Lines{});
    EXPECT_EQ(engine().find(kThings, "{}", R"({"a": -1})"), Lines{R"({"_id":1,"a":1})"});
    EXPECT_EQ(engine().count(kThings), 1);
    EXPECT_EQ(engine().count(kThings, R"({"a": {"$gt": 0}})"), 1);
    EXPECT_EQ(aggregate(R"([{"$match": {"a": {"$gt": 0}}}, {"$count": "n"}])"),
              Lines{R"({"n":1})"});
    EXPECT_EQ(engine()->collection_stats(kThings).value_or_throw().count, 1);
    EXPECT_EQ(engine()->operation_time(), before);
    catch_up();
    EXPECT_EQ(engine().count(kThings), 2);
    EXPECT_EQ(engine().find(kThings, R"({"_id": 2})"), Lines{R"({"_id":2,"a":2})"});
    EXPECT_GT(engine()->operation_time(), before);
}

TEST_F(Views, WhatIsDeletedIsThereUntilTheDeleteIsSynced) {
    engine().insert(kThings, R"({"_id": 1})");
    engine().insert(kThings, R"({"_id": 2})");
    disk_.hold_log_syncs();
    remove_without_waiting(R"({"_id": 1})");
    EXPECT_EQ(engine().find(kThings), (Lines{R"({"_id":1})", R"({"_id":2})"}));
    EXPECT_EQ(engine().find(kThings, R"({"_id": 1})"), Lines{R"({"_id":1})"});
    EXPECT_EQ(engine().count(kThings), 2);
    catch_up();
    EXPECT_EQ(engine().find(kThings), Lines{R"({"_id":2})"});
}

TEST_F(Views, CollectionsAndIndexesAppearAndGoWhenTheyAreSynced) {
    const Namespace other{"test", "other"};
    engine().insert(other, R"({"_id": 1})");
    disk_.hold_log_syncs();
    insert_without_waiting(R"({"_id": 1})");
    std::promise<Result<std::int32_t>> dropped;
    std::promise<Result<IndexBuild>> built;
    engine()->drop_collection(other,
                              [&](Result<std::int32_t> r) { dropped.set_value(std::move(r)); });
    std::vector<IndexSpec> specs;
    specs.push_back(index_spec("a_1", R"({"a": 1})"));
    engine()->create_indexes(kThings, std::move(specs),
                             [&](Result<IndexBuild> r) { built.set_value(std::move(r)); });
    EXPECT_EQ(collections(), Lines{"other"});
    EXPECT_EQ(engine()->list_databases(), Lines{"test"});
    EXPECT_EQ(engine().find(other), Lines{R"({"_id":1})"});
    EXPECT_EQ(code_of(engine()->list_indexes(kThings)), "NamespaceNotFound");
    EXPECT_EQ(code_of(engine()->collection_stats(kThings)), "NamespaceNotFound");
    disk_.release_log_syncs();
    dropped.get_future().get().value_or_throw();
    built.get_future().get().value_or_throw();
    EXPECT_EQ(collections(), Lines{"things"});
    EXPECT_EQ(engine()->list_indexes(kThings).value_or_throw().size(), 2u);
}

TEST_F(Views, WhatAFailedSyncTookIsNeverShown) {
    engine().insert(kThings, R"({"_id": 1})");
    disk_.fail_next_log_sync();
    EXPECT_NE(code_of(engine().insert(kThings, R"({"_id": 2})")), "ok");
    EXPECT_EQ(engine().count(kThings), 1);
    EXPECT_EQ(engine().find(kThings), Lines{R"({"_id":1})"});
}

TEST_F(Views, LookUpsOfStreamsAreReadsToo) {
    engine().insert(kThings, R"({"_id": 1, "a": 0})");
    WatchSpec spec;
    spec.ns = kThings;
    spec.options = doc(R"({"fullDocument": "updateLookup"})");
    const auto opened = engine()->open_change_stream_cursor(spec, 100, {}).value_or_throw();
    engine().update(kThings, R"({"_id": 1})", R"({"$set": {"a": 1}})");
    disk_.hold_log_syncs();
    remove_without_waiting("{}");
    GetMoreSpec more;
    more.cursor_id = opened.cursor_id;
    more.ns = kThings;
    const auto batch = engine().get_more(more).value_or_throw();
    ASSERT_EQ(batch.documents.size(), 1u);
    EXPECT_EQ(text(bson::Document(*batch.documents[0]["fullDocument"].get_document())),
              R"({"_id":1,"a":1})");
}

TEST_F(Views, AnIndexThatCameOrWentIsUsedOnlyWhereItsEntriesAre) {
    for (int i = 0; i < 50; ++i)
        engine().insert(kThings, bson::make("_id", std::int32_t{i}, "a", std::int32_t{i % 5}));
    disk_.hold_log_syncs();
    std::promise<Result<IndexBuild>> built;
    std::vector<IndexSpec> specs;
    specs.push_back(index_spec("a_1", R"({"a": 1})"));
    engine()->create_indexes(kThings, std::move(specs),
                             [&](Result<IndexBuild> r) { built.set_value(std::move(r)); });
    EXPECT_EQ(engine().count(kThings, R"({"a": 3})"), 10);
    disk_.release_log_syncs();
    built.get_future().get().value_or_throw();
    EXPECT_EQ(engine().count(kThings, R"({"a": 3})"), 10);
    disk_.hold_log_syncs();
    std::promise<Result<std::int32_t>> dropped;
    engine()->drop_indexes(kThings, bson::value("a_1"),
                           [&](Result<std::int32_t> r) { dropped.set_value(std::move(r)); });
    EXPECT_EQ(engine().count(kThings, R"({"a": 3})"), 10);
    disk_.release_log_syncs();
    dropped.get_future().get().value_or_throw();
    EXPECT_EQ(engine().count(kThings, R"({"a": 3})"), 10);
}

TEST_F(Views, AcknowledgedWritesAreReadByTheirWriterAtOnce) {
    std::atomic<int> missed{0};
    std::vector<std::thread> writers;
    for (int w = 0; w < 4; ++w) {
        writers.emplace_back([&, w] {
            for (int i = 0; i < 50; ++i) {
                const auto id = std::to_string(w * 1000 + i);
                engine().insert(kThings, "{\"_id\": " + id + ", \"w\": " + std::to_string(w) + "}");
                missed += engine().find(kThings, "{\"_id\": " + id + "}").size() == 1 ? 0 : 1;
                const auto own = engine().count(kThings, "{\"w\": " + std::to_string(w) + "}");
                missed += own == i + 1 ? 0 : 1;
            }
        });
    }
    for (auto& writer : writers) writer.join();
    EXPECT_EQ(missed, 0);
}

// Every read sees pairs: each commit puts or deletes both halves, so that a half alone, or a count
// that disagrees with a walk over the documents, is a mixture of moments. The walks go over deleted
// stretches that the gap cache remembers.
TEST_F(Views, ReadsSeeWholeCommitsWhileAQueueRuns) {
    engine().create_index(kThings, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    std::atomic<bool> stop{false};
    std::thread producer([&] {
        for (int i = 0; !stop; ++i) {
            WriteRequest request;
            request.atomic = true;
            request.wait_durable = false;
            const int victim = std::max(0, i - 10);  // one batch holds what is left
            for (int half = 0; half < 2; ++half) {
                ConditionalWrite insert;
                insert.kind = WriteKind::Insert;
                insert.ns = kThings;
                insert.document =
                    bson::make("_id", std::int32_t{2 * i + half}, "a", std::int32_t{i});
                request.writes.push_back(std::move(insert));
                ConditionalWrite remove;
                remove.kind = WriteKind::Delete;
                remove.ns = kThings;
                remove.filter = matcher("{\"_id\": " + std::to_string(2 * victim + half) + "}");
                request.writes.push_back(std::move(remove));
            }
            EXPECT_TRUE(engine().write(std::move(request)));
        }
    });
    for (int i = 0; i < 400; ++i) {
        const auto by_index = engine().count(kThings, R"({"a": {"$gte": 0}})");
        EXPECT_EQ(by_index % 2, 0);
        EXPECT_EQ(engine().count(kThings) % 2, 0);
        const auto lines = engine().find(kThings, R"({"a": {"$gte": 0}})");
        std::map<std::string, int> halves;
        for (const auto& line : lines) ++halves[line.substr(line.find("\"a\":"))];
        EXPECT_EQ(halves.size() * 2, lines.size());
    }
    stop = true;
    producer.join();
    catch_up();
    EXPECT_EQ(engine().validate(kThings), "valid");
    EXPECT_EQ(engine().count(kThings), engine().count(kThings, R"({"a": {"$gte": 0}})"));
    EXPECT_EQ(engine().count(kThings), static_cast<std::int64_t>(engine().find(kThings).size()));
}

}  // namespace
}  // namespace angelia::engine
