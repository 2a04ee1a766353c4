// The apply section with the engine's own state around it.
#include "engine/collection/apply_scope.h"

#include <angelia/base/check.h>

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace angelia::engine {

namespace {

Uuid random_uuid() {
    static thread_local std::mt19937_64 generator{[] {
        std::random_device device;
        std::seed_seq seed{device(), device(), device(), device()};
        return std::mt19937_64(seed);
    }()};
    Uuid uuid;
    for (auto& byte : uuid) byte = static_cast<std::uint8_t>(generator());
    uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0F) | 0x40);  // RFC 4122, version 4
    uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3F) | 0x80);
    return uuid;
}

CatalogViewPtr with_collection(const CatalogView& view, const CollectionPtr& collection) {
    auto next = std::make_shared<CatalogView>(view);
    next->collections[collection->ns] = collection;
    return next;
}

CatalogViewPtr without_collection(const CatalogView& view, const Namespace& ns) {
    auto next = std::make_shared<CatalogView>(view);
    next->collections.erase(ns);
    return next;
}

}  // namespace

ApplyScope::ApplyScope(Core& core)
    : core_(core),
      lock_(core.apply_mutex),
      section_(core.storage->begin_apply()),
      wall_{core.clock().system_millis()},
      base_view_(core.catalog.view()),
      view_(base_view_),
      early_view_(base_view_),
      next_id_(core.catalog.next_id()) {}

ApplyScope::~ApplyScope() {
    for (const auto& gaps : touched_gaps_) gaps->end_section();
    section_.reset();  // leave the section before the mutex
}

std::uint32_t ApplyScope::next_id() {
    const std::uint32_t id = next_id_++;
    section_->put(storage::Family::Meta, catalog_next_id_key(), encode_u32(next_id_));
    return id;
}

Result<CollectionPtr> ApplyScope::create_collection(const Namespace& ns,
                                                    const bson::Document& options) {
    if (view_->find(ns))
        return Error(ErrorCode::NamespaceExists,
                     fmt::format("Collection {} already exists.", ns.full()));
    ANGELIA_TRY(view_->check_database_case(ns.db));
    auto collection = std::make_shared<Collection>();
    collection->ns = ns;
    collection->id = next_id();
    collection->uuid = random_uuid();
    collection->options = options.copy();
    collection->live = std::make_shared<LiveState>();
    ANGELIA_TRY_ASSIGN(auto id_index, make_index(next_id(), id_index_spec(), false));
    collection->indexes.push_back(std::move(id_index));
    collection->index_generation = core_.catalog.next_generation();
    refresh_index_infos(*collection);

    CollectionPtr made = std::move(collection);
    view_ = with_collection(*view_, made);
    early_view_ = with_collection(*early_view_, made);
    catalog_dirty_.insert(made->id);
    pending(made);
    changed_ = true;
    bson::Builder payload;
    payload.add("create", ns.collection).add_all(options);
    payload.add("idIndex", index_document(made->id_index().spec));
    log_command(ns.db, ns.collection, made->id, made->uuid, payload.take());
    return made;
}

void ApplyScope::replace_collection(std::shared_ptr<Collection> changed, bool after_commit) {
    CollectionPtr made = std::move(changed);
    view_ = with_collection(*view_, made);
    if (!after_commit) early_view_ = with_collection(*early_view_, made);
    catalog_dirty_.insert(made->id);
    for (auto& p : pending_)
        if (p.collection->id == made->id) p.collection = made;
    changed_ = true;
}

void ApplyScope::erase_collection(const CollectionPtr& collection) {
    auto erase_all = [&](storage::Family family, const std::string& prefix) {
        section_->erase_range(family, prefix, storage::prefix_end(prefix));
    };
    erase_all(storage::Family::Records, storage::record_prefix(collection->id));
    for (const auto& index : collection->indexes)
        erase_all(storage::Family::Indexes, storage::index_prefix(index->id));
    section_->erase(storage::Family::Meta, catalog_key(collection->id));
    section_->erase(storage::Family::Meta, counter_key(collection->id));
    catalog_dirty_.erase(collection->id);
    std::erase_if(pending_, [&](const Pending& p) { return p.collection->id == collection->id; });
    view_ = without_collection(*view_, collection->ns);
    early_view_ = without_collection(*early_view_, collection->ns);
    changed_ = true;
}

ApplyScope::Pending& ApplyScope::pending(const CollectionPtr& collection) {
    for (auto& p : pending_)
        if (p.collection->id == collection->id) return p;
    const auto& live = *collection->live;
    pending_.push_back({collection, {live.count, live.bytes, live.next_record}});
    return pending_.back();
}

void ApplyScope::will_live(const std::shared_ptr<GapCache>& gaps, std::string_view key) {
    gaps->put(key);
    if (std::find(touched_gaps_.begin(), touched_gaps_.end(), gaps) == touched_gaps_.end())
        touched_gaps_.push_back(gaps);
}

storage::RecordId ApplyScope::allocate_record(const CollectionPtr& collection) {
    return pending(collection).counters.next_record++;
}

void ApplyScope::count(const CollectionPtr& collection, std::int64_t documents,
                       std::int64_t bytes) {
    auto& counters = pending(collection).counters;
    counters.count += documents;
    counters.bytes += bytes;
    changed_ = true;
}

