#include "engine/session/transaction.h"

#include "engine/collection/apply_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace angelia::engine {

namespace {

constexpr std::size_t kRecordIdBytes = 8;     // at the end of record keys and plain index entries
constexpr std::size_t kRecordTimeOffset = 1;  // behind the version byte of a record value

bool ends_provisional(std::string_view bytes) {
    return bytes.size() >= kRecordIdBytes &&
           (static_cast<unsigned char>(bytes[bytes.size() - kRecordIdBytes]) & 0x80) != 0;
}

/// The last eight bytes, big endian.
void replace_record_id(std::string& bytes, storage::RecordId first) {
    const auto at = bytes.size() - kRecordIdBytes;
    const auto provisional = storage::decode_record_id(std::string_view(bytes).substr(at));
    bytes.replace(at, kRecordIdBytes,
                  storage::encode_record_id(first + (provisional - kProvisionalRecord)));
}

/// The planted fault: reads walk the indexes as if the transaction had changed nothing there.
class IndexesOfBase final : public storage::Reader {
  public:
    explicit IndexesOfBase(const storage::Workspace& workspace) : workspace_(workspace) {}
    Result<bool> get(storage::Family family, std::string_view key,
                     std::string& value) const override {
        return workspace_.get(family, key, value);
    }
    storage::IteratorPtr iterate(storage::Family family, std::string_view lower,
                                 std::string_view upper) const override {
        return family == storage::Family::Indexes ? workspace_.base().iterate(family, lower, upper)
                                                  : workspace_.iterate(family, lower, upper);
    }

  private:
    const storage::Workspace& workspace_;
};

/// One key of the batch, complete but for record ids and times that only the commit knows.
struct FinalChange {
    storage::Family family = storage::Family::Records;
    std::string key, value;
    bool erase = false;
    bool key_provisional = false, value_provisional = false;
    storage::CollectionId collection = 0;
    std::shared_ptr<GapCache> gaps;
};

}  // namespace

Transaction::Transaction(Core& core, RetryKey key, TransactionId id, ReadView view)
    : core_(core), key_(std::move(key)), id_(id) {
    read_from(std::move(view));
}

void Transaction::read_from(ReadView view) {
    catalog_ = std::move(view.catalog);
    position_ = view.position;
    workspace_ = core_.storage->workspace(std::move(view.snapshot));
    reader_ = workspace_.get();
    if (core_.options.transaction_mutant == TransactionMutant::IndexChangesIgnored) {
        mutant_reader_ = std::make_unique<IndexesOfBase>(*workspace_);
        reader_ = mutant_reader_.get();
    }
}

Transaction::~Transaction() { core_.transaction_bytes.fetch_sub(counted_bytes_); }

Result<CollectionPtr> Transaction::collection(const Namespace& ns) const {
    auto own = catalog_->find(ns);
    if (own && pending_.count(own->id) != 0) return own;
    auto newest = core_.catalog.find(ns);
    if (newest && (!own || own->id != newest->id))
        return Error(ErrorCode::SnapshotUnavailable,
                     fmt::format("Unable to read {} from the snapshot of the transaction because "
                                 "the collection was made after it began; please retry the "
                                 "transaction",
                                 ns.full()));
    return own;
}

Transaction::Pending& Transaction::pending(const CollectionPtr& collection) {
    auto& pending = pending_[collection->id];
    if (!pending.collection) pending.collection = collection;
    return pending;
}

