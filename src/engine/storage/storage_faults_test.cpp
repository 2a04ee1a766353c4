// What the store promises when the machine fails it: power cuts, full disks, syncs that do not
// happen.
#include "engine/storage/testing/fault_env.h"
#include "engine/storage/testing/store_driver.h"
#include "engine/storage/testing/temp_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace angelia::engine::storage {
namespace {

using testing::FaultEnvironment;
using testing::insert;
using testing::insert_durably;
using testing::TempFolder;
using Survivors = FaultEnvironment::Survivors;

Options fault_options(const TempFolder& folder, FaultEnvironment& disk) {
    Options options;
    options.path = folder.data();
    options.environment = disk.environment();
    options.resume_retry = milliseconds(2);
    return options;
}

std::unique_ptr<Storage> open_faulty(const TempFolder& folder, FaultEnvironment& disk) {
    return Storage::open(fault_options(folder, disk)).value_or_throw();
}

/// True once `condition` holds; gives up after half a minute.
template <class Condition>
bool eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
        if (condition()) return true;
        std::this_thread::yield();
    }
    return false;
}

/// What writers were told while the store lived.
struct Told {
    std::mutex mutex;
    std::condition_variable more;
    std::map<std::int64_t, bson::Timestamp> durable;  ///< acknowledged
    std::set<std::uint64_t> times;                    ///< every time handed out
    std::uint64_t twice = 0;                          ///< times that were handed out again

    void written(bson::Timestamp time) {
        std::lock_guard lock(mutex);
        twice += times.insert(time.as_uint64()).second ? 0 : 1;
    }
    void acknowledged(std::int64_t id, bson::Timestamp time) {
        std::lock_guard lock(mutex);
        durable[id] = time;
        more.notify_all();
    }
    void wait_for(std::size_t count) {
        std::unique_lock lock(mutex);
        more.wait_for(lock, std::chrono::seconds(60), [&] { return durable.size() >= count; });
    }
};

/// Writes until the store refuses.
void write_until_refused(Storage& storage, std::int64_t first_id, std::size_t text_bytes,
                         Told& told) {
    for (std::int64_t id = first_id;; ++id) {
        const auto written = insert(storage, id, std::string(text_bytes, 'x'));
        if (!written) return;
        told.written(written->time);
        if (!storage.wait_durable(written->position)) return;
        told.acknowledged(id, written->time);
    }
}

/// Acknowledged records that are not there, or with another time.
std::size_t missing(const std::map<std::int64_t, bson::Timestamp>& acknowledged,
                    const std::map<std::int64_t, bson::Timestamp>& there) {
    std::size_t count = 0;
    for (const auto& [id, time] : acknowledged) {
        const auto at = there.find(id);
        count += at == there.end() || at->second != time ? 1 : 0;
    }
    return count;
}

}  // namespace

