#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/server_state.h"
#include "engine/command/write_reply.h"
#include "engine/command/write_statements.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kUpdateFields[] = {"updates", "ordered", "bypassDocumentValidation",
                                              "let"};
constexpr std::string_view kUpdateStatementFields[] = {
    "q", "u", "c", "upsert", "multi", "collation", "arrayFilters", "hint", "upsertSupplied"};
constexpr std::string_view kUpdateUnsupported[] = {"let"};
constexpr std::string_view kUpdateStatementUnsupported[] = {"c"};

Result<UpdateStatement> read_update_statement(bson::DocumentView document) {
    const Arguments arguments("update.updates", document);
    ANGELIA_TRY(arguments.only(kUpdateStatementFields));
    UpdateStatement s;
    ANGELIA_TRY(arguments.required("q"));
    ANGELIA_TRY_ASSIGN(s.filter, arguments.document("q"));
    ANGELIA_TRY_ASSIGN(s.update, arguments.required("u"));
    if (!s.update.is_container())
        return wrong_type("update.updates.u", s.update, "object or array");
    ANGELIA_TRY_ASSIGN(s.multi, arguments.boolean("multi", false));
    ANGELIA_TRY_ASSIGN(s.upsert, arguments.boolean("upsert", false));
    ANGELIA_TRY_ASSIGN(s.array_filters, arguments.array("arrayFilters"));
    s.hint = arguments.value("hint");
    ANGELIA_TRY(arguments.no_collation());
    ANGELIA_TRY(arguments.none_of(kUpdateStatementUnsupported));
    return s;
}

Result<void> update(const CallPtr& call) {
    const Arguments arguments("update", call->body());
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY(arguments.none_of(kUpdateUnsupported));
    ANGELIA_TRY_ASSIGN(const auto documents, call->documents("updates"));
    ANGELIA_TRY(check_statement_count(documents.size()));
    std::vector<UpdateStatement> parts;
    for (const auto& document : documents) {
        ANGELIA_TRY_ASSIGN(const auto part, read_update_statement(document));
        if (part.multi && call->is_retryable())
            return Error(ErrorCode::InvalidOptions, "Cannot use retryable writes with multi=true");
        parts.push_back(part);
    }
    StatementList statements;
    ANGELIA_TRY_ASSIGN(statements.request.ordered, arguments.boolean("ordered", true));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto write = make_write(ns, parts[i]);
        if (!write) {
            if (!statements.add_error(i, std::move(write).error())) break;
            continue;
        }
        statements.request.writes.push_back(std::move(write).value());
        statements.positions.push_back(i);
    }
    call->state().operations.update.fetch_add(static_cast<std::int64_t>(documents.size()),
                                              std::memory_order_relaxed);
    run_statements(call, std::move(statements), true);
    return {};
}

}  // namespace

extern const CommandEntry kUpdateCommand{
    .name = "update",
    .handler = update,
    .fields = kUpdateFields,
    .flags = kWrites | kRetryable | kApiVersion1 | kInTransaction,
    .help = "changes documents of a collection"};

}  // namespace angelia::engine::command
