// Iterators over records and index entries behind one face.
#include "engine/cursor/candidate_scan.h"

#include <chrono>

namespace angelia::engine {

CandidateScan::CandidateScan(CollectionPtr collection, query::Plan plan,
                             const query::Matcher& matcher)
    : collection_(std::move(collection)), plan_(std::move(plan)) {
    if (plan_.kind == query::Plan::Kind::IdLookup)
        if (auto id = matcher.id_equality()) query::append_key(id_key_, *id);
}

void CandidateScan::attach(const storage::Reader& reader, CollectionPtr collection,
                           std::size_t index, GapCache::Ticket ticket, microseconds slow_move) {
    reader_ = &reader;
    ticket_ = std::move(ticket);
    slow_move_ = slow_move;
    collection_ = std::move(collection);
    plan_.index = index;
    iterator_.reset();
    moved_ = false;
}

void CandidateScan::pause() {
    iterator_.reset();
    reader_ = nullptr;
    ticket_ = {};
    moved_ = false;
    value_view_ = {};
}

Result<bool> CandidateScan::next() {
    if (done_) return false;
    Result<bool> found = false;
    switch (plan_.kind) {
        case query::Plan::Kind::Nothing:
            break;
        case query::Plan::Kind::IdLookup:
            found = next_id();
            break;
        case query::Plan::Kind::CollectionScan:
            found = next_record();
            break;
        case query::Plan::Kind::IndexScan:
            found = next_index_entry();
            break;
    }
    if (found && !*found) {
        done_ = true;
        iterator_.reset();
    }
    return found;
}

Result<bool> CandidateScan::next_id() {
    std::string entry;
    ANGELIA_TRY_ASSIGN(
        bool there,
        reader_->get(storage::Family::Indexes,
                     storage::unique_entry(collection_->id_index().id, id_key_), entry));
    if (!there) return false;
    ANGELIA_TRY_ASSIGN(bool read, take_record(storage::decode_record_id(entry)));
    plan_.kind = query::Plan::Kind::Nothing;  // there is no second one
    return read;
}

Result<bool> CandidateScan::take_record(storage::RecordId record) {
    ANGELIA_TRY_ASSIGN(bool there,
                       reader_->get(storage::Family::Records,
                                    storage::record_key(collection_->id, record), value_));
    if (!there) return false;
    record_ = record;
    value_view_ = value_;
    return true;
}

GapCache& CandidateScan::gaps() const {
    if (plan_.kind == query::Plan::Kind::IndexScan) return *collection_->indexes[plan_.index]->gaps;
    return collection_->live->record_gaps;
}

void CandidateScan::open(storage::Family family, std::string lower, std::string upper) {
    lower_ = std::move(lower);
    upper_ = std::move(upper);
    iterator_ = reader_->iterate(family, lower_, upper_);
    if (!plan_.reverse) return move_forward(true);
    last_key_.empty() ? iterator_->seek_to_last() : iterator_->seek_before(last_key_);
}

void CandidateScan::move_on() { plan_.reverse ? iterator_->prev() : move_forward(false); }

/// Forward, over known gaps; a move that takes long has walked over dead keys and becomes a gap.
void CandidateScan::move_forward(bool fresh) {
    const auto smallest_behind = [&] { return last_key_.empty() ? lower_ : last_key_ + '\0'; };
    const auto begun = std::chrono::steady_clock::now();
    std::string gap_end;
    if (gaps().size() != 0) gap_end = gaps().skip(smallest_behind(), ticket_);
    if (!gap_end.empty())
        iterator_->seek(gap_end);
    else if (fresh)
        iterator_->seek(smallest_behind());
    else
        iterator_->next();
    if (!ticket_.lesson || std::chrono::steady_clock::now() - begun < slow_move_) return;
    if (iterator_->valid())
        gaps().learn(ticket_.lesson, smallest_behind(), iterator_->key());
    else if (iterator_->status())
        gaps().learn(ticket_.lesson, smallest_behind(), upper_);
}

Result<bool> CandidateScan::next_record() {
    if (!iterator_) {
        const auto prefix = storage::record_prefix(collection_->id);
        open(storage::Family::Records, prefix, storage::prefix_end(prefix));
    } else if (moved_) {
        move_on();
    }
    moved_ = true;
    if (!iterator_->valid()) {
        ANGELIA_TRY(iterator_->status());
        return false;
    }
    last_key_.assign(iterator_->key());
    record_ = storage::record_id_of(last_key_);
    value_view_ = iterator_->value();
    return true;
}

bool CandidateScan::open_range() {
    if (range_ >= plan_.ranges.size()) return false;
    const auto& range = plan_.ranges[range_];
    const auto prefix = storage::index_prefix(collection_->indexes[plan_.index]->id);
    open(storage::Family::Indexes, prefix + range.lower,
         range.upper.empty() ? storage::prefix_end(prefix) : prefix + range.upper);
    moved_ = false;
    return true;
}

Result<bool> CandidateScan::next_index_entry() {
    const Index& index = *collection_->indexes[plan_.index];
    for (;;) {
        if (!iterator_) {
            if (!open_range()) return false;
        } else if (moved_) {
            move_on();
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
        const auto record = index.spec.unique ? storage::decode_record_id(iterator_->value())
                                              : storage::record_id_of_entry(last_key_);
        if (plan_.multikey && !seen_.insert(record).second) continue;
        // The entry may belong to a record that is gone since: then there is nothing to hand out.
        ANGELIA_TRY_ASSIGN(bool there, take_record(record));
        if (there) return true;
    }
}

}  // namespace angelia::engine
