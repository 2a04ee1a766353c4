// The apply section with the engine's own state around it.
#include "engine/collection/apply_scope.h"

#include <angelia/base/check.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine {

namespace {

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

ApplyScope::ApplyScope(Core& core, WaiterId waiter)
    : WriteScope(core),
      lock_(core.apply_mutex),
      section_(core.storage->begin_apply()),
      waiter_(waiter),
      base_view_(core.catalog.view()),
      view_(base_view_),
      next_id_(core.catalog.next_id()),
      sequence_(core.storage->applied().sequence + 1),
      oldest_view_(core.storage->durable().sequence) {
    entered();
}

ApplyScope::~ApplyScope() {
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
    ANGELIA_TRY(need_free(namespace_intent(ns)));
    ANGELIA_TRY_ASSIGN(auto collection,
                       make_collection(core_, ns, options, [this] { return next_id(); }));
    CollectionPtr made = std::move(collection);
    adopt_collection(made);
    log_command(ns.db, ns.collection, made->id, made->uuid, create_payload(*made));
    return made;
}

void ApplyScope::adopt_collection(const CollectionPtr& made) {
    // Its ids may have been given out long before this scope.
    section_->put(storage::Family::Meta, catalog_next_id_key(), encode_u32(next_id_));
    view_ = with_collection(*view_, made);
    catalog_dirty_.insert(made->id);
    pending(made);
    changed_ = true;
}

void ApplyScope::replace_collection(std::shared_ptr<Collection> changed) {
    CollectionPtr made = std::move(changed);
    view_ = with_collection(*view_, made);
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
    changed_ = true;
}

Result<void> ApplyScope::rename_collection(const CollectionPtr& collection, const Namespace& to) {
    view_ = without_collection(*view_, collection->ns);
    ANGELIA_TRY(view_->check_database_case(to.db));
    ANGELIA_TRY(need_free(namespace_intent(to)));
    auto renamed = copy_collection(*collection);
    renamed->ns = to;
    CollectionPtr made = renamed;
    pending(made);  // its version moves on: searches under the old name do not hold any more
    replace_collection(std::move(renamed));
    return {};
}

ApplyScope::Pending& ApplyScope::pending(const CollectionPtr& collection) {
    for (auto& p : pending_)
        if (p.collection->id == collection->id) return p;
    const auto& live = *collection->live;
    pending_.push_back({collection, {live.count, live.bytes, live.next_record}});
    return pending_.back();
}

void ApplyScope::will_live(const std::shared_ptr<GapCache>& gaps, std::string_view key) {
    gaps->put(key, sequence_, oldest_view_);
}

storage::RecordId ApplyScope::allocate_records(const CollectionPtr& collection,
                                               std::uint64_t count) {
    auto& next = pending(collection).counters.next_record;
    const auto first = next;
    next += count;
    return first;
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
    replace_collection(with_multikey(*current, index));
}

Result<void> ApplyScope::need_free(std::string key) {
    if (core_.intents.empty() || core_.intents.free_for(key, waiter_)) return {};
    return blocked_error(std::move(key));
}

Result<void> ApplyScope::need_collection_free(const Collection& collection) {
    return need_free(collection_intent(collection.id));
}

Result<void> ApplyScope::touch_record(const Collection& collection, storage::RecordId record) {
    if (core_.intents.empty()) return {};
    return need_free(record_intent(collection.id, record));
}

Result<void> ApplyScope::touch_unique(const Index& index, std::string_view encoded) {
    if (core_.intents.empty()) return {};
    return need_free(unique_intent(index.id, encoded));
}

void ApplyScope::put_record(const CollectionPtr& collection, storage::RecordId record,
                            std::string_view document, bool fresh) {
    const auto key = storage::record_key(collection->id, record);
    if (fresh)
        will_live(std::shared_ptr<GapCache>(collection->live, &collection->live->record_gaps), key);
    section_->put(storage::Family::Records, key, storage::record_value(stamp(), document));
}

void ApplyScope::erase_record(const CollectionPtr& collection, storage::RecordId record) {
    section_->erase(storage::Family::Records, storage::record_key(collection->id, record));
}

void ApplyScope::put_index_entry(const Index& index, std::string_view encoded,
                                 storage::RecordId record) {
    const auto key = index_entry_key(index, encoded, record);
    will_live(index.gaps, key);
    section_->put(storage::Family::Indexes, key,
                  index.spec.unique ? storage::encode_record_id(record) : std::string());
}

void ApplyScope::erase_index_entry(const Index& index, std::string_view encoded,
                                   storage::RecordId record) {
    section_->erase(storage::Family::Indexes, index_entry_key(index, encoded, record));
}

void ApplyScope::append(OplogFields& fields) { append_encoded(OplogEntry::encode(fields)); }

void ApplyScope::append_encoded(std::shared_ptr<const std::string> entry) {
    changed_ = true;
    if (atomic_) {
        atomic_entries_.push_back(std::move(entry));
        return;
    }
    section_->append_oplog(section_->next_timestamp(), 0, std::move(entry));
}

std::unique_ptr<ApplyScope::Mark> ApplyScope::mark() {
    auto m = std::make_unique<Mark>();
    m->section = section_->mark();
    m->bytes = section_->bytes();
    m->view = view_;
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

    // Reads find the catalog with the data it belongs to.
    if (view_ != base_view_) section_->attach(view_);
    auto position = section_->commit();
    if (!position) return fail(std::move(position).error());
    for (const auto& p : pending_) {
        auto& live = *p.collection->live;
        live.count = p.counters.count;
        live.bytes = p.counters.bytes;
        live.next_record = p.counters.next_record;
    }
    core_.catalog.set_next_id(next_id_);
    if (view_ != base_view_) core_.catalog.publish(view_);
    for (const auto& p : pending_) {
        p.collection->live->version.fetch_add(1);
    }
    return position;
}

}  // namespace angelia::engine
