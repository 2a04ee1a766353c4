// Iterators over records and index entries behind one face.
#include "engine/cursor/candidate_scan.h"

namespace angelia::engine {

namespace {

void raise_to(std::atomic<std::uint64_t>& mark, std::uint64_t value) {
    auto current = mark.load();
    while (current < value && !mark.compare_exchange_weak(current, value)) {
    }
}

}  // namespace

CandidateScan::CandidateScan(CollectionPtr collection, query::Plan plan, const query::Matcher& matcher)
    : collection_(std::move(collection)), plan_(std::move(plan)) {
    if (plan_.kind == query::Plan::Kind::IdLookup)
        if (auto id = matcher.id_equality()) query::append_key(id_key_, *id);
}

void CandidateScan::attach(const storage::Reader& reader, CollectionPtr collection, std::size_t index, bool learn_first,
                           std::uint64_t next_committed) {
    reader_ = &reader;
    learn_first_ = learn_first;
    next_committed_ = next_committed;
    collection_ = std::move(collection);
    plan_.index = index;
    iterator_.reset();
    moved_ = false;
}

void CandidateScan::pause() {
    iterator_.reset();
    reader_ = nullptr;
    moved_ = false;
    fresh_ = false;
    value_view_ = {};
}

Result<bool> CandidateScan::next() {
    if (done_) return false;
    Result<bool> found = false;
    switch (plan_.kind) {
        case query::Plan::Kind::Nothing: break;
        case query::Plan::Kind::IdLookup: found = next_id(); break;
        case query::Plan::Kind::CollectionScan: found = next_record(); break;
        case query::Plan::Kind::IndexScan: found = next_index_entry(); break;
    }
    if (found && !*found) {
        done_ = true;
        iterator_.reset();
    }
    return found;
}

Result<bool> CandidateScan::next_id() {
    std::string entry;
    ANGELIA_TRY_ASSIGN(bool there,
                       reader_->get(storage::Family::Indexes, storage::unique_entry(collection_->id_index().id, id_key_), entry));
    if (!there) return false;
    ANGELIA_TRY_ASSIGN(bool read, take_record(storage::decode_record_id(entry)));
    plan_.kind = query::Plan::Kind::Nothing;  // there is no second one
    return read;
}

Result<bool> CandidateScan::take_record(storage::RecordId record) {
    ANGELIA_TRY_ASSIGN(bool there, reader_->get(storage::Family::Records, storage::record_key(collection_->id, record), value_));
    if (!there) return false;
    record_ = record;
    value_view_ = value_;
    return true;
}

Result<bool> CandidateScan::next_record() {
    auto& live = *collection_->live;
    if (!iterator_) {
        const auto prefix = storage::record_prefix(collection_->id);
        iterator_ = reader_->iterate(storage::Family::Records, storage::record_key(collection_->id, live.first_record.load()),
                                     storage::prefix_end(prefix));
        if (last_key_.empty()) {
            plan_.reverse ? iterator_->seek_to_last() : iterator_->seek_to_first();
        } else if (plan_.reverse) {
            iterator_->seek_before(last_key_);
        } else {
            iterator_->seek(last_key_);
            if (iterator_->valid() && iterator_->key() == last_key_) iterator_->next();
        }
    } else if (moved_) {
        plan_.reverse ? iterator_->prev() : iterator_->next();
    }
    moved_ = true;
    const bool first = learn_first_ && fresh_ && !plan_.reverse;
    fresh_ = false;
    if (!iterator_->valid()) {
        ANGELIA_TRY(iterator_->status());
        if (first) raise_to(live.first_record, next_committed_);
        return false;
    }
    last_key_.assign(iterator_->key());
    record_ = storage::record_id_of(last_key_);
    value_view_ = iterator_->value();
    if (first) raise_to(live.first_record, record_);
    return true;
}

bool CandidateScan::open_range() {
    if (range_ >= plan_.ranges.size()) return false;
    const auto& range = plan_.ranges[range_];
    const auto prefix = storage::index_prefix(collection_->indexes[plan_.index]->id);
    iterator_ = reader_->iterate(storage::Family::Indexes, prefix + range.lower,
                                 range.upper.empty() ? storage::prefix_end(prefix) : prefix + range.upper);
    if (last_key_.empty()) {
        plan_.reverse ? iterator_->seek_to_last() : iterator_->seek_to_first();
    } else if (plan_.reverse) {
        iterator_->seek_before(last_key_);
    } else {
        iterator_->seek(last_key_);
        if (iterator_->valid() && iterator_->key() == last_key_) iterator_->next();
    }
    moved_ = false;
    return true;
}

Result<bool> CandidateScan::next_index_entry() {
    const Index& index = *collection_->indexes[plan_.index];
    for (;;) {
        if (!iterator_) {
            if (!open_range()) return false;
        } else if (moved_) {
            plan_.reverse ? iterator_->prev() : iterator_->next();
        }
        moved_ = true;
        if (!iterator_->valid()) {
            ANGELIA_TRY(iterator_->status());
            iterator_.reset();
            last_key_.clear();
            ++range_;
            continue;
        }
        last_key_.assign(iterator_->key());
        const auto record = index.spec.unique ? storage::decode_record_id(iterator_->value()) : storage::record_id_of_entry(last_key_);
        if (plan_.multikey && !seen_.insert(record).second) continue;
        // The entry may belong to a record that is gone since: then there is nothing to hand out.
        ANGELIA_TRY_ASSIGN(bool there, take_record(record));
        if (there) return true;
    }
}

}  // namespace angelia::engine
