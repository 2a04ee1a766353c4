// kill -9 at random instants under write load: every acknowledged write is there, records, indexes
// and oplog agree, and a change stream that lived through all of it saw every write once.
#include "support/serve_process.h"

#include <angelia/angelia.h>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace angelia::test {
namespace {

constexpr int kKillsPerSeed = 25;
constexpr int kWriters = 4;

/// Insert, then an update of an older document: both must be there once acknowledged.
class Writer {
  public:
    Writer(Store store, int number, std::atomic<std::int64_t>& progress)
        : store_(std::move(store)),
          number_(number),
          name_(store_.collection("load")),
          progress_(progress) {}

    void run(const std::atomic<bool>& stop) {
        while (!stop) {
            const std::int64_t id = static_cast<std::int64_t>(next_++) * kWriters + number_;
            const auto document =
                bson::make("_id", id, "writer", static_cast<std::int32_t>(number_), "rev",
                           std::int32_t{0}, "tags", bson::array("a", std::to_string(id % 7)), "pad",
                           std::string(static_cast<std::size_t>(id % 500), 'x'));
            store::CallOptions options;
            options.timeout = milliseconds(10'000);
            auto inserted = store_.insert(name_, document, options);
            const bool there =
                inserted && (inserted->errors.empty() ||
                             inserted->errors[0].error.code == ErrorCode::DuplicateKey);
            if (!there) {
                unknown_.insert(id);  // no answer: it may be there or not
                continue;
            }
            acknowledged_.insert(id);
            ++progress_;
            auto updated = store_.update_one(name_, bson::make("_id", id),
                                             bson::make("$inc", bson::make("rev", std::int32_t{1})),
                                             false, options);
            if (updated && updated->errors.empty()) updated_.insert(id);
        }
    }

    std::set<std::int64_t> acknowledged_, unknown_, updated_;

  private:
    Store store_;
    int number_;
    store::CollectionName name_;
    std::atomic<std::int64_t>& progress_;
    std::int64_t next_ = 1;
};

/// So that a kill hits a server that is being written to, and not one that drivers have yet to find
/// again.
void wait_for_writes(const std::atomic<std::int64_t>& progress, std::int64_t count) {
    const auto goal = progress + count;
    const auto deadline = real_clock().steady_now() + std::chrono::seconds(20);
    while (progress < goal && real_clock().steady_now() < deadline)
        std::this_thread::sleep_for(milliseconds(1));
    ASSERT_GE(progress, goal) << "the server does not take writes any more";
}

struct Seen {
    std::promise<void>
        started;  ///< the first start: what comes before it is not the stream's affair
    std::once_flag first;
    std::mutex mutex;
    std::set<std::int64_t> inserts;
    std::vector<std::int64_t> twice;
};

std::unique_ptr<store::Watch> watch_inserts(Store& store, Seen& seen) {
    store::WatchRequest request;
    request.collection = store.collection("load");
    bson::Builder stages;
    stages.push(bson::make("$match", bson::make("operationType", "insert")));
    request.stages = stages.take();
    request.max_wait = milliseconds(500);
    store::WatchEvents events;
    events.on_batch = [&seen](std::vector<bson::Document> batch, const bson::Document&) {
        const std::lock_guard lock(seen.mutex);
        for (const auto& e : batch) {
            const auto id = e.view().find_path("documentKey._id").to_int64().value_or(-1);
            if (!seen.inserts.insert(id).second) seen.twice.push_back(id);
        }
    };
    events.on_started = [&seen](bool) {
        std::call_once(seen.first, [&] { seen.started.set_value(); });
    };
    events.on_error = [](const Error&, bool) {};
    return store.watch(std::move(request), std::move(events)).value_or_throw();
}

void verify(Store& store, const std::vector<Writer>& writers, Seen& seen) {
    store::FindRequest find;
    find.collection = store.collection("load");
    std::map<std::int64_t, std::int64_t> stored;
    for (const auto& d : store.find(find).value_or_throw())
        stored[d.find("_id").to_int64().value_or(-1)] = d.find("rev").to_int64().value_or(-1);
    std::size_t acknowledged = 0;
    for (const Writer& w : writers) {
        for (const auto id : w.acknowledged_)
            EXPECT_EQ(stored.count(id), 1u) << "acknowledged insert " << id << " is lost";
        for (const auto id : w.updated_)
            EXPECT_EQ(stored[id], 1) << "acknowledged update of " << id << " is lost or done twice";
        acknowledged += w.acknowledged_.size();
    }
    const auto report = store.diagnostics()
                            ->run_command(store.database(), bson::make("validate", "load"))
                            .value_or_throw();
    EXPECT_TRUE(report.find("valid").truthy()) << "validate found damage";
    EXPECT_EQ(report.find("nrecords").to_int64(), static_cast<std::int64_t>(stored.size()));
    EXPECT_EQ(store.count(find.collection, bson::Document()).value_or_throw(),
              static_cast<std::int64_t>(stored.size()));
    // An indexed search agrees with what a scan found.
    std::int64_t by_index = 0;
    for (int i = 0; i < 7; ++i)
        by_index +=
            store.count(find.collection, bson::make("tags", std::to_string(i))).value_or_throw();
    EXPECT_EQ(by_index, static_cast<std::int64_t>(stored.size()));

    const auto deadline = real_clock().steady_now() + std::chrono::seconds(30);
    while (real_clock().steady_now() < deadline) {
        {
            const std::lock_guard lock(seen.mutex);
            if (seen.inserts.size() >= stored.size()) break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(
            20));  // the stream runs on its own; the outcome does not depend on this pause
    }
    const std::lock_guard lock(seen.mutex);
    EXPECT_EQ(seen.twice.size(), 0u);
    EXPECT_EQ(seen.inserts.size(), stored.size());
    for (const auto& [id, rev] : stored)
        EXPECT_EQ(seen.inserts.count(id), 1u) << "the stream never saw " << id;
    std::printf("%zu acknowledged, %zu stored\n", acknowledged, stored.size());
}

void kill_under_load(const char* durability) {
    std::mt19937 random(test_seed());
    TemporaryFolder folder("kill");
    ServeProcess server(folder.path(), {"--durability", durability});
    server.start();
    Store store = open_store(server.uri()).value_or_throw();
    store::IndexDefinition tags;
    tags.name = "tags_1";
    tags.key = bson::make("tags", std::int32_t{1});
    std::vector<store::IndexDefinition> indexes;
    indexes.push_back(std::move(tags));
    store.ensure_indexes(store.collection("load"), std::move(indexes)).value_or_throw();
    Seen seen;
    auto watch = watch_inserts(store, seen);
    ASSERT_EQ(seen.started.get_future().wait_for(std::chrono::seconds(20)),
              std::future_status::ready);

    std::vector<Writer> writers;
    std::atomic<std::int64_t> progress{0};
    for (int i = 0; i < kWriters; ++i) writers.emplace_back(store, i, progress);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (Writer& w : writers) threads.emplace_back([&w, &stop] { w.run(stop); });
    const int kills = long_run() ? 4 * kKillsPerSeed : kKillsPerSeed;
    for (int i = 0; i < kills; ++i) {
        wait_for_writes(progress, std::uniform_int_distribution<int>(0, 60)(random));
        std::this_thread::sleep_for(microseconds(
            std::uniform_int_distribution<int>(0, 30'000)(random)));  // a random instant
        server.kill();
        server.start();
    }
    wait_for_writes(progress, 100);
    stop = true;
    for (auto& t : threads) t.join();

    verify(store, writers, seen);
    watch->close();
    EXPECT_TRUE(store.close());
    EXPECT_EQ(server.stop(), 0);
}

class KillNine : public testing::TestWithParam<int> {};

TEST_P(KillNine, LosesNoAcknowledgedWrite) { kill_under_load("strict"); }

/// Without a sync for every write: what the kernel has been given outlives the process.
TEST(KillNinePeriodic, LosesNoAcknowledgedWriteEither) { kill_under_load("periodic"); }

INSTANTIATE_TEST_SUITE_P(Seeds, KillNine, testing::Range(1, 5));

}  // namespace
}  // namespace angelia::test
