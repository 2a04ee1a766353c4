#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/server_state.h"
#include "engine/command/write_reply.h"
#include "engine/command/write_statements.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kDeleteFields[] = {"deletes", "ordered", "let"};
constexpr std::string_view kDeleteStatementFields[] = {"q", "limit", "collation", "hint"};
constexpr std::string_view kDeleteUnsupported[] = {"let"};

Result<DeleteStatement> read_delete_statement(bson::DocumentView document) {
    const Arguments arguments("delete.deletes", document);
    ANGELIA_TRY(arguments.only(kDeleteStatementFields));
    DeleteStatement s;
    ANGELIA_TRY(arguments.required("q"));
    ANGELIA_TRY_ASSIGN(s.filter, arguments.document("q"));
    ANGELIA_TRY(arguments.required("limit"));
    ANGELIA_TRY_ASSIGN(const auto limit, arguments.integer("limit"));
    if (!limit || (*limit != 0 && *limit != 1)) {
        return Error(ErrorCode::FailedToParse,
                     fmt::format("The limit field in delete objects must be 0 or 1. Got {}",
                                 limit ? std::to_string(*limit) : "null"));
    }
    s.multi = *limit == 0;
    s.hint = arguments.value("hint");
    ANGELIA_TRY(arguments.no_collation());
    return s;
}

Result<void> remove(const CallPtr& call) {
    const Arguments arguments("delete", call->body());
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY(arguments.none_of(kDeleteUnsupported));
    ANGELIA_TRY_ASSIGN(const auto documents, call->documents("deletes"));
    ANGELIA_TRY(check_statement_count(documents.size()));
    StatementList statements;
    ANGELIA_TRY_ASSIGN(statements.request.ordered, arguments.boolean("ordered", true));
    bool stopped = false;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        ANGELIA_TRY_ASSIGN(const auto part, read_delete_statement(documents[i]));
        if (part.multi && call->is_retryable())
            return Error(ErrorCode::InvalidOptions, "Cannot use retryable writes with limit=0");
        if (stopped) continue;
        auto write = make_write(ns, part);
        if (!write) {
            stopped = !statements.add_error(i, std::move(write).error());
            continue;
        }
        statements.request.writes.push_back(std::move(write).value());
        statements.positions.push_back(i);
    }
    call->state().operations.remove.fetch_add(static_cast<std::int64_t>(documents.size()),
                                              std::memory_order_relaxed);
    run_statements(call, std::move(statements), false);
    return {};
}

}  // namespace

extern const CommandEntry kDeleteCommand{
    .name = "delete",
    .handler = remove,
    .fields = kDeleteFields,
    .flags = kWrites | kRetryable | kApiVersion1 | kInTransaction,
    .help = "removes documents from a collection"};

}  // namespace angelia::engine::command
