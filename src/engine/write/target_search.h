// Finds the records that an update or delete is about.
#pragma once

#include "engine/core.h"

namespace angelia::engine {

struct Targets {
    storage::CollectionId collection = 0;
    std::uint64_t index_generation = 0;      ///< Collection::index_generation at the search
    std::uint64_t version = 0;               ///< LiveState::version from before the search
    std::vector<storage::RecordId> records;  ///< all (multi) or the first by the write's sort
    bool gave_up =
        false;  ///< more than the budget would have been examined; `records` is not complete
};

/// What `reader` is.
enum class SearchView {
    Latest,    ///< not used: the newest committed state is read
    Snapshot,  ///< an older state, or a transaction's own: nothing is learnt from it or skipped
    Section,   ///< an apply section without changes
    ChangedSection  ///< an apply section with changes, which may be undone: nothing is learnt from
                    ///< it
};

/// `budget`: documents examined at most; 0 = no bound. Every target matched when it was looked at.
/// Errors: those of the planner (hint), of the sort, of the reader, MaxTimeMSExpired. Threads:
/// safe.
Result<Targets> search_targets(const Core& core, const storage::Reader& reader, SearchView view,
                               const CollectionPtr& collection, const ConditionalWrite& write,
                               std::size_t budget, SteadyTime deadline);

/// Errors: MaxTimeMSExpired.
Result<void> check_deadline(const Core& core, SteadyTime deadline);

}  // namespace angelia::engine
