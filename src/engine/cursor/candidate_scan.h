// Walks the candidates of a plan: records in scan order, each at most once. Can be paused and taken
// up again later at the same place.
#pragma once

#include "engine/catalog/catalog.h"

#include <string>
#include <unordered_set>

namespace angelia::engine {

/// Not thread-safe.
class CandidateScan {
  public:
    /// `reader` must outlive the walk up to pause().
    CandidateScan(CollectionPtr collection, query::Plan plan, const query::Matcher& matcher);

    /// Starts, or goes on behind the last candidate, on a reader. The collection must be the same,
    /// with the same index. `ticket`: of gaps(), for the view that is read; moves slower than
    /// `slow_move` teach it.
    void attach(const storage::Reader& reader, CollectionPtr collection, std::size_t index,
                GapCache::Ticket ticket, microseconds slow_move);
    /// The gaps of what this plan walks.
    GapCache& gaps() const;
    /// Lets go of iterators; keeps the place.
    void pause();

    /// Moves to the next candidate; false at the end. Errors: those of the reader.
    Result<bool> next();
    storage::RecordId record() const { return record_; }
    /// Until the next move.
    bson::DocumentView document() const {
        return bson::DocumentView(storage::record_document(value_view_));
    }

    const query::Plan& plan() const { return plan_; }
    const Collection& collection() const { return *collection_; }

  private:
    Result<bool> next_record();
    Result<bool> next_index_entry();
    Result<bool> next_id();
    bool open_range();
    /// Opens iterator_ over [lower, upper) behind last_key_ (or at its end, walking backwards).
    void open(storage::Family family, std::string lower, std::string upper);
    void move_on();
    void move_forward(bool fresh);
    Result<bool> take_record(storage::RecordId record);

    CollectionPtr collection_;
    query::Plan plan_;
    std::string id_key_;  ///< encoded _id of an IdLookup
    const storage::Reader* reader_ = nullptr;
    storage::IteratorPtr iterator_;
    bool moved_ = false;  ///< iterator_ stands on the last candidate
    std::size_t range_ = 0;
    std::string lower_, upper_;  ///< of iterator_
    std::string last_key_;       ///< key of the last candidate; empty before the first of a range
    bool done_ = false;
    std::unordered_set<storage::RecordId> seen_;
    storage::RecordId record_ = 0;
    std::string value_;
    std::string_view value_view_;
    GapCache::Ticket ticket_;
    microseconds slow_move_{};
};

}  // namespace angelia::engine
