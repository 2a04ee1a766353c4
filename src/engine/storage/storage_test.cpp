// What the store promises while nothing fails; failures are in storage_faults_test.cpp.
#include "engine/storage/storage.h"
#include "engine/storage/testing/store_driver.h"
#include "engine/storage/testing/temp_folder.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <fstream>
#include <mutex>
#include <thread>

namespace angelia::engine::storage {
namespace {

using testing::insert;
using testing::insert_durably;
using testing::TempFolder;

std::unique_ptr<Storage> open_at(const TempFolder& folder, Options options = {}) {
    options.path = folder.data();
    return Storage::open(std::move(options)).value_or_throw();
}

std::unique_ptr<Storage> open_memory(std::size_t bytes_max = std::size_t{64} << 20) {
    Options options;
    options.memory = true;
    options.memory_bytes_max = bytes_max;
    options.resume_retry = milliseconds(5);
    return Storage::open(std::move(options)).value_or_throw();
}

std::string value_of(const Reader& reader, Family family, std::string_view key) {
    std::string value;
    const auto found = reader.get(family, key, value);
    return !found ? found.error().to_string() : *found ? value : "(none)";
}

/// "a=1 b=2 " of everything in [lower, upper), forwards.
std::string listing(const Reader& reader, std::string_view lower = {},
                    std::string_view upper = {}) {
    std::string text;
    const auto rows = reader.iterate(Family::Indexes, lower, upper);
    for (rows->seek_to_first(); rows->valid(); rows->next())
        text.append(rows->key()).append("=").append(rows->value()).append(" ");
    return text;
}

std::string listing_backwards(const Reader& reader, std::string_view lower = {},
                              std::string_view upper = {}) {
    std::string text;
    const auto rows = reader.iterate(Family::Indexes, lower, upper);
    for (rows->seek_to_last(); rows->valid(); rows->prev())
        text.append(rows->key()).append("=").append(rows->value()).append(" ");
    return text;
}

CommitPosition put(Storage& storage,
                   std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
    auto section = storage.begin_apply();
    for (const auto& [key, value] : pairs) section->put(Family::Indexes, key, value);
    return section->commit().value_or_throw();
}

}  // namespace

TEST(Storage, KeepsEverythingOverARestart) {
    TempFolder folder;
    std::array<std::uint8_t, 8> id{};
    bson::Timestamp time;
    {
        auto storage = open_at(folder);
        id = storage->store_id();
        time = insert(*storage, 7, "seven")->time;
        storage->close().value_or_throw();
    }
    auto storage = open_at(folder);
    EXPECT_EQ(storage->store_id(), id);
    EXPECT_EQ(testing::records(*storage), (std::map<std::int64_t, bson::Timestamp>{{7, time}}));
    EXPECT_EQ(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw(),
              (std::map<std::int64_t, bson::Timestamp>{{7, time}}));
    EXPECT_EQ(storage->durable().time, time);
}

TEST(Storage, SectionReadsItsOwnChanges) {
    auto storage = open_memory();
    put(*storage, {{"a", "1"}, {"b", "2"}, {"c", "3"}});
    auto section = storage->begin_apply();
    section->put(Family::Indexes, "b", "20");
    section->erase(Family::Indexes, "a");
    section->put(Family::Indexes, "d", "4");
    EXPECT_EQ(value_of(*section, Family::Indexes, "a"), "(none)");
    EXPECT_EQ(value_of(*section, Family::Indexes, "b"), "20");
    EXPECT_EQ(listing(*section), "b=20 c=3 d=4 ");
    EXPECT_EQ(listing_backwards(*section), "d=4 c=3 b=20 ");
    EXPECT_EQ(listing(*section, "c", "d"), "c=3 ");
    EXPECT_EQ(listing_backwards(*section, "b", "d"), "c=3 b=20 ");
    EXPECT_EQ(listing(storage->latest()), "a=1 b=2 c=3 ");
    section->commit().value_or_throw();
    EXPECT_EQ(listing(storage->latest()), "b=20 c=3 d=4 ");
}

TEST(Storage, SectionThatIsLeftWithoutCommitChangesNothing) {
    auto storage = open_memory();
    storage->begin_apply()->put(Family::Indexes, "a", "1");
    EXPECT_EQ(listing(storage->latest()), "");
    EXPECT_EQ(storage->applied().sequence, 0u);
}

TEST(Storage, RollbackForgetsWhatCameAfterTheMark) {
    auto storage = open_memory();
    put(*storage, {{"a", "1"}, {"z", "26"}});
    auto section = storage->begin_apply();
    section->put(Family::Indexes, "b", "2");
    section->put(Family::Indexes, "a", "10");
    const auto bytes = section->bytes();
    const auto mark = section->mark();
    section->put(Family::Indexes, "a", "100");
    section->erase(Family::Indexes, "b");
    section->erase_range(Family::Indexes, "a", {});
    section->put(Family::Indexes, "c", "3");
    section->append_oplog(section->next_timestamp(), 0, testing::insert_entry(1, 1, "never"));
    EXPECT_EQ(listing(*section), "c=3 ");
    section->rollback_to(mark);
    EXPECT_EQ(section->bytes(), bytes);
    EXPECT_EQ(listing(*section), "a=10 b=2 z=26 ");
    section->commit().value_or_throw();
    EXPECT_EQ(listing(storage->latest()), "a=10 b=2 z=26 ");
    EXPECT_TRUE(testing::oplog_inserts(*Oplog::attach(*storage)).value_or_throw().empty());
}

TEST(Storage, ErasedRangeHidesWhatWasThereAndKeepsWhatComesLater) {
    auto storage = open_memory();
    put(*storage, {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
    auto section = storage->begin_apply();
    section->put(Family::Indexes, "bb", "own");
    section->erase_range(Family::Indexes, "b", "d");
    section->put(Family::Indexes, "c", "again");
    EXPECT_EQ(listing(*section), "a=1 c=again d=4 ");
    EXPECT_EQ(listing_backwards(*section), "d=4 c=again a=1 ");
    section->commit().value_or_throw();
    EXPECT_EQ(listing(storage->latest()), "a=1 c=again d=4 ");
}

// RocksDB remembers where it inserted last, by prefix, for rows and for erased ranges alike.
TEST(Storage, WritesAndErasedRangesOfManyPrefixesTakeTurns) {
    auto storage = open_memory();
    for (std::uint32_t round = 0; round < 50; ++round) {
        for (std::uint32_t id = 1; id <= 20; ++id) {
            auto section = storage->begin_apply();
            for (std::uint32_t record = 0; record < 10; ++record)
                section->put(Family::Records, record_key(id, record * 50 + round), "x");
            section->erase_range(Family::Records, record_prefix(id - 1),
                                 prefix_end(record_prefix(id - 1)));
            section->commit().value_or_throw();
        }
    }
    std::size_t left = 0;
    const auto rows = storage->latest().iterate(Family::Records, {}, {});
    for (rows->seek_to_first(); rows->valid(); rows->next()) ++left;
    EXPECT_EQ(left, 500u);  // of the last collection
}

TEST(Storage, SectionMayChangeWhatItWalksOver) {
    auto storage = open_memory();
    put(*storage, {{"a", "1"}, {"b", "2"}, {"c", "3"}});
    auto section = storage->begin_apply();
    const auto rows = section->iterate(Family::Indexes, {}, {});
    std::string seen;
    for (rows->seek_to_first(); rows->valid(); rows->next()) {
        seen.append(rows->key());
        section->erase(Family::Indexes, rows->key());
        section->put(Family::Indexes, "bb", "x");
    }
    EXPECT_EQ(seen, "abbbc");
}

TEST(Storage, SnapshotStaysWhatItWas) {
    auto storage = open_memory();
    put(*storage, {{"a", "1"}});
    const auto snapshot = storage->snapshot();
    put(*storage, {{"a", "2"}, {"b", "2"}});
    EXPECT_EQ(listing(*storage->at(snapshot)), "a=1 ");
    EXPECT_EQ(value_of(*storage->at(snapshot), Family::Indexes, "b"), "(none)");
    EXPECT_EQ(listing(storage->latest()), "a=2 b=2 ");
}

TEST(Storage, IteratorSeeks) {
    auto storage = open_memory();
    put(*storage, {{"a", ""}, {"c", ""}, {"e", ""}});
    auto section = storage->begin_apply();
    section->put(Family::Indexes, "d", "");
    for (const Reader* reader : {&storage->latest(), static_cast<const Reader*>(section.get())}) {
        const auto rows = reader->iterate(Family::Indexes, "a", "e");
        rows->seek("b");
        EXPECT_EQ(rows->key(), "c");
        rows->seek_before("c");
        EXPECT_EQ(rows->key(), "a");
        rows->prev();
        EXPECT_FALSE(rows->valid());
        rows->seek("e");
        EXPECT_FALSE(rows->valid());
        rows->seek_before("zz");
        EXPECT_NE(rows->key(), "e");
        EXPECT_TRUE(rows->status());
    }
}

TEST(Storage, ManyWritersShareSyncs) {
    TempFolder folder;
    auto storage = open_at(folder);
    std::vector<std::thread> writers;
    for (int w = 0; w < 16; ++w) {
        writers.emplace_back([&, w] {
            CommitPosition last;
            for (int i = 0; i < 200; ++i)
                last = insert(*storage, w * 1000 + i, "x").value_or_throw().position;
            storage->wait_durable(last).value_or_throw();
        });
    }
    for (auto& writer : writers) writer.join();
    const auto statistics = storage->statistics();
    EXPECT_EQ(statistics.commits, 3200u);
    EXPECT_LT(statistics.syncs, statistics.commits / 4);
    EXPECT_EQ(testing::records(*storage).size(), 3200u);
}

TEST(Storage, ContinuationsRunInCommitOrderAfterTheListener) {
    TempFolder folder;
    auto storage = open_at(folder);
    std::mutex mutex;
    std::vector<std::uint64_t> order;
    std::atomic<std::uint64_t> listened{0};
    std::atomic<int> too_early{0};
    storage->set_durable_listener([&](CommitPosition position) { listened = position.sequence; });
    CommitPosition last;
    for (int i = 0; i < 500; ++i) {
        last = insert(*storage, i, "x").value_or_throw().position;
        storage->on_durable(last, [&, sequence = last.sequence](Result<void>) {
            too_early += listened < sequence ? 1 : 0;
            std::lock_guard lock(mutex);
            order.push_back(sequence);
        });
    }
    storage->close().value_or_throw();
    EXPECT_EQ(too_early, 0);
    EXPECT_EQ(order.size(), 500u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Storage, MemoryIsDurableAtCommitAndContinuesOnTheCallersThread) {
    auto storage = open_memory();
    const auto position = insert(*storage, 1, "x").value_or_throw().position;
    EXPECT_EQ(storage->durable(), position);
    std::thread::id ran_on;
    storage->on_durable(position, [&](Result<void> result) {
        ran_on = result ? std::this_thread::get_id() : std::thread::id();
    });
    EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Storage, ContinuationMayCommitAgain) {
    auto storage = open_memory();
    CommitPosition second;
    storage->on_durable(insert(*storage, 1, "x")->position,
                        [&](Result<void>) { second = insert(*storage, 2, "y")->position; });
    EXPECT_EQ(storage->durable(), second);
    EXPECT_EQ(testing::records(*storage).size(), 2u);
}

TEST(Storage, PeriodicModeIsDurableBeforeTheDeviceSyncs) {
    TempFolder folder;
    Options options;
    options.durability = Durability::Periodic;
    options.periodic_sync = std::chrono::hours(1);
    auto storage = open_at(folder, options);
    const auto before = storage->statistics().syncs;
    for (int i = 0; i < 50; ++i) insert_durably(*storage, i, "x").value_or_throw();
    EXPECT_EQ(storage->statistics().syncs, before);
    storage->close().value_or_throw();
    EXPECT_EQ(storage->statistics().syncs, before + 1);
}

TEST(Storage, TimestampsIncreaseAlsoWhenTheClockJumpsBackOverARestart) {
    TempFolder folder;
    ManualClock clock;
    Options options;
    options.clock = &clock;
    bson::Timestamp last;
    {
        auto storage = open_at(folder, options);
        for (int i = 0; i < 10; ++i) {
            const auto time = insert(*storage, i, "x")->time;
            EXPECT_GT(time, last);
            last = time;
        }
        clock.jump_system(-std::chrono::hours(24));
        const auto time = insert(*storage, 10, "x")->time;
        EXPECT_GT(time, last);
        last = storage->begin_apply()->next_timestamp();  // given out, never committed
    }
    clock.jump_system(-std::chrono::hours(24));
    auto storage = open_at(folder, options);
    EXPECT_GT(insert(*storage, 11, "x")->time, last);
}

TEST(Storage, TimestampFollowsTheWallClock) {
    ManualClock clock;
    Options options;
    options.memory = true;
    options.clock = &clock;
    auto storage = Storage::open(options).value_or_throw();
    clock.advance(std::chrono::seconds(5));
    const auto seconds = static_cast<std::uint32_t>(clock.system_millis() / 1000);
    EXPECT_EQ(storage->begin_apply()->next_timestamp(), (bson::Timestamp{seconds, 1}));
    EXPECT_EQ(storage->begin_apply()->next_timestamp(), (bson::Timestamp{seconds, 2}));
}

TEST(Storage, AdoptsAClientsClusterTimeWithinAMinute) {
    ManualClock clock;
    Options options;
    options.memory = true;
    options.clock = &clock;
    auto storage = Storage::open(options).value_or_throw();
    const auto now = static_cast<std::uint32_t>(clock.system_millis() / 1000);
    EXPECT_TRUE(storage->adopt_cluster_time({now + 60, 9}));
    EXPECT_EQ(storage->begin_apply()->next_timestamp(), (bson::Timestamp{now + 60, 10}));
    EXPECT_TRUE(storage->adopt_cluster_time({now + 61, 1}));
    EXPECT_EQ(storage->begin_apply()->next_timestamp(), (bson::Timestamp{now + 60, 11}));
    EXPECT_TRUE(storage->adopt_cluster_time({now - 5, 1}));
    EXPECT_EQ(storage->begin_apply()->next_timestamp(), (bson::Timestamp{now + 60, 12}));
    const auto refused = storage->adopt_cluster_time({now + 366 * 24 * 3600, 1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::ClusterTimeFailsRateLimiter);
}

TEST(Storage, LockedFolderNamesItsHolder) {
    TempFolder folder;
    auto storage = open_at(folder);
    storage->set_endpoint_note("mongodb://127.0.0.1:27027").value_or_throw();
    Options options;
    options.path = folder.data() + "/";
    const auto second = Storage::open(options);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::DBPathInUse);
    EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid()) +
                                          " (mongodb://127.0.0.1:27027)"),
              std::string::npos)
        << second.error().message;
    storage->close().value_or_throw();
    EXPECT_FALSE(std::filesystem::exists(folder.data() + "/endpoint"));
}

TEST(Storage, NewerFormatIsRefusedAndLeftAlone) {
    TempFolder folder;
    open_at(folder)->close().value_or_throw();
    const auto write_format = [&](std::string_view format) {
        std::vector<std::string> names;
        rocksdb::DB::ListColumnFamilies({}, folder.data(), &names);
        std::vector<rocksdb::ColumnFamilyDescriptor> families;
        for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
        std::vector<rocksdb::ColumnFamilyHandle*> handles;
        rocksdb::DB* db = nullptr;
        rocksdb::DB::Open({}, folder.data(), families, &handles, &db);
        db->Put({}, "format", rocksdb::Slice(format.data(), format.size()));
        for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
        delete db;
    };
    write_format(std::string_view("\0\0\0\2\0\0\0\7", 8));
    Options options;
    options.path = folder.data();
    const auto refused = Storage::open(options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::CannotMutateObject);
    EXPECT_NE(refused.error().message.find("format 2.7"), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().message.find("up to 1.x"), std::string::npos)
        << refused.error().message;
    write_format(std::string_view("\0\0\0\1\0\0\0\7", 8));
    EXPECT_TRUE(Storage::open(options));
}

TEST(Storage, PathThatIsAFileIsRefused) {
    TempFolder folder;
    std::ofstream(folder.data()) << "not a folder";
    Options options;
    options.path = folder.data();
    const auto refused = Storage::open(options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::FileStreamFailed);
}

TEST(Storage, FullMemoryRefusesWritesAndTakesThemAgainAfterDeletion) {
    auto storage = open_memory(std::size_t{8} << 20);
    const std::string text(10000, 'x');
    std::int64_t count = 0;
    auto result = insert(*storage, count, text);
    while (result) result = insert(*storage, ++count, text);
    EXPECT_EQ(result.error().code, ErrorCode::OutOfDiskSpace);
    EXPECT_GT(count, 50);
    EXPECT_EQ(testing::records(*storage).size(), static_cast<std::size_t>(count));
    {
        auto section = storage->begin_apply();
        for (std::int64_t i = 0; i < count; ++i)
            section->erase(Family::Records, record_key(1, static_cast<RecordId>(i)));
        section->commit().value_or_throw();
    }
    Oplog::attach(*storage)->trim_before({0xFFFFFFFF, 0}).value_or_throw();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!result && std::chrono::steady_clock::now() < deadline)
        result = insert(*storage, 1, "small");
    EXPECT_TRUE(result) << result.error().message;
}

TEST(Storage, ClosedStoreSaysSo) {
    TempFolder folder;
    auto storage = open_at(folder);
    storage->close().value_or_throw();
    EXPECT_EQ(insert(*storage, 1, "x").error().code, ErrorCode::ShutdownInProgress);
    EXPECT_NE(value_of(storage->latest(), Family::Meta, "format").find("ShutdownInProgress"),
              std::string::npos);
    EXPECT_FALSE(storage->latest().iterate(Family::Meta, {}, {})->status());
}

}  // namespace angelia::engine::storage
