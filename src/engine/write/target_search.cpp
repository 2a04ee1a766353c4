#include "engine/write/target_search.h"

#include "engine/cursor/candidate_scan.h"
#include "engine/cursor/choose_plan.h"

namespace angelia::engine {

Result<void> check_deadline(const Core& core, SteadyTime deadline) {
    if (deadline != SteadyTime::max() && core.clock().steady_now() >= deadline)
        return Error(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit");
    return {};
}

namespace {

GapCache::Ticket ticket_for(const CandidateScan& scan, SearchView view, std::uint64_t sequence) {
    if (scan.plan().kind == query::Plan::Kind::IdLookup || view == SearchView::Snapshot) return {};
    if (view == SearchView::ChangedSection) return GapCache::inside();
    return scan.gaps().begin(sequence);
}

}  // namespace

Result<Targets> search_targets(const Core& core, const storage::Reader& reader, SearchView view,
                               const CollectionPtr& collection, const ConditionalWrite& write,
                               std::size_t budget, SteadyTime deadline) {
    Targets targets;
    targets.collection = collection->id;
    targets.index_generation = collection->index_generation;
    targets.version = collection->live->version.load();
    ANGELIA_TRY_ASSIGN(auto sort, query::SortSpec::parse(write.sort));
    const bool sorted = !sort.empty() && !write.multi;
    ANGELIA_TRY_ASSIGN(auto plan, choose_plan(*collection, *write.filter, sorted ? &sort : nullptr,
                                              write.hint.view()));
    const bool must_compare = sorted && !plan.provides_sort;

    CandidateScan scan(collection, std::move(plan), *write.filter);
    // After the version was looked at: who wrote in between is noticed.
    const auto newest = core.storage->newest();
    const auto newest_reader =
        view == SearchView::Latest ? core.storage->at(newest.snapshot) : nullptr;
    scan.attach(newest_reader ? *newest_reader : reader, collection, scan.plan().index,
                ticket_for(scan, view, newest.position.sequence), core.options.slow_move);
    std::string best_key;
    std::size_t examined = 0;
    for (;;) {
        if (budget != 0 && examined >= budget) {
            targets.gave_up = true;
            return targets;
        }
        ANGELIA_TRY_ASSIGN(bool found, scan.next());
        if (!found) return targets;
        if (++examined % 256 == 0) ANGELIA_TRY(check_deadline(core, deadline));
        if (!write.filter->matches(scan.document())) continue;
        if (must_compare) {
            ANGELIA_TRY_ASSIGN(auto key, sort.sort_key(scan.document()));
            if (!targets.records.empty() && key >= best_key) continue;
            best_key = std::move(key);
            targets.records.assign(1, scan.record());
            continue;
        }
        targets.records.push_back(scan.record());
        if (!write.multi) return targets;
    }
}

}  // namespace angelia::engine
