#include "engine/session/transaction_scope.h"

#include "engine/catalog/index_build.h"
#include "engine/catalog/index_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine {

namespace {

Error write_conflict(std::string_view what) {
    return Error(ErrorCode::WriteConflict,
                 fmt::format("Write conflict during transaction execution: {}. Please retry the "
                             "transaction.",
                             what));
}

Error catalog_changed(const Namespace& ns) {
    return Error(ErrorCode::SnapshotUnavailable,
                 fmt::format("Unable to use a snapshot on {} because the collection or its indexes "
                             "changed after the transaction began; please retry the transaction",
                             ns.full()));
}

}  // namespace

TransactionScope::TransactionScope(Core& core, Transaction& transaction)
    : WriteScope(core),
      lock_(core.apply_mutex),
      t_(transaction),
      bytes_before_(transaction.bytes()) {
    entered();
}

bson::Timestamp TransactionScope::stamp() { return core_.storage->begin_apply()->next_timestamp(); }

Result<void> TransactionScope::take(std::string key, bool shared) {
    const bool taken =
        shared ? core_.intents.take_shared(t_.id_, key) : core_.intents.take(t_.id_, key);
    if (!taken) return write_conflict("another operation holds or waits for what it changes");
    t_.intents_.push_back(std::move(key));
    return {};
}

void TransactionScope::show(CollectionPtr changed) {
    auto next = std::make_shared<CatalogView>(*t_.catalog_);
    next->collections[changed->ns] = std::move(changed);
    t_.catalog_ = std::move(next);
}

std::uint32_t TransactionScope::next_id() {
    // Used up even when the transaction comes to nothing; made durable by its commit.
    const auto id = core_.catalog.next_id();
    core_.catalog.set_next_id(id + 1);
    return id;
}

Result<CollectionPtr> TransactionScope::create_collection(const Namespace& ns,
                                                          const bson::Document& options) {
    if (t_.catalog_->find(ns))
        return Error(ErrorCode::NamespaceExists,
                     fmt::format("Collection {} already exists.", ns.full()));
    if (core_.catalog.find(ns)) return catalog_changed(ns);
    ANGELIA_TRY(t_.catalog_->check_database_case(ns.db));
    ANGELIA_TRY(core_.catalog.view()->check_database_case(ns.db));
    ANGELIA_TRY(take(namespace_intent(ns), false));
    ANGELIA_TRY_ASSIGN(auto made,
                       make_collection(core_, ns, options, [this] { return next_id(); }));
    CollectionPtr collection = std::move(made);
    show(collection);
    t_.pending(collection).created = true;
    log_command(ns.db, ns.collection, collection->id, collection->uuid,
                create_payload(*collection));
    return collection;
}

Result<IndexBuild> TransactionScope::create_indexes(const Namespace& ns,
                                                    const std::vector<IndexSpec>& specs) {
    IndexBuild build;
    auto collection = t_.catalog_->find(ns);
    if (!collection) {
        ANGELIA_TRY_ASSIGN(collection, create_collection(ns, bson::Document()));
        build.created_collection = true;
    }
    ANGELIA_TRY_ASSIGN(auto fresh, new_index_specs(*collection, specs));
    build.before = static_cast<std::int32_t>(collection->indexes.size());
    build.after = build.before + static_cast<std::int32_t>(fresh.size());
    build.all_existed = fresh.empty();
    if (fresh.empty()) return build;
    const auto pending = t_.pending_.find(collection->id);
    if (pending == t_.pending_.end() || !pending->second.created)
        return Error(ErrorCode::OperationNotSupportedInTransaction,
                     fmt::format("Cannot create new indexes on existing collection {} in a "
                                 "multi-document transaction.",
                                 ns.full()));
    ANGELIA_TRY_ASSIGN(const auto built, build_indexes(reader(), collection, fresh));
    auto changed = copy_collection(*collection);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
        ANGELIA_TRY_ASSIGN(auto index, make_index(next_id(), fresh[i], built.indexes[i].multikey));
        for (const auto& [key, record] : built.indexes[i].keys)
            put_index_entry(*index, key, record);
        changed->indexes.push_back(std::move(index));
    }
    changed->index_generation = core_.catalog.next_generation();
    refresh_index_infos(*changed);
    CollectionPtr made = std::move(changed);
    show(made);
    pending->second.collection = made;
    log_command(ns.db, ns.collection, made->id, made->uuid,
                indexes_payload("createIndexes", ns.collection, fresh));
    return build;
}