class PowerCut : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(PowerCut, KeepsWhatWasAcknowledgedAndTheOplogMatches) {
    const auto seed = GetParam();
    std::cout << "seed " << seed << "\n";
    std::mt19937_64 random(seed);
    TempFolder folder;
    FaultEnvironment disk(seed);
    ManualClock clock;
    Told told;
    for (std::int64_t round = 0; round < 4; ++round) {
        auto options = fault_options(folder, disk);
        options.clock = &clock;
        auto storage = Storage::open(options).value_or_throw();
        const auto found = testing::records(*storage);
        EXPECT_EQ(missing(told.durable, found), 0u) << "round " << round;
        EXPECT_EQ(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw(), found)
            << "round " << round;

        std::vector<std::thread> writers;
        for (std::int64_t w = 0; w < 4; ++w) {
            const auto text_bytes = static_cast<std::size_t>(random() % 5000);
            writers.emplace_back([&, w, round, text_bytes] {
                write_until_refused(*storage, (round * 10 + w) * 1'000'000, text_bytes, told);
            });
        }
        std::thread compactor([&] {
            (void)storage->compact(Family::Records, {}, {});
        });  // tables and manifests in the making, too
        told.wait_for(told.durable.size() + random() % 200);
        disk.power_cut();
        for (auto& writer : writers) writer.join();
        compactor.join();
        storage.reset();
        disk.power_on(random() % 2 == 0 ? Survivors::Nothing : Survivors::RandomPrefix);
        clock.jump_system(-std::chrono::seconds(random() % 100));
    }
    auto storage = open_faulty(folder, disk);
    const auto found = testing::records(*storage);
    EXPECT_EQ(missing(told.durable, found), 0u);
    EXPECT_EQ(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw(), found);
    EXPECT_EQ(told.twice, 0u);
    EXPECT_GT(told.durable.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PowerCut, ::testing::Range<std::uint64_t>(1, 9));

TEST(StorageFaults, PowerCutRightAfterTheStoreWasMade) {
    for (const auto survivors : {Survivors::Nothing, Survivors::RandomPrefix}) {
        TempFolder folder;
        FaultEnvironment disk(7);
        auto storage = open_faulty(folder, disk);
        const auto id = storage->store_id();
        disk.power_cut();
        storage.reset();
        disk.power_on(survivors);
        EXPECT_EQ(open_faulty(folder, disk)->store_id(), id);
    }
}

TEST(StorageFaults, PowerCutInPeriodicModeLosesTheEndButNotTheOrder) {
    TempFolder folder;
    FaultEnvironment disk(3);
    auto options = fault_options(folder, disk);
    options.durability = Durability::Periodic;
    options.periodic_sync = std::chrono::hours(1);
    auto storage = Storage::open(options).value_or_throw();
    for (int i = 0; i < 300; ++i)
        insert_durably(*storage, i, std::string(1000, 'x')).value_or_throw();
    disk.power_cut();
    storage.reset();
    disk.power_on(Survivors::RandomPrefix);
    storage = open_faulty(folder, disk);
    const auto found = testing::records(*storage);
    EXPECT_EQ(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw(), found);
    EXPECT_LT(found.size(), 300u);
    EXPECT_EQ(found.empty() ? -1 : found.rbegin()->first,
              static_cast<std::int64_t>(found.size()) - 1);
}

TEST(StorageFaults, ProcessEndInPeriodicModeLosesNothingAcknowledged) {
    TempFolder folder;
    FaultEnvironment disk(3);
    auto options = fault_options(folder, disk);
    options.durability = Durability::Periodic;
    options.periodic_sync = std::chrono::hours(1);
    auto storage = Storage::open(options).value_or_throw();
    for (int i = 0; i < 100; ++i) insert_durably(*storage, i, "x").value_or_throw();
    // A killed process leaves the files as they are: what the kernel was given stays.
    const auto copy = folder.path() / "copy";
    std::filesystem::copy(folder.data(), copy);
    Options plain;
    plain.path = copy.string();
    EXPECT_EQ(testing::records(*Storage::open(plain).value_or_throw()).size(), 100u);
}

TEST(StorageFaults, NothingIsTellableBeforeItsSync) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    const auto oplog = Oplog::attach(*storage);
    std::atomic<int> told{0};
    oplog->add_listener(
        [&](const Oplog::Entries& entries) { told += static_cast<int>(entries.size()); });
    disk.hold_log_syncs();
    const auto before = storage->durable();
    CommitPosition last;
    for (int i = 0; i < 20; ++i) {
        last = insert(*storage, i, "x").value_or_throw().position;
        storage->on_durable(last, [&](Result<void>) { ++told; });
    }
    EXPECT_EQ(storage->durable(), before);
    EXPECT_TRUE(oplog->read({before.time}, 100, 1 << 20).value_or_throw().empty());
    EXPECT_EQ(told, 0);
    EXPECT_EQ(testing::records(*storage).size(), 20u);  // applied
    disk.release_log_syncs();
    storage->close().value_or_throw();
    EXPECT_EQ(told, 40);
}

std::size_t records_in(const Storage& storage, const View& view) {
    return testing::records_in(*storage.at(view.snapshot)).size();
}

