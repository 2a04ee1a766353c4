#include "engine/write/ttl_monitor.h"

#include "engine/cursor/candidate_scan.h"
#include "engine/write/write_run.h"

namespace angelia::engine {

namespace {

/// Keys of dates up to and including `last`, of no other type.
query::KeyRange expired_keys(bson::Date last, bool descending) {
    std::string first_key, last_key;
    const auto lowest = bson::value(bson::Date{INT64_MIN}), highest = bson::value(last);
    query::append_key(first_key, lowest.view(), descending);
    query::append_key(last_key, highest.view(), descending);
    return descending ? query::KeyRange{last_key, storage::prefix_end(first_key)}
                      : query::KeyRange{first_key, storage::prefix_end(last_key)};
}

/// What a document must still be when it is deleted: a lease that was extended meanwhile wins.
Result<query::Matcher> expired_filter(const Index& index, bson::Date last) {
    const auto due =
        bson::make(index.pattern.fields.front().path.dotted(), bson::make("$lte", last));
    if (index.spec.partial_filter.empty()) return query::Matcher::parse(due);
    return query::Matcher::parse(bson::make("$and", bson::array(due, index.spec.partial_filter)));
}

}  // namespace

Result<std::int64_t> TtlMonitor::run_pass() {
    std::lock_guard lock(mutex_);
    std::int64_t deleted = 0;
    const auto view = core_.catalog.view();
    for (const auto& [ns, collection] : view->collections) {
        for (std::size_t i = 0; i < collection->indexes.size(); ++i) {
            if (!collection->indexes[i]->spec.expire_after_seconds) continue;
            if (core_.closing) return deleted;
            ANGELIA_TRY_ASSIGN(auto expired, expire(collection, i));
            deleted += expired;
        }
    }
    ++core_.counters.ttl_passes;
    core_.counters.ttl_deleted += deleted;
    return deleted;
}

Result<std::int64_t> TtlMonitor::expire(const CollectionPtr& collection, std::size_t position) {
    const Index& index = *collection->indexes[position];
    const bson::Date last{core_.clock().system_millis() - *index.spec.expire_after_seconds * 1000};
    query::Plan plan;
    plan.kind = query::Plan::Kind::IndexScan;
    plan.index = position;
    plan.ranges.push_back(expired_keys(last, index.pattern.fields.front().descending));
    plan.multikey = index.multikey;
    CandidateScan scan(collection, std::move(plan), query::Matcher());
    std::int64_t deleted = 0;
    for (;;) {
        Targets targets;
        targets.collection = collection->id;
        targets.index_generation = collection->index_generation;
        // A version that never was: every target is looked at again inside.
        targets.version = UINT64_MAX;
        const auto newest = core_.storage->newest();
        const auto reader = core_.storage->at(newest.snapshot);
        scan.attach(*reader, collection, position, index.gaps->begin(newest.position.sequence),
                    core_.options.slow_move);
        bool more = true;
        while (more && targets.records.size() < kTtlBatchMax) {
            ANGELIA_TRY_ASSIGN(more, scan.next());
            if (more) targets.records.push_back(scan.record());
        }
        scan.pause();
        if (targets.records.empty()) return deleted;
        ANGELIA_TRY_ASSIGN(auto matcher, expired_filter(index, last));
        WriteRequest request;
        request.writes.resize(1);
        auto& write = request.writes.front();
        write.kind = WriteKind::Delete;
        write.ns = collection->ns;
        write.multi = true;
        write.filter = std::make_shared<const query::Matcher>(std::move(matcher));
        request.create_collections = false;
        WriteRun run(core_, std::move(request));
        run.set_targets(0, std::move(targets));
        run.skip_held_records();
        if (auto result = run.run(); !result) {
            // A key of one of them is held: the next pass finds it free.
            if (blocked_on(result.error())) return deleted;
            return std::move(result).error();
        }
        const auto outcomes = run.take_outcomes();
        if (outcomes.front().error) return *outcomes.front().error;
        deleted += outcomes.front().matched;
        if (!more || core_.closing) return deleted;
    }
}

}  // namespace angelia::engine