namespace {

std::vector<FinalChange> final_changes(
    const storage::Workspace& workspace,
    const std::map<storage::IndexId, std::pair<IndexPtr, storage::CollectionId>>& indexes,
    const std::map<storage::CollectionId, std::shared_ptr<LiveState>>& collections) {
    std::vector<FinalChange> changes;
    workspace.for_each([&](const storage::Workspace::Change& change) {
        FinalChange final;
        final.family = change.family;
        final.erase = !change.value;
        if (change.family == storage::Family::Records) {
            final.collection = storage::collection_id_of(change.key);
            final.key_provisional = ends_provisional(change.key);
            const auto& live = collections.at(final.collection);
            final.gaps = std::shared_ptr<GapCache>(live, &live->record_gaps);
        } else {
            const auto& [index, collection] = indexes.at(storage::index_id_of(change.key));
            final.collection = collection;
            final.gaps = index->gaps;
            final.key_provisional = !index->spec.unique && ends_provisional(change.key);
            final.value_provisional =
                index->spec.unique && change.value && ends_provisional(*change.value);
        }
        if (final.erase && final.key_provisional) return;  // came and went
        final.key = change.key;
        if (change.value) final.value = *change.value;
        changes.push_back(std::move(final));
    });
    return changes;
}

}  // namespace

Result<storage::CommitPosition> Transaction::commit() {
    if (core_.options.transaction_mutant == TransactionMutant::IntentsFreedEarly) release_intents();
    std::map<storage::IndexId, std::pair<IndexPtr, storage::CollectionId>> indexes;
    std::map<storage::CollectionId, std::shared_ptr<LiveState>> collections;
    for (const auto& [id, pending] : pending_) {
        collections[id] = pending.collection->live;
        for (const auto& index : pending.collection->indexes) indexes[index->id] = {index, id};
    }
    auto changes = final_changes(*workspace_, indexes, collections);

    // The planted fault: half of the records first.
    std::size_t first_half = 0;
    if (core_.options.transaction_mutant == TransactionMutant::CommitInTwoBatches)
        first_half = static_cast<std::size_t>(std::count_if(
                         changes.begin(), changes.end(),
                         [](const auto& c) { return c.family == storage::Family::Records; })) /
                     2;
    std::map<storage::CollectionId, storage::RecordId> first_record;
    auto scope = std::make_unique<ApplyScope>(core_);
    scope->make_atomic();
    for (auto& [id, pending] : pending_) {
        if (pending.created) {
            ANGELIA_TRY(scope->view().check_database_case(pending.collection->ns.db));
            scope->adopt_collection(pending.collection);
        }
        const auto collection = scope->collection(pending.collection->ns);
        ANGELIA_CHECK(collection && collection->id == id);  // its intent keeps it where it is
        first_record[id] = scope->allocate_records(collection, pending.inserted);
        scope->count(collection, pending.documents, pending.bytes);
        for (const auto index : pending.multikey) scope->mark_multikey(collection, index);
    }
    const auto time = scope->stamp();
    const auto time_bytes = storage::encode_record_time(time);
    std::size_t records = 0;
    for (auto& change : changes) {
        const bool record = change.family == storage::Family::Records;
        if (first_half != 0 && record && records++ == first_half) {
            ANGELIA_TRY(scope->commit(nullptr, {}));
            scope.reset();
            std::this_thread::yield();
            scope = std::make_unique<ApplyScope>(core_);
            scope->make_atomic();
        }
        if (change.key_provisional) replace_record_id(change.key, first_record[change.collection]);
        if (change.value_provisional)
            replace_record_id(change.value, first_record[change.collection]);
        if (change.erase) {
            scope->section().erase(change.family, change.key);
            continue;
        }
        if (change.family == storage::Family::Records)
            change.value.replace(kRecordTimeOffset, time_bytes.size(), time_bytes);
        // A changed record lives already.
        if (change.family == storage::Family::Indexes || change.key_provisional)
            scope->will_live(change.gaps, change.key);
        scope->section().put(change.family, change.key, change.value);
    }
    for (auto& entry : entries_) scope->append_encoded(entry);
    PendingStatements statements;
    statements.committed_transaction = true;
    return scope->commit(&key_, std::move(statements));
}

void Transaction::release_intents() {
    if (intents_.empty()) return;
    std::lock_guard lock(core_.apply_mutex);
    core_.intents.release(id_, intents_);
    intents_.clear();
}

}  // namespace angelia::engine