TEST(StorageFaults, ViewShowsACommitWhenItsSyncIsDone) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    storage->attach_first(std::make_shared<int>(1));
    const auto number = [](const View& view) { return *static_cast<const int*>(view.state.get()); };
    insert_durably(*storage, 1, "x").value_or_throw();
    disk.hold_log_syncs();
    auto section = storage->begin_apply();
    section->put(Family::Records, record_key(1, 2), record_value({}, bson::make("_id", 2).bytes()));
    section->attach(std::make_shared<int>(2));
    const auto position = section->commit().value_or_throw();
    section.reset();
    EXPECT_EQ(records_in(*storage, storage->published()), 1u);
    EXPECT_EQ(number(storage->published()), 1);
    EXPECT_EQ(storage->published().position, storage->durable());
    EXPECT_EQ(records_in(*storage, storage->newest()), 2u);
    EXPECT_EQ(number(storage->newest()), 2);
    EXPECT_EQ(storage->newest().position, position);
    std::atomic<std::size_t> seen{0};
    storage->on_durable(position,
                        [&](Result<void>) { seen = records_in(*storage, storage->published()); });
    const auto held = storage->published();
    disk.release_log_syncs();
    storage->wait_durable(position).value_or_throw();
    EXPECT_TRUE(eventually([&] { return seen == 2; }));
    EXPECT_EQ(number(storage->published()), 2);
    EXPECT_EQ(records_in(*storage, held), 1u);
}

TEST(StorageFaults, ViewNeverShowsWhatASyncThatFailedWouldHaveKept) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    insert_durably(*storage, 1, "x").value_or_throw();
    disk.fail_next_log_sync();
    EXPECT_FALSE(insert_durably(*storage, 2, "x"));
    EXPECT_EQ(records_in(*storage, storage->published()), 1u);
    EXPECT_EQ(records_in(*storage, storage->newest()), 2u);
}

TEST(StorageFaults, ViewMovesWhenTheStoreComesBackFromAFullDisk) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    disk.fill_disk_after(0);
    EXPECT_FALSE(insert_durably(*storage, 1, "x"));
    EXPECT_EQ(records_in(*storage, storage->published()), 0u);
    disk.free_disk();
    EXPECT_TRUE(eventually([&] { return storage->statistics().writable; }));
    EXPECT_EQ(records_in(*storage, storage->published()), 1u);
}

TEST(StorageFaults, PositionAndSnapshotOfAViewAreOfOneMoment) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    std::atomic<bool> stop{false};
    // Each look counts all records: without an end of the writer it is a race that a busy machine
    // loses, up to the first trimming of the oplog, which is a commit without a record.
    constexpr std::int64_t kRecords = 20'000;
    std::thread writer([&] {
        for (std::int64_t i = 1; i <= kRecords && !stop; ++i)
            insert(*storage, i, "x").value_or_throw();
    });
    for (int i = 0; i < 300; ++i) {
        const auto view = i % 2 == 0 ? storage->published() : storage->newest();
        EXPECT_EQ(records_in(*storage, view), view.position.sequence);
    }
    stop = true;
    writer.join();
}

TEST(StorageFaults, CommitsDuringASyncShareTheNextOne) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    disk.hold_log_syncs();
    const auto before = disk.log_syncs();
    std::vector<std::thread> writers;
    std::mutex mutex;
    CommitPosition last;
    for (int w = 0; w < 8; ++w) {
        writers.emplace_back([&, w] {
            for (int i = 0; i < 100; ++i) {
                const auto position = insert(*storage, w * 1000 + i, "x").value_or_throw().position;
                std::lock_guard lock(mutex);
                last = std::max(last, position);
            }
        });
    }
    for (auto& writer : writers) writer.join();
    disk.release_log_syncs();
    storage->wait_durable(last).value_or_throw();
    EXPECT_EQ(last.sequence, 800u);
    EXPECT_LE(disk.log_syncs() - before, 3u);
}

TEST(StorageFaults, WriterFarAheadOfTheDiskNeedsNoContinuationToGoOn) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    std::mutex held_by_the_writer;
    std::unique_lock lock(held_by_the_writer);
    disk.hold_log_syncs();  // or it might be durable at once, and run here
    storage->on_durable(insert(*storage, 0, "x").value_or_throw().position,
                        [&](Result<void>) { std::lock_guard waits(held_by_the_writer); });
    disk.release_log_syncs();
    const std::string text(1 << 20, 'x');
    CommitPosition last;
    for (RecordId record = 1; record <= 70; ++record) {
        auto section = storage->begin_apply();
        section->put(Family::Records, record_key(2, record), text);
        last = section->commit().value_or_throw();
    }
    EXPECT_GT(storage->durable(), CommitPosition{});
    lock.unlock();
    EXPECT_TRUE(storage->wait_durable(last));
}

