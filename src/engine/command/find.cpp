#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/cursor_reply.h"
#include "engine/command/server_state.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kFindFields[] = {"filter", "projection", "sort", "skip", "limit", "batchSize", "singleBatch", "hint", "min", "max", "returnKey",
                                            "showRecordId", "tailable", "awaitData", "noCursorTimeout", "allowPartialResults", "allowDiskUse", "collation",
                                            "let", "oplogReplay"};
constexpr std::string_view kFindUnsupported[] = {"min", "max", "returnKey", "showRecordId", "let"};

Result<FindSpec> parse_find(const Call& call) {
    const Arguments arguments("find", call.body());
    ANGELIA_TRY(arguments.none_of(kFindUnsupported));
    ANGELIA_TRY(arguments.no_collation());
    ANGELIA_TRY_ASSIGN(const bool tailable, arguments.boolean("tailable", false));
    ANGELIA_TRY_ASSIGN(const bool await_data, arguments.boolean("awaitData", false));
    if (await_data && !tailable) return Error(ErrorCode::FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'");
    if (tailable) return Error(ErrorCode::BadValue, "error processing query: tailable cursor requested on non capped collection");
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
    spec.lsid = call.generic().lsid.copy();
    spec.deadline = call.deadline();
    return spec;
}

Result<void> find(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto spec, parse_find(*call));
    call->state().operations.query.fetch_add(1, std::memory_order_relaxed);
    ANGELIA_TRY_ASSIGN(const auto batch, call->engine().find(spec));
    call->succeed(cursor_reply(batch, true));
    return {};
}

}  // namespace

extern const CommandEntry kFindCommand{
    .name = "find", .handler = find, .fields = kFindFields, .flags = kReads | kApiVersion1, .help = "hands out documents of a collection"};

}  // namespace angelia::engine::command
