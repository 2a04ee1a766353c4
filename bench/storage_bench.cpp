// The storage floor alone: durable puts per second beside the `sync` floor, and two record layouts
// side by side. The figures and what follows from them stand in
// docs/decisions/0005-storage-layout.md.
//
//     storage_bench [--dir FOLDER] [--seconds S] [durable] [layout]
#include "engine/changes/oplog.h"
#include "engine/storage/keys.h"
#include "engine/storage/storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace angelia::bench {
namespace {

using engine::OpKind;
using engine::OplogEntry;
using engine::OplogFields;
using engine::storage::CommitPosition;
using engine::storage::Durability;
using engine::storage::Family;
using engine::storage::Options;
using engine::storage::RecordId;
using engine::storage::Storage;
namespace storage = engine::storage;

using BenchClock = std::chrono::steady_clock;

double seconds_since(BenchClock::time_point start) {
    return std::chrono::duration<double>(BenchClock::now() - start).count();
}

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Settings {
    std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("storage_bench_{}", getpid());
    double seconds = 3;
};

/// 2 KB of text that compresses to about half, as messages do.
std::string text_of(std::size_t bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string text;
    while (text.size() < bytes) text += fmt::format("{:x} order confirmed, ", random());
    text.resize(bytes);
    return text;
}

double sync_floor(const Settings& settings) {
    const auto path = (settings.folder / "floor").string();
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    const auto block = text_of(2048, 1);
    const auto start = BenchClock::now();
    std::size_t count = 0;
    for (; seconds_since(start) < settings.seconds; ++count) {
        if (::write(file, block.data(), block.size()) < 0 || ::fdatasync(file) != 0) std::exit(1);
    }
    ::close(file);
    std::filesystem::remove(path);
    return static_cast<double>(count) / seconds_since(start);
}

std::unique_ptr<Storage> fresh_store(const Settings& settings, bool memory = false,
                                     Durability durability = Durability::Strict) {
    const auto path = settings.folder / "data";
    std::filesystem::remove_all(path);
    Options options;
    options.path = path.string();
    options.memory = memory;
    options.memory_bytes_max = std::size_t{4} << 30;
    options.durability = durability;
    return Storage::open(options).value_or_throw();
}

/// What an insert of the engine writes: record, _id entry, oplog entry.
CommitPosition put_record(Storage& store, RecordId record, bson::DocumentView document) {
    OplogFields fields;
    fields.kind = OpKind::Insert;
    fields.db = "bench";
    fields.collection = "messages";
    fields.collection_id = 1;
    fields.id = document["_id"];
    fields.payload = document;
    const auto entry = OplogEntry::encode(fields);
    const auto id_entry = storage::unique_entry(1, fields.id.bytes());
    auto section = store.begin_apply();
    const auto time = section->next_timestamp();
    section->put(Family::Records, storage::record_key(1, record),
                 storage::record_value(time, document.bytes()));
    section->put(Family::Indexes, id_entry, storage::encode_record_id(record));
    section->append_oplog(time, 0, entry);
    return section->commit().value_or_throw();
}

void durable_row(const Settings& settings, double floor, int writers, std::size_t in_flight,
                 bool memory, Durability durability, const char* name) {
    auto store = fresh_store(settings, memory, durability);
    const auto text = text_of(2000, 2);
    std::atomic<RecordId> next{0};
    std::atomic<std::uint64_t> done{0};
    const auto cpu = cpu_seconds();
    const auto start = BenchClock::now();
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w) {
        threads.emplace_back([&] {
            std::mutex mutex;
            std::condition_variable room;
            std::size_t open = 0;
            while (seconds_since(start) < settings.seconds) {
                const auto record = ++next;
                const auto document = bson::make("_id", bson::ObjectId::generate(), "text", text);
                {
                    std::unique_lock lock(mutex);
                    room.wait(lock, [&] { return open < in_flight; });
                    ++open;
                }
                store->on_durable(put_record(*store, record, document), [&](Result<void>) {
                    ++done;
                    std::lock_guard lock(mutex);
                    if (open-- == in_flight || open == 0) room.notify_one();
                });
            }
            std::unique_lock lock(mutex);
            room.wait(lock, [&] { return open == 0; });
        });
    }
    for (auto& thread : threads) thread.join();
    const auto elapsed = seconds_since(start);
    const auto rate = static_cast<double>(done) / elapsed;
    const auto statistics = store->statistics();
    fmt::print(
        "  {:34} {:>9.0f}/s  {:>6.1f} x sync  {:>6.0f} syncs/s  {:>5.1f} us CPU  longest section "
        "{} us\n",
        name, rate, rate / floor, static_cast<double>(statistics.syncs) / elapsed,
        1e6 * (cpu_seconds() - cpu) / static_cast<double>(done), statistics.apply_us_max);
}

