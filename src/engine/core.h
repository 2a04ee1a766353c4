// What the rooms of the engine share: the store, its catalog, and the one lock that surrounds every
// apply section.
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/session/intents.h"
#include "engine/session/retry_table.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace angelia::engine {

/// Shown by serverStatus. Threads: safe.
struct EngineCounters {
    std::atomic<std::int64_t> inserted{0}, updated{0}, deleted{0}, duplicate_keys{0},
        retried_statements{0};
    std::atomic<std::int64_t> outside_searches{0}, searches_repeated{0};
    std::atomic<std::int64_t> section_us_max{0};  ///< longest stay that kept other writers out
    std::atomic<std::int64_t> parked{0};          ///< writes that had to wait for a transaction
    std::atomic<std::int64_t> ttl_passes{0}, ttl_deleted{0}, ttl_failures{0};
    std::atomic<std::int64_t> documents_examined{0};
};

struct Core {
    explicit Core(EngineOptions o) : options(std::move(o)) {}

    // -- constant after open
    EngineOptions options;
    std::unique_ptr<storage::Storage> storage;
    std::unique_ptr<Oplog> oplog;
    // -- own synchronization
    Catalog catalog;
    EngineCounters counters;
    RuntimeSettings settings;
    std::atomic<bool> closing{false};
    std::atomic<std::size_t> transaction_bytes{0};  ///< changes of all open transactions
    /// Surrounds every apply section together with what must be published in the same order
    /// (ApplyScope takes it). Lock order: this one, then those of the storage. Held while a change
    /// is evaluated and committed, never while waiting for the disk to sync.
    std::mutex apply_mutex;
    // -- guarded by apply_mutex
    RetryTable retries;
    IntentTable intents;

    const Clock& clock() const { return *options.storage.clock; }
    Result<void> check_open() const {
        if (closing.load(std::memory_order_acquire))
            return Error(ErrorCode::ShutdownInProgress, "the engine is shutting down");
        return {};
    }
};

}  // namespace angelia::engine