TEST(StorageFaults, FullDiskRefusesWritesReadsGoOnAndSpaceBringsWritesBack) {
    for (const std::uint64_t space : {0u, 10u, 5000u, 100'000u, 300'001u}) {
        SCOPED_TRACE(space);
        TempFolder folder;
        FaultEnvironment disk;
        auto storage = open_faulty(folder, disk);
        const auto oplog = Oplog::attach(*storage);
        Told told;
        insert_durably(*storage, 0, "before").value_or_throw();
        disk.fill_disk_after(space);
        std::vector<std::thread> writers;
        for (int w = 1; w <= 3; ++w)
            writers.emplace_back(
                [&, w] { write_until_refused(*storage, w * 1'000'000, 3000, told); });
        for (auto& writer : writers) writer.join();

        const auto refused = insert(*storage, 1, "refused");
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::OutOfDiskSpace) << refused.error().message;
        EXPECT_FALSE(storage->statistics().writable);
        EXPECT_EQ(missing(told.durable, testing::records(*storage)), 0u);
        EXPECT_TRUE(eventually([&] { return storage->statistics().resume_attempts >= 5; }));
        EXPECT_FALSE(insert(*storage, 1, "refused"));

        disk.free_disk();
        EXPECT_TRUE(eventually([&] { return storage->statistics().writable; }))
            << storage->statistics().write_error;
        const auto after = insert_durably(*storage, 2, "after").value_or_throw();
        told.written(after.time);
        told.acknowledged(2, after.time);
        EXPECT_EQ(told.twice, 0u);
        EXPECT_EQ(testing::oplog_inserts(*oplog).value_or_throw(), testing::records(*storage));

        disk.power_cut();
        storage.reset();
        disk.power_on();
        storage = open_faulty(folder, disk);
        const auto found = testing::records(*storage);
        EXPECT_EQ(missing(told.durable, found), 0u);
        EXPECT_EQ(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw(), found);
    }
}

TEST(StorageFaults, PowerCutWhileTheDiskIsFullLosesNothingAcknowledged) {
    TempFolder folder;
    FaultEnvironment disk(11);
    auto storage = open_faulty(folder, disk);
    Told told;
    disk.fill_disk_after(200'000);
    write_until_refused(*storage, 0, 2000, told);
    EXPECT_TRUE(eventually([&] { return storage->statistics().resume_attempts >= 2; }));
    disk.power_cut();
    storage.reset();
    disk.power_on(Survivors::RandomPrefix);
    disk.free_disk();
    storage = open_faulty(folder, disk);
    const auto found = testing::records(*storage);
    EXPECT_GT(told.durable.size(), 10u);
    EXPECT_EQ(missing(told.durable, found), 0u);
    EXPECT_EQ(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw(), found);
}

TEST(StorageFaults, FullDiskAtTheStartIsAnErrorAndLeavesAFolderThatOpensLater) {
    TempFolder folder;
    FaultEnvironment disk;
    disk.fill_disk_after(20);
    const auto refused = Storage::open(fault_options(folder, disk));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::OutOfDiskSpace) << refused.error().message;
    disk.free_disk();
    EXPECT_TRUE(insert_durably(*open_faulty(folder, disk), 1, "x"));
}

TEST(StorageFaults, FailedSyncStopsWritesUntilARestart) {
    TempFolder folder;
    FaultEnvironment disk;
    Told told;
    {
        auto storage = open_faulty(folder, disk);
        const auto good = insert_durably(*storage, 1, "good").value_or_throw();
        told.acknowledged(1, good.time);
        disk.fail_next_log_sync();
        const auto failed = insert_durably(*storage, 2, "failed");
        ASSERT_FALSE(failed);
        EXPECT_NE(failed.error().message.find("until the process is restarted"), std::string::npos)
            << failed.error().message;
        const auto later = insert(*storage, 3, "later");
        ASSERT_FALSE(later);
        EXPECT_EQ(later.error().code, ErrorCode::InternalError);
        EXPECT_EQ(storage->durable().time, good.time);
        EXPECT_EQ(testing::records(*storage).count(1), 1u);
    }
    auto storage = open_faulty(folder, disk);
    EXPECT_EQ(missing(told.durable, testing::records(*storage)), 0u);
    EXPECT_TRUE(insert_durably(*storage, 4, "again"));
}

