// Collections and indexes: the engine's side of catalog/ddl.h.
#include "engine/catalog/ddl.h"
#include "engine/catalog/modify.h"
#include "engine/collection/validate.h"
#include "engine/engine_impl.h"

#include <fmt/format.h>

namespace angelia::engine {

namespace {

// Dropping fewer documents leaves too few tombstones to be worth a compaction.
constexpr std::int64_t kCompactDocumentsMin = 10'000;

}  // namespace

void EngineImpl::compact_later(storage::Family family, std::string prefix) {
    workers_.post([this, family, prefix = std::move(prefix)] {
        if (core_.closing) return;
        if (auto compacted = core_.storage->compact(family, prefix, storage::prefix_end(prefix));
            !compacted)
            core_.options.storage.log(LogLevel::Warning, "compaction after a drop failed: " +
                                                             compacted.error().to_string());
    });
}

void EngineImpl::create_collection(const Namespace& ns, bson::Document options, Done done,
                                   SteadyTime deadline) {
    auto shared = std::make_shared<bson::Document>(std::move(options));
    run_ddl<bool>(
        deadline,
        [this, ns, shared](WaiterId waiter) {
            return engine::create_collection(core_, ns, *shared, waiter);
        },
        [this, done = std::move(done)](Result<Committed<bool>> made) {
            if (!made) return done(std::move(made).error());
            answer_durable<bson::Timestamp>(made->position, made->position.time, done);
        });
}

void EngineImpl::drop_collection(const Namespace& ns,
                                 std::function<void(Result<std::int32_t>)> done,
                                 SteadyTime deadline) {
    auto collection = core_.catalog.find(ns);
    run_ddl<std::int32_t>(
        deadline,
        [this, ns](WaiterId waiter) { return engine::drop_collection(core_, ns, waiter); },
        [this, collection, done = std::move(done)](Result<Committed<std::int32_t>> dropped) {
            if (!dropped) return done(std::move(dropped).error());
            if (collection && collection->live->count.load() >= kCompactDocumentsMin) {
                compact_later(storage::Family::Records, storage::record_prefix(collection->id));
                for (const auto& index : collection->indexes)
                    compact_later(storage::Family::Indexes, storage::index_prefix(index->id));
            }
            answer_durable<std::int32_t>(dropped->position, dropped->value, done);
        });
}

void EngineImpl::drop_database(const std::string& db, Done done, SteadyTime deadline) {
    run_ddl<bool>(
        deadline, [this, db](WaiterId waiter) { return engine::drop_database(core_, db, waiter); },
        [this, done = std::move(done)](Result<Committed<bool>> dropped) {
            if (!dropped) return done(std::move(dropped).error());
            answer_durable<bson::Timestamp>(dropped->position, dropped->position.time, done);
        });
}

void EngineImpl::modify_collection(const Namespace& ns, CollectionChange change,
                                   std::function<void(Result<CollectionChanged>)> done,
                                   SteadyTime deadline) {
    auto shared = std::make_shared<CollectionChange>(std::move(change));
    run_ddl<CollectionChanged>(
        deadline,
        [this, ns, shared](WaiterId waiter) {
            return engine::modify_collection(core_, ns, *shared, waiter);
        },
        [this, done = std::move(done)](Result<Committed<CollectionChanged>> changed) {
            if (!changed) return done(std::move(changed).error());
            answer_durable<CollectionChanged>(changed->position, changed->value, done);
        });
}

void EngineImpl::rename_collection(const Namespace& from, const Namespace& to,
                                   RenameOptions options, Done done, SteadyTime deadline) {
    run_ddl<bool>(
        deadline,
        [this, from, to, options](WaiterId waiter) {
            return engine::rename_collection(core_, from, to, options, waiter);
        },
        [this, done = std::move(done)](Result<Committed<bool>> renamed) {
            if (!renamed) return done(std::move(renamed).error());
            answer_durable<bson::Timestamp>(renamed->position, renamed->position.time, done);
        });
}

void EngineImpl::create_indexes(const Namespace& ns, std::vector<IndexSpec> specs,
                                std::function<void(Result<IndexBuild>)> done, SteadyTime deadline) {
    auto shared = std::make_shared<std::vector<IndexSpec>>(std::move(specs));
    run_ddl<IndexBuild>(
        deadline,
        [this, ns, shared](WaiterId waiter) {
            return engine::create_indexes(core_, ns, *shared, waiter);
        },
        [this, done = std::move(done)](Result<Committed<IndexBuild>> built) {
            if (!built) return done(std::move(built).error());
            built->value.operation_time = built->position.time;
            answer_durable<IndexBuild>(built->position, built->value, done);
        });
}

void EngineImpl::drop_indexes(const Namespace& ns, bson::Value which,
                              std::function<void(Result<std::int32_t>)> done, SteadyTime deadline) {
    auto shared = std::make_shared<bson::Value>(std::move(which));
    run_ddl<std::int32_t>(
        deadline,
        [this, ns, shared](WaiterId waiter) {
            return engine::drop_indexes(core_, ns, shared->view(), waiter);
        },
        [this, done = std::move(done)](Result<Committed<std::int32_t>> dropped) {
            if (!dropped) return done(std::move(dropped).error());
            answer_durable<std::int32_t>(dropped->position, dropped->value, done);
        });
}

std::vector<std::string> EngineImpl::list_databases() {
    return current_view(core_).catalog->databases();
}

std::vector<CollectionInfo> EngineImpl::list_collections(const std::string& db) {
    std::vector<CollectionInfo> infos;
    for (const auto& collection : current_view(core_).catalog->in_database(db)) {
        CollectionInfo info;
        info.name = collection->ns.collection;
        info.options = collection->options.copy();
        info.uuid = collection->uuid;
        info.id = collection->id;
        infos.push_back(std::move(info));
    }
    return infos;
}

Result<CollectionStats> EngineImpl::collection_stats(const Namespace& ns) {
    const auto view = current_view(core_);
    auto collection = view.find(ns);
    if (!collection)
        return Error(ErrorCode::NamespaceNotFound, fmt::format("ns does not exist: {}", ns.full()));
    CollectionStats stats;
    ANGELIA_TRY_ASSIGN(const auto counters,
                       read_counters(*core_.storage->at(view.snapshot), collection->id));
    stats.count = counters.count;
    stats.bytes = counters.bytes;
    for (const auto& index : collection->indexes) stats.indexes.push_back(copy_spec(index->spec));
    return stats;
}

Result<std::vector<IndexSpec>> EngineImpl::list_indexes(const Namespace& ns) {
    ANGELIA_TRY_ASSIGN(auto stats, collection_stats(ns));
    return std::move(stats.indexes);
}

Result<bson::Document> EngineImpl::validate(const Namespace& ns) {
    return validate_collection(core_, ns);
}

}  // namespace angelia::engine