void durable_rows(const Settings& settings) {
    const auto floor = sync_floor(settings);
    fmt::print("durable puts of 2 KB (record, _id entry, oplog entry)\n  {:34} {:>9.0f}/s\n",
               "floor: 2 KB append + fdatasync", floor);
    durable_row(settings, floor, 1, 1, false, Durability::Strict, "strict, 1 writer, waits");
    durable_row(settings, floor, 4, 1, false, Durability::Strict, "strict, 4 writers, each waits");
    durable_row(settings, floor, 16, 1, false, Durability::Strict,
                "strict, 16 writers, each waits");
    durable_row(settings, floor, 64, 1, false, Durability::Strict,
                "strict, 64 writers, each waits");
    durable_row(settings, floor, 1, 1000, false, Durability::Strict,
                "strict, 1 writer, 1000 in flight");
    durable_row(settings, floor, 1, 10000, false, Durability::Strict,
                "strict, 1 writer, 10000 in flight");
    durable_row(settings, floor, 1, 1, false, Durability::Periodic, "periodic, 1 writer, waits");
    durable_row(settings, floor, 1, 1000, false, Durability::Periodic,
                "periodic, 1 writer, 1000 in flight");
    durable_row(settings, floor, 1, 1, true, Durability::Strict, "memory, 1 writer");
    fmt::print("  {:34} {:>9.0f}/s\n", "floor again", sync_floor(settings));
}

// -- two layouts: A = records by record id plus a unique _id index, B = records clustered by _id

enum class Layout { ByRecordId, ClusteredById };
constexpr std::size_t kLayoutDocuments = 100'000;
constexpr std::size_t kSectionDocuments = 20;

std::string clustered_key(std::string_view id) {
    return storage::record_prefix(2) + std::string(id);
}

struct LayoutRow {
    double insert, get, scan, update, erase;  ///< documents per second
    double megabytes;
};

