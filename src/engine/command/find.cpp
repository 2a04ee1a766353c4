#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/cursor_reply.h"
#include "engine/command/placement.h"
#include "engine/command/server_state.h"

#include <algorithm>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kFindFields[] = {"filter",
                                            "projection",
                                            "sort",
                                            "skip",
                                            "limit",
                                            "batchSize",
                                            "singleBatch",
                                            "hint",
                                            "min",
                                            "max",
                                            "returnKey",
                                            "showRecordId",
                                            "tailable",
                                            "awaitData",
                                            "noCursorTimeout",
                                            "allowPartialResults",
                                            "allowDiskUse",
                                            "collation",
                                            "let",
                                            "oplogReplay"};
constexpr std::string_view kFindUnsupported[] = {"min", "max", "returnKey", "showRecordId", "let"};

Result<FindSpec> parse_find(const Call& call) {
    const Arguments arguments("find", call.body());
    ANGELIA_TRY(arguments.none_of(kFindUnsupported));
    ANGELIA_TRY(arguments.no_collation());
    ANGELIA_TRY_ASSIGN(const bool tailable, arguments.boolean("tailable", false));
    ANGELIA_TRY_ASSIGN(const bool await_data, arguments.boolean("awaitData", false));
    if (await_data && !tailable)
        return Error(ErrorCode::FailedToParse,
                     "Cannot set 'awaitData' without also setting 'tailable'");
    if (tailable)
        return Error(ErrorCode::BadValue,
                     "error processing query: tailable cursor requested on non capped collection");
    FindSpec spec;
    ANGELIA_TRY_ASSIGN(spec.ns, call.collection());
    ANGELIA_TRY_ASSIGN(const auto filter, arguments.document("filter"));
    ANGELIA_TRY_ASSIGN(const auto projection, arguments.document("projection"));
    ANGELIA_TRY_ASSIGN(const auto sort, arguments.document("sort"));
    spec.filter = bson::Document(filter);
    spec.projection = bson::Document(projection);
    spec.sort = bson::Document(sort);
    spec.hint = bson::Value(arguments.value("hint"));
    ANGELIA_TRY_ASSIGN(spec.skip, arguments.non_negative("skip", 0));
    ANGELIA_TRY_ASSIGN(spec.limit, arguments.non_negative("limit", 0));
    ANGELIA_TRY_ASSIGN(spec.batch_size, arguments.non_negative("batchSize", kFirstBatchDefault));
    ANGELIA_TRY_ASSIGN(spec.single_batch, arguments.boolean("singleBatch", false));
    ANGELIA_TRY_ASSIGN(spec.no_cursor_timeout, arguments.boolean("noCursorTimeout", false));
    call.fill_read(spec);
    return spec;
}

void run_find(Call& call, const FindSpec& spec) {
    auto batch = call.engine().find(spec);
    if (!call.failed(batch)) call.succeed(cursor_reply(*batch, true));
}

/// Without a filter and an order the first batch is read, and no more.
bool reads_first_documents(const FindSpec& spec) {
    const std::int64_t wanted =
        spec.limit > 0 ? std::min(spec.limit, spec.batch_size) : spec.batch_size;
    return spec.filter.empty() && spec.sort.empty() && wanted + spec.skip <= kInlineDocumentsMax;
}

Result<void> find(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(auto spec, parse_find(*call));
    call->state().operations.query.fetch_add(1, std::memory_order_relaxed);
    if (reads_first_documents(spec) || !may_take_long(call->engine(), spec.ns, spec.filter)) {
        run_find(*call, spec);
    } else {
        call->engine().workers().post([call, shared = std::make_shared<const FindSpec>(
                                                 std::move(spec))] { run_find(*call, *shared); });
    }
    return {};
}

}  // namespace

extern const CommandEntry kFindCommand{
    .name = "find",
    .handler = find,
    .fields = kFindFields,
    .flags = kReads | kApiVersion1 | kInTransaction | kSnapshotReads,
    .help = "hands out documents of a collection"};

}  // namespace angelia::engine::command