Result<void> TransactionScope::touch_collection(const Collection& collection) {
    if (t_.pending_.count(collection.id) != 0) return {};
    auto newest = core_.catalog.find(collection.ns);
    if (!newest || newest->id != collection.id ||
        newest->index_generation != collection.index_generation)
        return catalog_changed(collection.ns);
    ANGELIA_TRY(take(collection_intent(collection.id), true));
    t_.pending(t_.catalog_->find(collection.ns));
    return {};
}

Result<void> TransactionScope::touch_record(const Collection& collection,
                                            storage::RecordId record) {
    if (record >= kProvisionalRecord) return {};  // nobody else has seen it
    ANGELIA_TRY(take(record_intent(collection.id, record), false));
    if (core_.options.transaction_mutant == TransactionMutant::NoConflictCheck) return {};
    std::string newest;
    ANGELIA_TRY_ASSIGN(bool there, core_.storage->latest().get(
                                       storage::Family::Records,
                                       storage::record_key(collection.id, record), newest));
    // Times are given out in commit order, so what is newer than the snapshot has a greater one.
    if (!there || storage::record_time(newest) > t_.position_.time)
        return write_conflict("a document changed after the transaction began");
    return {};
}

Result<void> TransactionScope::touch_unique(const Index& index, std::string_view encoded) {
    ANGELIA_TRY(take(unique_intent(index.id, encoded), false));
    if (core_.options.transaction_mutant == TransactionMutant::NoConflictCheck) return {};
    const auto key = storage::unique_entry(index.id, encoded);
    std::string newest, seen;
    ANGELIA_TRY_ASSIGN(bool now,
                       core_.storage->latest().get(storage::Family::Indexes, key, newest));
    ANGELIA_TRY_ASSIGN(bool then, t_.workspace_->base().get(storage::Family::Indexes, key, seen));
    if (now != then || newest != seen)
        return write_conflict("a unique key changed after the transaction began");
    return {};
}

storage::RecordId TransactionScope::allocate_record(const CollectionPtr& collection) {
    return kProvisionalRecord + t_.pending(collection).inserted++;
}

void TransactionScope::put_record(const CollectionPtr& collection, storage::RecordId record,
                                  std::string_view document, bool /*fresh*/) {
    t_.workspace_->put(storage::Family::Records, storage::record_key(collection->id, record),
                       storage::record_value(bson::Timestamp{}, document));
}

void TransactionScope::erase_record(const CollectionPtr& collection, storage::RecordId record) {
    t_.workspace_->erase(storage::Family::Records, storage::record_key(collection->id, record));
}

void TransactionScope::put_index_entry(const Index& index, std::string_view encoded,
                                       storage::RecordId record) {
    t_.workspace_->put(storage::Family::Indexes, index_entry_key(index, encoded, record),
                       index.spec.unique ? storage::encode_record_id(record) : std::string());
}

void TransactionScope::erase_index_entry(const Index& index, std::string_view encoded,
                                         storage::RecordId record) {
    t_.workspace_->erase(storage::Family::Indexes, index_entry_key(index, encoded, record));
}

void TransactionScope::count(const CollectionPtr& collection, std::int64_t documents,
                             std::int64_t bytes) {
    auto& pending = t_.pending(collection);
    pending.documents += documents;
    pending.bytes += bytes;
}

void TransactionScope::mark_multikey(const CollectionPtr& collection, std::size_t index) {
    auto current = t_.catalog_->find(collection->ns);
    if (!current->indexes[index]->multikey) {
        CollectionPtr flagged = with_multikey(*current, index);
        show(flagged);
        t_.pending(flagged).collection = flagged;
    }
    auto& marks = t_.pending(collection).multikey;
    if (std::find(marks.begin(), marks.end(), index) == marks.end()) marks.push_back(index);
}

void TransactionScope::append(OplogFields& fields) {
    fields.lsid = t_.key_.lsid.view();
    fields.txn_number = t_.key_.txn_number;
    fields.in_transaction = true;
    auto entry = OplogEntry::encode(fields);
    t_.entry_bytes_ += entry->size();
    t_.entries_.push_back(std::move(entry));
}

Result<void> TransactionScope::check_size() {
    const auto size = t_.bytes();
    if (size > kTransactionBytesMax)
        return Error(
            ErrorCode::TransactionTooLarge,
            fmt::format("the transaction holds {} bytes of changes, at most {} are allowed", size,
                        kTransactionBytesMax));
    const auto before = core_.transaction_bytes.fetch_add(size - t_.counted_bytes_);
    const auto together = before + size - t_.counted_bytes_;
    t_.counted_bytes_ = size;
    if (together > kTransactionsBytesMax)
        return Error(ErrorCode::TransactionTooLargeForCache,
                     fmt::format("all open transactions together hold {} bytes of changes, at most "
                                 "{} are allowed",
                                 together, kTransactionsBytesMax));
    return {};
}

}  // namespace angelia::engine