LayoutRow measure_layout(const Settings& settings, Layout layout, bool random_ids,
                         std::size_t bytes) {
    auto store = fresh_store(settings, false, Durability::Periodic);
    std::mt19937_64 random(5);
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < kLayoutDocuments; ++i) {
        std::string id = "0000000000000000";
        const auto high = random_ids ? random() : i;
        for (int b = 0; b < 8; ++b)
            id[static_cast<std::size_t>(b)] = static_cast<char>(high >> (56 - 8 * b));
        ids.push_back(id);
    }
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < 997; ++i) texts.push_back(text_of(bytes, i));
    const auto put = [&](storage::ApplySection& section, RecordId record, const std::string& id,
                         bool fresh) {
        const auto value =
            storage::record_value(section.next_timestamp(), texts[record % texts.size()]);
        std::string ignored;
        if (layout == Layout::ClusteredById) {
            if (fresh)
                (void)section.get(Family::Records, clustered_key(id),
                                  ignored);  // is the _id there already?
            section.put(Family::Records, clustered_key(id), value);
            return;
        }
        if (fresh) {
            (void)section.get(Family::Indexes, storage::unique_entry(1, id), ignored);
            section.put(Family::Indexes, storage::unique_entry(1, id),
                        storage::encode_record_id(record));
        }
        section.put(Family::Records, storage::record_key(1, record), value);
    };
    const auto find = [&](const storage::Reader& reader, const std::string& id,
                          std::string& value) {
        if (layout == Layout::ClusteredById)
            return RecordId{reader.get(Family::Records, clustered_key(id), value).value_or_throw()};
        if (!reader.get(Family::Indexes, storage::unique_entry(1, id), value).value_or_throw())
            return RecordId{0};
        const auto record = storage::decode_record_id(value);
        (void)reader.get(Family::Records, storage::record_key(1, record), value).value_or_throw();
        return record;
    };
    const auto timed = [&](std::size_t count, auto work) {
        const auto start = BenchClock::now();
        work();
        return static_cast<double>(count) / seconds_since(start);
    };
    LayoutRow row{};
    CommitPosition last;
    row.insert = timed(kLayoutDocuments, [&] {
        for (std::size_t i = 0; i < kLayoutDocuments; i += kSectionDocuments) {
            auto section = store->begin_apply();
            for (std::size_t k = i; k < i + kSectionDocuments; ++k)
                put(*section, k + 1, ids[k], true);
            last = section->commit().value_or_throw();
        }
        store->wait_durable(last).value_or_throw();
    });
    for (const auto family : {Family::Records, Family::Indexes})
        store->compact(family, {}, {}).value_or_throw();
    row.megabytes = static_cast<double>(store->statistics().disk_bytes) / 1e6;
    std::string value;
    constexpr std::size_t kGets = 30'000;
    row.get = timed(kGets, [&] {
        for (std::size_t i = 0; i < kGets; ++i) {
            if (find(store->latest(), ids[random() % ids.size()], value) == 0) std::exit(1);
        }
    });
    row.scan = timed(kLayoutDocuments, [&] {
        const auto prefix = storage::record_prefix(layout == Layout::ClusteredById ? 2 : 1);
        std::size_t seen = 0;
        const auto rows =
            store->latest().iterate(Family::Records, prefix, storage::prefix_end(prefix));
        for (rows->seek_to_first(); rows->valid(); rows->next())
            seen += rows->value().empty() ? 0 : 1;
        if (seen != kLayoutDocuments) std::exit(1);
    });
    constexpr std::size_t kUpdates = 20'000;
    row.update = timed(kUpdates, [&] {
        for (std::size_t i = 0; i < kUpdates; ++i) {
            auto section = store->begin_apply();
            const auto& id = ids[random() % ids.size()];
            put(*section, find(*section, id, value), id, false);
            last = section->commit().value_or_throw();
        }
        store->wait_durable(last).value_or_throw();
    });
    row.erase = timed(kLayoutDocuments, [&] {
        for (std::size_t i = 0; i < kLayoutDocuments; i += kSectionDocuments) {
            auto section = store->begin_apply();
            for (std::size_t k = i; k < i + kSectionDocuments; ++k) {
                const auto record = find(*section, ids[k], value);
                if (layout == Layout::ClusteredById) {
                    section->erase(Family::Records, clustered_key(ids[k]));
                } else {
                    section->erase(Family::Indexes, storage::unique_entry(1, ids[k]));
                    section->erase(Family::Records, storage::record_key(1, record));
                }
            }
            last = section->commit().value_or_throw();
        }
        store->wait_durable(last).value_or_throw();
    });
    return row;
}