// RocksDB syncs a log it has left before it flushes the memtables of that log, and our syncer may
// come to the same log afterwards. Builds of RocksDB with assertions end the process when a file
// that failed is synced again.
TEST(StorageFaults, FailedSyncOfALogThatWasLeftIsAnErrorAndNotTheEndOfTheProcess) {
    TempFolder folder;
    FaultEnvironment disk;
    auto options = fault_options(folder, disk);
    options.durability = Durability::Periodic;
    options.periodic_sync = std::chrono::hours(1);  // the flush comes to the log first
    auto storage = Storage::open(options).value_or_throw();
    const auto good = insert_durably(*storage, 1, "good").value_or_throw();
    disk.fail_next_log_sync();
    (void)storage->compact(Family::Records, {}, {});
    const auto later = insert_durably(*storage, 2, "later");
    ASSERT_FALSE(later);
    EXPECT_NE(later.error().message.find("until the process is restarted"), std::string::npos)
        << later.error().message;
    EXPECT_EQ(storage->durable().time, good.time);
    storage.reset();  // syncs what there is
    storage = open_faulty(folder, disk);
    EXPECT_EQ(testing::records(*storage).count(1), 1u);
    EXPECT_TRUE(insert_durably(*storage, 3, "again"));
}

TEST(StorageFaults, FullDiskMetByAFlushFirstIsComeBackFrom) {
    for (const std::uint64_t space : {0u, 10u, 5000u}) {
        SCOPED_TRACE(space);
        TempFolder folder;
        FaultEnvironment disk;
        auto options = fault_options(folder, disk);
        options.durability = Durability::Periodic;
        options.periodic_sync = std::chrono::hours(1);
        auto storage = Storage::open(options).value_or_throw();
        for (int i = 0; i < 100; ++i)
            insert_durably(*storage, i, std::string(100, 'x')).value_or_throw();
        disk.fill_disk_after(space);
        (void)storage->compact(Family::Records, {}, {});
        Told told;
        write_until_refused(*storage, 1000, 1000, told);
        EXPECT_TRUE(eventually([&] { return storage->statistics().resume_attempts >= 3; }));
        disk.free_disk();
        EXPECT_TRUE(eventually([&] { return storage->statistics().writable; }))
            << storage->statistics().write_error;
        EXPECT_TRUE(insert_durably(*storage, 101, "after"));
        const auto found = testing::records(*storage);
        EXPECT_EQ(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw(), found);
        EXPECT_EQ(missing(told.durable, found), 0u);
        EXPECT_GE(found.size(), 101u);
    }
}

TEST(StorageFaults, PowerCutAroundASwitchOfLogsLosesTheEndAndLeavesNoHole) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(seed);
        TempFolder folder;
        FaultEnvironment disk(seed);
        auto options = fault_options(folder, disk);
        options.durability = Durability::Periodic;
        options.periodic_sync = std::chrono::hours(1);
        auto storage = Storage::open(options).value_or_throw();
        for (int i = 0; i < 50; ++i) insert_durably(*storage, i, "x").value_or_throw();
        const auto syncs = disk.log_syncs();
        disk.hold_log_syncs();
        std::thread compactor([&] { (void)storage->compact(Family::Records, {}, {}); });
        EXPECT_TRUE(eventually([&] { return disk.log_syncs() > syncs; }));
        // The log is left and not synced; these go to the next one.
        for (int i = 50; i < 2000; ++i) insert(*storage, i, "x").value_or_throw();
        disk.power_cut();
        compactor.join();
        storage.reset();
        disk.power_on(Survivors::RandomPrefix);
        storage = open_faulty(folder, disk);
        const auto found = testing::records(*storage);
        EXPECT_EQ(found.empty() ? -1 : found.rbegin()->first,
                  static_cast<std::int64_t>(found.size()) - 1);
    }
}

TEST(StorageFaults, EveryPendingContinuationHearsOfTheFailure) {
    TempFolder folder;
    FaultEnvironment disk;
    auto storage = open_faulty(folder, disk);
    disk.hold_log_syncs();
    std::atomic<int> errors{0};
    for (int i = 0; i < 50; ++i) {
        const auto position = insert(*storage, i, "x").value_or_throw().position;
        storage->on_durable(position, [&](Result<void> result) { errors += result ? 0 : 1; });
    }
    disk.fail_next_log_sync();
    disk.release_log_syncs();
    EXPECT_TRUE(eventually([&] { return errors == 50; }));
}

}  // namespace angelia::engine::storage
