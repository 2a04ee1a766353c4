// Reads: find, aggregate, count, and the cursors they open.
#include "engine/aggregation/pipeline.h"
#include "engine/cursor/query_source.h"
#include "engine/engine_impl.h"
#include "engine/query/projection.h"
#include "engine/write/target_search.h"

#include <fmt/format.h>

namespace angelia::engine {

namespace {

/// Reads may name what writes may not create.
Result<void> check_readable(const Namespace& ns) {
    if (ns.collection.rfind("system.", 0) == 0) return check_namespace({ns.db, "x"});
    return check_namespace(ns);
}

DocumentSource source_of(std::shared_ptr<QuerySource> query, query::Projection projection) {
    DocumentSource source;
    source.next = [query,
                   projection = std::move(projection)]() -> Result<std::optional<bson::Document>> {
        ANGELIA_TRY_ASSIGN(auto document, query->next());
        if (document && !projection.is_identity()) document = projection.apply(*document);
        return document;
    };
    source.pause = [query] { query->pause(); };
    source.finished = [query] { return query->finished(); };
    source.set_deadline = [query](SteadyTime deadline) { query->set_deadline(deadline); };
    return source;
}

DocumentSource source_of(std::shared_ptr<QuerySource> query, aggregation::Source stages) {
    DocumentSource source;
    source.next = std::move(stages);
    source.pause = [query] { query->pause(); };
    source.finished = [] { return false; };
    source.set_deadline = [query](SteadyTime deadline) { query->set_deadline(deadline); };
    return source;
}

std::optional<std::int64_t> number_of(const StatementPtr& statement) {
    if (!statement) return std::nullopt;
    return statement->transaction().key().txn_number;
}

Result<void> check_not_negative(std::string_view name, std::int64_t value) {
    if (value >= 0) return {};
    return Error(ErrorCode::Location51024,
                 fmt::format("BSON field '{}' value must be >= 0, actual value '{}'", name, value));
}

}  // namespace

Result<CursorBatch> EngineImpl::first_batch(CursorPtr cursor, std::int64_t batch_size,
                                            bool single_batch) {
    CursorBatch reply;
    reply.ns = cursor->shown_ns;
    reply.at_cluster_time = cursor->at_cluster_time;
    ANGELIA_TRY_ASSIGN(auto batch, fill_batch(*cursor, batch_size));
    reply.documents = std::move(batch.documents);
    if (!batch.exhausted && !single_batch) {
        // Time given for the first batch does not count for later ones.
        cursor->source.set_deadline(SteadyTime::max());
        ANGELIA_TRY_ASSIGN(reply.cursor_id, cursors_.add(cursor));
    }
    reply.operation_time = operation_time();
    return reply;
}

Result<CursorBatch> EngineImpl::find(const FindSpec& spec) {
    ANGELIA_TRY(core_.check_open());
    ANGELIA_TRY(check_readable(spec.ns));
    ANGELIA_TRY(check_not_negative("skip", spec.skip));
    ANGELIA_TRY(check_not_negative("limit", spec.limit));
    ANGELIA_TRY(check_not_negative("batchSize", spec.batch_size));
    QueryParts parts;
    parts.ns = spec.ns;
    ANGELIA_TRY_ASSIGN(parts.matcher, query::Matcher::parse(spec.filter));
    ANGELIA_TRY_ASSIGN(parts.sort, query::SortSpec::parse(spec.sort));
    ANGELIA_TRY_ASSIGN(auto projection, query::Projection::parse(spec.projection));
    parts.hint = spec.hint;
    parts.skip = spec.skip;
    parts.limit = spec.limit;
    ANGELIA_TRY_ASSIGN(parts.pinned, pinned_view(spec.statement, spec.snapshot));
    const auto at = parts.pinned ? parts.pinned->time() : std::nullopt;
    ANGELIA_TRY_ASSIGN(auto query, QuerySource::open(core_, std::move(parts), spec.deadline));
    auto cursor = std::make_shared<Cursor>();
    cursor->ns = spec.ns;
    cursor->shown_ns = spec.ns.full();
    cursor->lsid = spec.lsid.copy();
    cursor->at_cluster_time = at;
    cursor->txn_number = number_of(spec.statement);
    cursor->no_timeout = spec.no_cursor_timeout;
    cursor->source = source_of(std::move(query), std::move(projection));
    return first_batch(std::move(cursor), spec.batch_size, spec.single_batch);
}

Result<CursorBatch> EngineImpl::aggregate(const AggregateSpec& spec) {
    ANGELIA_TRY(core_.check_open());
    ANGELIA_TRY(check_not_negative("batchSize", spec.batch_size));
    ANGELIA_TRY_ASSIGN(auto pipeline, aggregation::Pipeline::parse(spec.pipeline));
    if (spec.ns.collection.empty()) {
        const auto names = pipeline.stage_names();
        return Error(
            ErrorCode::InvalidNamespace,
            names.empty()
                ? std::string("{aggregate: 1} is not valid for an empty pipeline.")
                : fmt::format("{{aggregate: 1}} is not valid for '{}'; a collection is required.",
                              names.front()));
    }
    ANGELIA_TRY(check_readable(spec.ns));
    QueryParts parts;
    parts.ns = spec.ns;
    parts.hint = spec.hint;
    std::size_t skip_stages = 0;
    if (auto match = pipeline.leading_match()) {
        ANGELIA_TRY_ASSIGN(parts.matcher, query::Matcher::parse(*match));
        skip_stages = 1;
    }
    if (auto sort = pipeline.leading_sort()) {
        ANGELIA_TRY_ASSIGN(parts.sort, query::SortSpec::parse(*sort));
        ++skip_stages;
    }
    ANGELIA_TRY_ASSIGN(parts.pinned, pinned_view(spec.statement, spec.snapshot));
    const auto at = parts.pinned ? parts.pinned->time() : std::nullopt;
    ANGELIA_TRY_ASSIGN(auto query, QuerySource::open(core_, std::move(parts), spec.deadline));
    auto stages = pipeline.run([query] { return query->next(); }, skip_stages);
    auto cursor = std::make_shared<Cursor>();
    cursor->ns = spec.ns;
    cursor->shown_ns = spec.ns.full();
    cursor->lsid = spec.lsid.copy();
    cursor->at_cluster_time = at;
    cursor->txn_number = number_of(spec.statement);
    cursor->source = source_of(std::move(query), std::move(stages));
    return first_batch(std::move(cursor), spec.batch_size, false);
}

Result<std::int64_t> EngineImpl::count(const CountSpec& spec) {
    ANGELIA_TRY(core_.check_open());
    ANGELIA_TRY(check_readable(spec.ns));
    ANGELIA_TRY(check_not_negative("skip", spec.skip));
    QueryParts parts;
    parts.ns = spec.ns;
    ANGELIA_TRY_ASSIGN(parts.matcher, query::Matcher::parse(spec.filter));
    // A negative limit means the same as its absolute value (MongoDB manual, count).
    const std::int64_t limit = spec.limit < 0 ? -(spec.limit + 1) + 1 : spec.limit;
    std::int64_t total = 0;
    if (parts.matcher.always_true() && spec.hint.is_missing()) {
        const auto view = current_view(core_);
        if (const auto collection = view.find(spec.ns)) {
            ANGELIA_TRY_ASSIGN(const auto counters,
                               read_counters(*core_.storage->at(view.snapshot), collection->id));
            total = std::max<std::int64_t>(0, counters.count - spec.skip);
        }
        return limit > 0 ? std::min(total, limit) : total;
    }
    parts.hint = spec.hint;
    parts.skip = spec.skip;
    parts.limit = limit;
    ANGELIA_TRY_ASSIGN(auto query, QuerySource::open(core_, std::move(parts), SteadyTime::max()));
    for (;;) {
        ANGELIA_TRY_ASSIGN(auto document, query->next());
        if (!document) return total;
        ++total;
    }
}

void EngineImpl::get_more(const GetMoreSpec& spec, std::function<void(Result<CursorBatch>)> done) {
    if (auto open = core_.check_open(); !open) return done(std::move(open).error());
    auto checked_out = cursors_.check_out(spec);
    if (!checked_out) return done(std::move(checked_out).error());
    CursorPtr cursor = std::move(checked_out).value();
    if (spec.after_checkout) {
        if (auto refused = spec.after_checkout(cursor->stream != nullptr)) {
            cursors_.check_in(cursor);
            if (!cursor->stream) cursors_.remove(cursor);
            return done(std::move(*refused));
        }
    }
    if (cursor->stream) return get_more_stream(std::move(cursor), spec, std::move(done));
    CursorBatch reply;
    reply.ns = cursor->shown_ns;
    reply.at_cluster_time = cursor->at_cluster_time;
    auto batch = fill_batch(*cursor, spec.batch_size > 0 ? spec.batch_size : -1);
    const bool alive = cursors_.check_in(cursor);
    if (!batch) {
        cursors_.remove(cursor);
        return done(std::move(batch).error());
    }
    if (!alive) return done(Error(ErrorCode::CursorKilled, "cursor was killed"));
    reply.documents = std::move(batch->documents);
    reply.cursor_id = batch->exhausted ? 0 : cursor->id;
    if (batch->exhausted) cursors_.remove(cursor);
    reply.operation_time = operation_time();
    done(std::move(reply));
}

Result<CursorBatch> EngineImpl::open_result_cursor(ResultCursorSpec spec) {
    ANGELIA_TRY(core_.check_open());
    ANGELIA_TRY(check_not_negative("batchSize", spec.batch_size));
    struct List {
        std::vector<bson::Document> documents;
        std::size_t at = 0;
    };
    auto list = std::make_shared<List>();
    list->documents = std::move(spec.documents);
    auto cursor = std::make_shared<Cursor>();
    cursor->ns = spec.ns;
    cursor->shown_ns = spec.ns.full();
    cursor->lsid = std::move(spec.lsid);
    cursor->txn_number = number_of(spec.statement);
    cursor->source.next = [list]() -> Result<std::optional<bson::Document>> {
        std::optional<bson::Document> next;
        if (list->at < list->documents.size()) next = std::move(list->documents[list->at++]);
        return next;
    };
    cursor->source.pause = [] {};
    cursor->source.finished = [list] { return list->at == list->documents.size(); };
    cursor->source.set_deadline = [](SteadyTime) {};
    return first_batch(std::move(cursor), spec.batch_size, false);
}

KilledCursors EngineImpl::kill_cursors(const Namespace& ns, std::span<const std::int64_t> ids) {
    return cursors_.kill(ns, ids);
}

}  // namespace angelia::engine
