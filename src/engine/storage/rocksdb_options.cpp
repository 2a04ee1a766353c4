#include "engine/storage/rocksdb_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace angelia::engine::storage {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Warnings and errors of RocksDB go to the caller's log; there are no LOG files in the data folder
/// (a second process that meets the lock would otherwise rotate the holder's).
class ForwardingLogger final : public rocksdb::Logger {
  public:
    explicit ForwardingLogger(LogFunction log)
        : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL), log_(std::move(log)) {}
    using rocksdb::Logger::Logv;
    void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
        if (level == rocksdb::InfoLogLevel::HEADER_LEVEL ||
            level < rocksdb::InfoLogLevel::WARN_LEVEL)
            return;
        char text[1024];
        const int length = std::vsnprintf(text, sizeof text, format, arguments);
        if (length <= 0) return;
        log_(level == rocksdb::InfoLogLevel::WARN_LEVEL ? LogLevel::Warning : LogLevel::Error,
             std::string("rocksdb: ") +
                 std::string(text, std::min<std::size_t>(static_cast<std::size_t>(length),
                                                         sizeof text - 1)));
    }
    void Logv(const char* format, va_list arguments) override {
        Logv(rocksdb::InfoLogLevel::WARN_LEVEL, format, arguments);
    }

  private:
    LogFunction log_;
};

/// Tells the store of background errors and keeps RocksDB from repairing by itself: when writes may
/// go on is our decision, because it moves the durable watermark.
class ErrorListener final : public rocksdb::EventListener {
  public:
    explicit ErrorListener(std::shared_ptr<BackgroundErrors> errors) : errors_(std::move(errors)) {}
    void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* status) override {
        // RocksDB calls it fatal when the log's buffer does not fit on the disk while a memtable is
        // switched. For us it is not: the memtables hold everything, and coming back flushes them
        // all.
        const bool space = is_out_of_space(*status) || is_echo(*status);
        if (space && status->severity() == rocksdb::Status::Severity::kFatalError) {
            *status = rocksdb::Status(*status, rocksdb::Status::Severity::kHardError);
        }
        errors_->report(*status);
    }
    void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                              bool* auto_recovery) override {
        *auto_recovery = false;
    }

  private:
    std::shared_ptr<BackgroundErrors> errors_;
};

/// What keys of records and index entries have in common with their neighbours: the collection or
/// the index. A range deletion begins with nothing else and is kept out: RocksDB looks for the
/// place of its last insert by this prefix alone, and would search one skip list with a place in
/// another.
class InsertPlace final : public rocksdb::SliceTransform {
  public:
    const char* Name() const override { return "angelia.InsertPlace"; }
    rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
        return {key.data(), kPlacePrefixBytes};
    }
    bool InDomain(const rocksdb::Slice& key) const override {
        return key.size() > kPlacePrefixBytes;
    }
};

rocksdb::CompressionType best_compression() {
    const auto there = rocksdb::GetSupportedCompressions();
    for (const auto wanted :
         {rocksdb::kLZ4Compression, rocksdb::kZSTD, rocksdb::kSnappyCompression}) {
        if (std::find(there.begin(), there.end(), wanted) != there.end()) return wanted;
    }
    return rocksdb::kNoCompression;
}

rocksdb::ColumnFamilyOptions family_options(const Options& options, Family family,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
    rocksdb::ColumnFamilyOptions o;
    o.write_buffer_size = family == Family::Meta ? 8 * kMiB : 64 * kMiB;
    // A memory store must be able to drop what was deleted long before it is full.
    if (options.memory)
        o.write_buffer_size = std::clamp(options.memory_bytes_max / 32, kMiB, o.write_buffer_size);
    o.max_write_buffer_number = 3;
    o.arena_block_size = 256 * 1024;  // the default megabyte per family is felt by an idle server
    o.level_compaction_dynamic_level_bytes = true;
    o.target_file_size_base = std::min(64 * kMiB, o.write_buffer_size);
    o.max_bytes_for_level_base = 4 * o.target_file_size_base;
    // Queue data dies young: only what reaches the bottom is worth compressing.
    o.compression = rocksdb::kNoCompression;
    o.bottommost_compression = best_compression();
    o.memtable_whole_key_filtering = true;
    o.memtable_prefix_bloom_size_ratio = family == Family::Indexes ? 0.01 : 0.0;
    // Commits write a little to several collections and indexes in turn, to each mostly near the
    // place of the last time: remembered by collection or index, the place need not be searched.
    if (family == Family::Records || family == Family::Indexes)
        o.memtable_insert_with_hint_prefix_extractor.reset(new InsertPlace);

    rocksdb::BlockBasedTableOptions table;
    table.block_cache = cache;
    table.block_size = 16 * 1024;
    table.format_version = 5;
    table.cache_index_and_filter_blocks = true;
    table.pin_l0_filter_and_index_blocks_in_cache = true;
    // Every insert asks whether its _id is there already: the filter answers "no" without a read.
    if (family != Family::Oplog)
        table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
    o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

    if (family == Family::Records || family == Family::Indexes) {
        // A drained queue leaves tables of tombstones, and a scan over 200 000 of them costs 40 to
        // 350 ms.
        o.table_properties_collector_factories.push_back(
            rocksdb::NewCompactOnDeletionCollectorFactory(4096, 2048, 0.5));
    }
    return o;
}

}  // namespace

RocksdbSettings rocksdb_settings(const Options& options, rocksdb::Env& environment,
                                 const std::shared_ptr<BackgroundErrors>& errors) {
    RocksdbSettings settings;
    auto& o = settings.database;
    o.env = &environment;
    o.create_if_missing = true;
    o.create_missing_column_families = true;
    o.info_log = std::make_shared<ForwardingLogger>(options.log);
    o.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
    o.listeners.push_back(std::make_shared<ErrorListener>(errors));
    o.sst_file_manager.reset(rocksdb::NewSstFileManager(&environment, o.info_log));

    o.manual_wal_flush = true;  // the syncer writes the log; a commit only fills its buffer
    o.max_total_wal_size = 256 * kMiB;
    o.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
    // After a failed log write the memtables are the truth and get flushed; records and their oplog
    // entries must become durable together then, whatever happens in between.
    o.atomic_flush = true;
    o.max_bgerror_resume_count = 0;

    o.max_background_jobs = 2;
    o.allow_concurrent_memtable_write = false;  // one writer at a time by design
    o.enable_write_thread_adaptive_yield = false;
    o.bytes_per_sync = kMiB;
    o.db_write_buffer_size = 0;

    // A quick start, no timers.
    o.stats_dump_period_sec = 0;
    o.stats_persist_period_sec = 0;
    o.skip_stats_update_on_db_open = true;
    o.skip_checking_sst_file_sizes_on_db_open = true;
    o.max_file_opening_threads = 2;
    o.avoid_unnecessary_blocking_io = true;

    const auto cache = rocksdb::NewLRUCache(128 * kMiB, 4);
    const auto add = [&](const std::string& name, Family family) {
        settings.families.emplace_back(name, family_options(options, family, cache));
    };
    add(rocksdb::kDefaultColumnFamilyName,
        Family::Meta);  // RocksDB insists on a family of this name
    add("records", Family::Records);
    add("indexes", Family::Indexes);
    add("oplog", Family::Oplog);
    return settings;
}

}  // namespace angelia::engine::storage
