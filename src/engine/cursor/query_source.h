// Hands out the documents of one query, in order, over as many batches as the reader takes. Between
// batches it holds no view, only a place (design D6): each batch reads the newest published one.
#pragma once

#include "engine/core.h"
#include "engine/cursor/candidate_scan.h"
#include "engine/read_view.h"

namespace angelia::engine {

struct QueryParts {
    Namespace ns;
    query::Matcher matcher;
    query::SortSpec sort;
    bson::Value hint;
    std::int64_t skip = 0;
    std::int64_t limit = 0;  ///< 0 = none
    PinnedViewPtr pinned{};  ///< null: each batch reads the then current view
};

/// Not thread-safe.
class QuerySource {
  public:
    /// A collection that does not exist has no documents. With a sort that no index gives,
    /// everything is read here. Errors: BadValue (hint), QueryExceededMemoryLimitNoDiskUseAllowed,
    /// MaxTimeMSExpired, those of the reader.
    static Result<std::shared_ptr<QuerySource>> open(Core& core, QueryParts parts,
                                                     SteadyTime deadline);

    /// The next document, or nothing at the end. Errors: QueryPlanKilled (collection or index
    /// dropped meanwhile), MaxTimeMSExpired.
    Result<std::optional<bson::Document>> next();
    /// Ends a batch: lets go of the view and iterators.
    void pause();
    void set_deadline(SteadyTime deadline) { deadline_ = deadline; }
    /// Nothing more will come, known without looking.
    bool finished() const { return finished_ || (parts_.limit > 0 && handed_out_ >= parts_.limit); }

  private:
    QuerySource(Core& core, QueryParts parts, SteadyTime deadline)
        : core_(core), parts_(std::move(parts)), deadline_(deadline) {}
    Result<void> start(const CollectionPtr& collection);
    Result<void> attach();
    /// Takes a view if there is none.
    Result<CollectionPtr> present_collection();
    Result<bool> next_match();
    Result<void> sort_all();

    Core& core_;
    QueryParts parts_;
    SteadyTime deadline_;
    storage::IndexId index_id_ = 0;
    std::optional<CandidateScan> scan_;
    ReadView view_;  ///< of this batch; without a snapshot: none
    std::unique_ptr<storage::Reader> reader_;
    bool attached_ = false;
    std::optional<query::Sorter> sorted_;
    std::int64_t skipped_ = 0;
    std::int64_t handed_out_ = 0;
    std::uint64_t examined_ = 0;
    bool finished_ = false;
};

}  // namespace angelia::engine
