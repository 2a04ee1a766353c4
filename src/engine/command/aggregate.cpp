#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/cursor_reply.h"
#include "engine/command/labels.h"

#include "engine/aggregation/pipeline.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kAggregateFields[] = {"pipeline",
                                                 "cursor",
                                                 "explain",
                                                 "allowDiskUse",
                                                 "bypassDocumentValidation",
                                                 "collation",
                                                 "hint",
                                                 "let",
                                                 "fromMongos",
                                                 "needsMerge",
                                                 "requestReshardingResumeToken",
                                                 "isMapReduceCommand"};
constexpr std::string_view kAggregateUnsupported[] = {"explain", "let"};
constexpr std::string_view kAggregateCursorFields[] = {"batchSize"};
constexpr std::size_t kPipelineStagesMax = 1000;  // MongoDB limit

struct Aggregation {
    Namespace ns;  ///< collection empty for {aggregate: 1}
    bson::DocumentView pipeline;
    std::int64_t batch_size = kFirstBatchDefault;
    bson::ValueView hint;
};

Result<Aggregation> parse_aggregate(const Call& call) {
    const Arguments arguments("aggregate", call.body());
    Aggregation a;
    const auto target = (*call.body().begin()).value;
    a.ns.db = call.database();
    if (const auto name = target.get_string())
        a.ns.collection = *name;
    else if (target.to_int64() != 1)
        return Error(
            ErrorCode::FailedToParse,
            "Invalid command format: the 'aggregate' field must specify a collection name or 1");
    ANGELIA_TRY(arguments.required("pipeline"));
    ANGELIA_TRY_ASSIGN(const auto pipeline, arguments.array("pipeline"));
    if (!pipeline) return wrong_type("aggregate.pipeline", bson::ValueView(), "array");
    a.pipeline = *pipeline;
    if (a.pipeline.count() > kPipelineStagesMax)
        return Error(
            ErrorCode::FailedToParse,
            fmt::format("Pipeline length must be no longer than {} stages", kPipelineStagesMax));
    if (call.body().find("cursor").is_missing())
        return Error(
            ErrorCode::FailedToParse,
            "The 'cursor' option is required, except for aggregate with the explain argument");
    ANGELIA_TRY_ASSIGN(const auto cursor, arguments.document("cursor"));
    const Arguments cursor_arguments("aggregate.cursor", cursor);
    ANGELIA_TRY(cursor_arguments.only(kAggregateCursorFields));
    ANGELIA_TRY_ASSIGN(a.batch_size,
                       cursor_arguments.non_negative("batchSize", kFirstBatchDefault));
    ANGELIA_TRY(arguments.none_of(kAggregateUnsupported));
    ANGELIA_TRY(arguments.no_collation());
    a.hint = arguments.value("hint");
    return a;
}

/// What change streams have beside the versioned API.
Result<void> check_stream_api(const Call& call, bson::DocumentView options,
                              bson::DocumentView stages) {
    if (!call.body().find("apiStrict").truthy()) return {};
    std::string_view outside;
    if (options.find("showExpandedEvents").truthy()) outside = "showExpandedEvents";
    for (const auto& stage : stages)
        if (stage.value.is(bson::Type::Document) &&
            stage.value.as_document().has("$changeStreamSplitLargeEvent"))
            outside = "$changeStreamSplitLargeEvent";
    if (outside.empty()) return {};
    return Error(
        ErrorCode::APIStrictError,
        fmt::format("Provided apiStrict:true, but {} of $changeStream is not in API Version 1",
                    outside));
}

Result<WatchSpec> parse_watch(const Call& call, const Aggregation& a, bson::ValueView stage) {
    if (!stage.is(bson::Type::Document))
        return Error(ErrorCode::Location50808,
                     "$changeStream stage expects a document as argument");
    const auto& level = call.generic().read_concern.level;
    if (!level.empty() && level != "majority")
        return Error(
            ErrorCode::InvalidOptions,
            fmt::format(
                "$changeStream cannot run with a readConcern other than 'majority', got '{}'",
                level));
    WatchSpec spec;
    spec.ns = a.ns;
    spec.options = bson::Document(stage.as_document());
    spec.stages = aggregation::Pipeline::without_leading_stage(a.pipeline);
    ANGELIA_TRY(check_stream_api(call, spec.options, spec.stages));
    const bool everything = stage.as_document().find("allChangesForCluster").truthy();
    if (everything && (a.ns.db != "admin" || !a.ns.collection.empty())) {
        return Error(ErrorCode::InvalidNamespace,
                     "A $changeStream with 'allChangesForCluster:true' may only be opened on the "
                     "'admin' database with {aggregate: 1}");
    }
    spec.scope = everything                ? WatchSpec::Scope::Deployment
                 : a.ns.collection.empty() ? WatchSpec::Scope::Database
                                           : WatchSpec::Scope::Collection;
    return spec;
}

Result<void> open_change_stream(Call& call, const Aggregation& a, bson::ValueView stage) {
    if (call.generic().in_transaction)
        return Error(ErrorCode::OperationNotSupportedInTransaction,
                     "Operation not permitted in transaction :: caused by :: Aggregation stage "
                     "$changeStream cannot run within a multi-document transaction");
    ANGELIA_TRY_ASSIGN(const auto spec, parse_watch(call, a, stage));
    auto batch =
        call.engine().open_change_stream_cursor(spec, a.batch_size, call.generic().lsid.copy());
    if (!batch) {
        Error error = std::move(batch).error();
        add_change_stream_label(error);
        return error;
    }
    call.succeed(cursor_reply(*batch, true));
    return {};
}

void run_pipeline(Call& call, const AggregateSpec& spec) {
    auto batch = call.engine().aggregate(spec);
    if (!call.failed(batch)) call.succeed(cursor_reply(*batch, true));
}

Result<void> aggregate(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto a, parse_aggregate(*call));
    const auto leading = aggregation::Pipeline::leading_stage(a.pipeline);
    if (leading && leading->name == "$changeStream")
        return open_change_stream(*call, a, leading->operand);
    auto spec = std::make_shared<AggregateSpec>();
    spec->ns = a.ns;
    spec->pipeline = bson::Document(a.pipeline);
    spec->batch_size = a.batch_size;
    spec->hint = bson::Value(a.hint);
    call->fill_read(*spec);
    call->engine().workers().post([call, spec] { run_pipeline(*call, *spec); });
    return {};
}

}  // namespace

extern const CommandEntry kAggregateCommand{
    .name = "aggregate",
    .handler = aggregate,
    .fields = kAggregateFields,
    .flags = kReads | kWrites | kApiVersion1 | kInTransaction | kSnapshotReads,
    .help = "runs a pipeline over a collection, or opens a change stream"};

}  // namespace angelia::engine::command