void ApplyScope::mark_multikey(const CollectionPtr& collection, std::size_t index) {
    auto current = view_->find(collection->ns);
    if (current->indexes[index]->multikey) return;
    auto changed = copy_collection(*current);
    auto flagged = std::make_shared<Index>();
    const Index& old = *current->indexes[index];
    flagged->id = old.id;
    flagged->spec = copy_spec(old.spec);
    flagged->pattern = old.pattern;
    flagged->partial = old.partial;
    flagged->gaps = old.gaps;
    flagged->multikey = true;
    changed->indexes[index] = std::move(flagged);
    refresh_index_infos(*changed);
    replace_collection(std::move(changed), false);
}

void ApplyScope::append(std::shared_ptr<const std::string> entry) {
    changed_ = true;
    if (atomic_) {
        atomic_entries_.push_back(std::move(entry));
        return;
    }
    section_->append_oplog(section_->next_timestamp(), 0, std::move(entry));
}

void ApplyScope::log(OpKind kind, const Collection& collection, bson::ValueView id,
                     bson::DocumentView payload, const RetryReference& retry) {
    OplogFields fields;
    fields.kind = kind;
    fields.db = collection.ns.db;
    fields.collection = collection.ns.collection;
    fields.collection_id = collection.id;
    fields.uuid = collection.uuid;
    fields.id = id;
    fields.payload = payload;
    fields.wall = wall_;
    fields.lsid = retry.lsid;
    fields.txn_number = retry.txn_number;
    fields.stmt_id = retry.stmt_id;
    append(OplogEntry::encode(fields));
}

void ApplyScope::log_command(const std::string& db, const std::string& collection, std::uint32_t id,
                             const Uuid& uuid, bson::DocumentView payload) {
    OplogFields fields;
    fields.kind = OpKind::Command;
    fields.db = db;
    fields.collection = collection;
    fields.collection_id = id;
    fields.uuid = uuid;
    fields.payload = payload;
    fields.wall = wall_;
    append(OplogEntry::encode(fields));
}

std::unique_ptr<ApplyScope::Mark> ApplyScope::mark() {
    auto m = std::make_unique<Mark>();
    m->section = section_->mark();
    m->bytes = section_->bytes();
    m->view = view_;
    m->early_view = early_view_;
    m->next_id = next_id_;
    m->pending = pending_;
    m->catalog_dirty = catalog_dirty_;
    m->atomic_entries = atomic_entries_.size();
    m->changed = changed_;
    return m;
}

void ApplyScope::rollback(const Mark& m) {
    // Most failures happen before anything was put; undoing a batch costs in proportion to it.
    if (section_->bytes() != m.bytes) section_->rollback_to(m.section);
    view_ = m.view;
    early_view_ = m.early_view;
    next_id_ = m.next_id;
    pending_ = m.pending;
    catalog_dirty_ = m.catalog_dirty;
    atomic_entries_.resize(m.atomic_entries);
    changed_ = m.changed;
}

Result<void> ApplyScope::finish_batch(const RetryKey* retry, PendingStatements statements) {
    for (const auto& p : pending_)
        section_->put(storage::Family::Meta, counter_key(p.collection->id),
                      encode_counters(p.counters));
    for (const auto id : catalog_dirty_) {
        for (const auto& [ns, collection] : view_->collections)
            if (collection->id == id)
                section_->put(storage::Family::Meta, catalog_key(id),
                              encode_collection(*collection).bytes());
    }
    if (retry && !statements.empty())
        ANGELIA_TRY(core_.retries.record(*section_, *retry, std::move(statements), wall_));
    if (!atomic_entries_.empty()) {
        const auto time = section_->next_timestamp();
        std::uint32_t sub = 0;
        for (auto& entry : atomic_entries_) section_->append_oplog(time, sub++, std::move(entry));
    }
    return {};
}

Result<storage::CommitPosition> ApplyScope::commit(const RetryKey* retry,
                                                   PendingStatements statements) {
    const bool with_statements = retry && !statements.empty();
    auto fail = [&](Error error) {
        if (with_statements) core_.retries.forget(*retry);
        return error;
    };
    if (auto finished = finish_batch(retry, std::move(statements)); !finished)
        return fail(std::move(finished).error());

    // Visible before the commit: who is woken by the commit (a stream) must find the collection,
    // its flags and its counters. Each is harmless to a reader that comes too early; what is not (a
    // new index) waits for the commit.
    std::vector<Counters> before;
    for (const auto& p : pending_) {
        auto& live = *p.collection->live;
        before.push_back({live.count, live.bytes, live.next_record});
        live.count = p.counters.count;
        live.bytes = p.counters.bytes;
        live.next_record = p.counters.next_record;
    }
    if (early_view_ != base_view_) core_.catalog.publish(early_view_);

    auto position = section_->commit();
    if (!position) {
        for (std::size_t i = 0; i < pending_.size(); ++i) {
            auto& live = *pending_[i].collection->live;
            live.count = before[i].count;
            live.bytes = before[i].bytes;
            live.next_record = before[i].next_record;
        }
        core_.catalog.publish(base_view_);
        return fail(std::move(position).error());
    }
    core_.catalog.set_next_id(next_id_);
    if (view_ != base_view_) core_.catalog.publish(view_);
    for (const auto& p : pending_) {
        p.collection->live->version.fetch_add(1);
    }
    return position;
}

}  // namespace angelia::engine
