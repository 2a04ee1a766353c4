#include "engine/cursor/query_source.h"

#include "engine/cursor/choose_plan.h"
#include "engine/write/target_search.h"

#include <fmt/format.h>

namespace angelia::engine {

Result<std::shared_ptr<QuerySource>> QuerySource::open(Core& core, QueryParts parts,
                                                       SteadyTime deadline) {
    std::shared_ptr<QuerySource> source(new QuerySource(core, std::move(parts), deadline));
    ANGELIA_TRY_ASSIGN(auto collection, source->present_collection());
    if (!collection) {
        source->finished_ = true;
        return source;
    }
    ANGELIA_TRY(source->start(collection));
    return source;
}

Result<CollectionPtr> QuerySource::present_collection() {
    if (parts_.pinned) return parts_.pinned->collection(parts_.ns);
    if (!view_.snapshot) view_ = current_view(core_);
    return view_.find(parts_.ns);
}

Result<void> QuerySource::start(const CollectionPtr& collection) {
    ANGELIA_TRY_ASSIGN(auto plan,
                       choose_plan(*collection, parts_.matcher, &parts_.sort, parts_.hint.view()));
    const bool must_sort = !parts_.sort.empty() && !plan.provides_sort;
    if (plan.kind == query::Plan::Kind::IndexScan) index_id_ = collection->indexes[plan.index]->id;
    scan_.emplace(collection, std::move(plan), parts_.matcher);
    return must_sort ? sort_all() : Result<void>();
}

Result<void> QuerySource::attach() {
    ANGELIA_TRY_ASSIGN(auto collection, present_collection());
    if (!collection || collection->id != scan_->collection().id)
        return Error(ErrorCode::QueryPlanKilled,
                     fmt::format("collection dropped. UUID of the cursor's collection {} is gone",
                                 parts_.ns.full()));
    std::size_t index = 0;
    if (index_id_ != 0) {
        while (index < collection->indexes.size() && collection->indexes[index]->id != index_id_)
            ++index;
        if (index == collection->indexes.size())
            return Error(
                ErrorCode::QueryPlanKilled,
                fmt::format("the index that the cursor on {} walks was dropped", parts_.ns.full()));
    }
    GapCache::Ticket ticket;
    if (!parts_.pinned) {
        reader_ = core_.storage->at(view_.snapshot);
        if (scan_->plan().kind != query::Plan::Kind::IdLookup)
            ticket = scan_->gaps().begin(view_.position.sequence);
    }
    scan_->attach(parts_.pinned ? parts_.pinned->reader() : *reader_, std::move(collection), index,
                  std::move(ticket), core_.options.slow_move);
    attached_ = true;
    return {};
}

Result<bool> QuerySource::next_match() {
    if (!attached_) ANGELIA_TRY(attach());
    for (;;) {
        ANGELIA_TRY_ASSIGN(bool found, scan_->next());
        if (!found) return false;
        ++core_.counters.documents_examined;
        if (++examined_ % 128 == 0) ANGELIA_TRY(check_deadline(core_, deadline_));
        if (parts_.matcher.matches(scan_->document())) return true;
    }
}

Result<void> QuerySource::sort_all() {
    std::optional<std::uint64_t> keep;
    if (parts_.limit > 0)
        keep = static_cast<std::uint64_t>(parts_.limit) + static_cast<std::uint64_t>(parts_.skip);
    sorted_.emplace(parts_.sort, keep);
    for (;;) {
        ANGELIA_TRY_ASSIGN(bool found, next_match());
        if (!found) break;
        ANGELIA_TRY(sorted_->add(bson::Document(scan_->document())));
    }
    sorted_->finish();
    pause();
    return {};
}

Result<std::optional<bson::Document>> QuerySource::next() {
    std::optional<bson::Document> document;
    while (!finished()) {
        if (sorted_) {
            document = sorted_->next();
        } else {
            ANGELIA_TRY_ASSIGN(bool found, next_match());
            if (found && skipped_ >= parts_.skip) document = bson::Document(scan_->document());
            if (found && skipped_ < parts_.skip) {
                ++skipped_;
                continue;
            }
        }
        if (!document) {
            finished_ = true;
            pause();
            break;
        }
        if (skipped_ < parts_.skip) {
            ++skipped_;
            document.reset();
            continue;
        }
        ++handed_out_;
        break;
    }
    return document;
}

void QuerySource::pause() {
    if (scan_) scan_->pause();
    reader_.reset();
    view_ = {};
    attached_ = false;
}

}  // namespace angelia::engine
