#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/write_reply.h"

#include "engine/query/projection.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kFindAndModifyFields[] = {
    "query",     "sort",         "remove", "update",
    "new",       "fields",       "upsert", "bypassDocumentValidation",
    "collation", "arrayFilters", "hint",   "let"};
constexpr std::string_view kFindAndModifyUnsupported[] = {"let"};

Result<ConditionalWrite> parse_find_and_modify(const Call& call, const Arguments& arguments) {
    ConditionalWrite write;
    ANGELIA_TRY_ASSIGN(write.ns, call.collection());
    ANGELIA_TRY(arguments.none_of(kFindAndModifyUnsupported));
    ANGELIA_TRY(arguments.no_collation());
    ANGELIA_TRY_ASSIGN(const bool remove, arguments.boolean("remove", false));
    ANGELIA_TRY_ASSIGN(const bool wants_new, arguments.boolean("new", false));
    ANGELIA_TRY_ASSIGN(const bool upsert, arguments.boolean("upsert", false));
    const auto update = arguments.value("update");
    if (remove == static_cast<bool>(update))
        return Error(ErrorCode::FailedToParse,
                     "Either an update or remove=true must be specified, and not both");
    if (remove && (wants_new || upsert))
        return Error(ErrorCode::FailedToParse,
                     "Cannot specify both remove=true and new=true or upsert=true");
    ANGELIA_TRY_ASSIGN(const auto query, arguments.document("query"));
    ANGELIA_TRY_ASSIGN(auto filter, query::Matcher::parse(query));
    write.filter = std::make_shared<const query::Matcher>(std::move(filter));
    ANGELIA_TRY_ASSIGN(const auto sort, arguments.document("sort"));
    write.sort = bson::Document(sort);
    write.hint = bson::Value(arguments.value("hint"));
    if (remove) {
        write.kind = WriteKind::Delete;
        write.image = ReturnImage::Before;
        return write;
    }
    if (!update.is_container())
        return wrong_type("findAndModify.update", update, "object or array");
    ANGELIA_TRY_ASSIGN(const auto array_filters, arguments.array("arrayFilters"));
    ANGELIA_TRY_ASSIGN(auto parsed, query::Update::parse(update, {.array_filters = array_filters,
                                                                  .upsert = upsert}));
    write.kind = WriteKind::Update;
    write.update = std::make_shared<const query::Update>(std::move(parsed));
    write.upsert = upsert;
    write.image = wants_new ? ReturnImage::After : ReturnImage::Before;
    return write;
}

void reply_to_find_and_modify(Call& call, const WriteResult& result, bool remove,
                              const query::Projection& projection) {
    const WriteOutcome& outcome = result.outcomes.front();
    if (outcome.error) {
        Error error = *outcome.error;
        error.message = fmt::format("Plan executor error during findAndModify :: caused by :: {}",
                                    error.message);
        return call.fail(error);
    }
    const bool upserted = !outcome.upserted_id.is_missing();
    bson::Builder b;
    b.open("lastErrorObject")
        .add("n", static_cast<std::int32_t>(outcome.matched + (upserted ? 1 : 0)));
    if (!remove) b.add("updatedExisting", outcome.matched > 0);
    if (upserted) b.add("upserted", outcome.upserted_id);
    b.close();
    if (outcome.image)
        b.add("value",
              projection.is_identity() ? outcome.image->view() : projection.apply(*outcome.image));
    else
        b.add("value", bson::Null());
    if (outcome.retried) b.add("retriedStmtId", statement_id(call, 0));
    call.succeed(std::move(b), result.operation_time);
}

Result<void> find_and_modify(const CallPtr& call) {
    const Arguments arguments("findAndModify", call->body());
    ANGELIA_TRY_ASSIGN(const auto fields, arguments.document("fields"));
    ANGELIA_TRY_ASSIGN(auto projection, query::Projection::parse(fields));
    StatementList statements;
    ANGELIA_TRY_ASSIGN(auto write, parse_find_and_modify(*call, arguments));
    const bool remove = write.kind == WriteKind::Delete;
    statements.request.writes.push_back(std::move(write));
    statements.positions.push_back(0);
    prepare_request(*call, statements);
    call->release_request();
    run_write(call, std::move(statements.request),
              [call, remove, projection = std::move(projection)](Result<WriteResult> result) {
                  if (!call->failed(result))
                      reply_to_find_and_modify(*call, *result, remove, projection);
              });
    return {};
}

}  // namespace

extern const CommandEntry kFindAndModifyCommand{
    .name = "findAndModify",
    .aliases = {"findandmodify"},
    .handler = find_and_modify,
    .fields = kFindAndModifyFields,
    .flags = kWrites | kRetryable | kApiVersion1 | kInTransaction,
    .help = "changes or removes one document and returns it"};

}  // namespace angelia::engine::command