void layout_rows(const Settings& settings) {
    fmt::print("layouts, {} documents, thousands of documents per second\n", kLayoutDocuments);
    fmt::print("  {:44} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "", "insert", "get", "scan",
               "update", "delete", "MB");
    for (const std::size_t bytes : {std::size_t{200}, std::size_t{2000}}) {
        for (const bool random_ids : {false, true}) {
            // In turns, so that what else runs on the machine falls on both alike.
            std::map<Layout, std::vector<LayoutRow>> runs;
            for (int i = 0; i < 3; ++i) {
                for (const auto layout : {Layout::ByRecordId, Layout::ClusteredById})
                    runs[layout].push_back(measure_layout(settings, layout, random_ids, bytes));
            }
            for (auto& [layout, rows] : runs) {
                const auto median = [&rows = rows](double LayoutRow::*field) {
                    std::sort(rows.begin(), rows.end(),
                              [&](const LayoutRow& a, const LayoutRow& b) {
                                  return a.*field < b.*field;
                              });
                    return rows[1].*field;
                };
                fmt::print(
                    "  {:44} {:>8.1f} {:>8.1f} {:>8.0f} {:>8.1f} {:>8.1f} {:>8.0f}\n",
                    fmt::format("{} B, {} ids, {}", bytes, random_ids ? "random" : "ascending",
                                layout == Layout::ByRecordId ? "record id + _id index"
                                                             : "clustered by _id"),
                    median(&LayoutRow::insert) / 1e3, median(&LayoutRow::get) / 1e3,
                    median(&LayoutRow::scan) / 1e3, median(&LayoutRow::update) / 1e3,
                    median(&LayoutRow::erase) / 1e3, median(&LayoutRow::megabytes));
            }
        }
    }
}

/// How long a store of about a gigabyte, cleanly stopped, takes to open.
void start_row(const Settings& settings) {
    auto store = fresh_store(settings);
    const auto text = text_of(2000, 4);
    CommitPosition last;
    for (RecordId record = 1; record <= 250'000; ++record) {
        last = put_record(*store, record,
                          bson::make("_id", static_cast<std::int64_t>(record), "text", text));
    }
    store->wait_durable(last).value_or_throw();
    store->close().value_or_throw();
    store.reset();
    Options options;
    options.path = (settings.folder / "data").string();
    const auto start = BenchClock::now();
    store = Storage::open(options).value_or_throw();
    const auto opened = seconds_since(start);
    fmt::print("start\n  a store of {:.2f} GB, cleanly stopped, opens in {:.1f} ms\n",
               static_cast<double>(store->statistics().disk_bytes) / 1e9, opened * 1e3);
    store.reset();
    std::filesystem::remove_all(settings.folder / "data");
    Options memory;
    memory.memory = true;
    const auto memory_start = BenchClock::now();
    store = Storage::open(memory).value_or_throw();
    fmt::print("  a memory store opens in {:.1f} ms\n", seconds_since(memory_start) * 1e3);
}

}  // namespace
}  // namespace angelia::bench

int main(int argc, char** argv) {
    using namespace angelia::bench;
    Settings settings;
    bool durable = false;
    bool layout = false;
    bool start = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--dir" && i + 1 < argc)
            settings.folder = std::filesystem::path(argv[++i]) / "storage_bench";
        else if (word == "--seconds" && i + 1 < argc)
            settings.seconds = std::atof(argv[++i]);
        else if (word == "--big-blocks")
            mallopt(M_MMAP_THRESHOLD, 1 << 30), mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
        else if (word == "durable")
            durable = true;
        else if (word == "layout")
            layout = true;
        else if (word == "start")
            start = true;
        else
            return fmt::print(stderr,
                              "usage: storage_bench [--dir FOLDER] [--seconds S] [--big-blocks] "
                              "[durable] [layout] [start]\n"),
                   2;
    }
    if (!durable && !layout && !start) durable = layout = start = true;
    std::filesystem::create_directories(settings.folder);
    if (durable) durable_rows(settings);
    if (start) start_row(settings);
    if (layout) layout_rows(settings);
    std::filesystem::remove_all(settings.folder);
    return 0;
}
