#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/server_state.h"
#include "engine/command/write_reply.h"
#include "engine/command/write_statements.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kInsertFields[] = {"documents", "ordered", "bypassDocumentValidation",
                                              "maxTimeMS"};

Result<void> insert(const CallPtr& call) {
    const Arguments arguments("insert", call->body());
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY_ASSIGN(const auto documents, call->documents("documents"));
    ANGELIA_TRY(check_statement_count(documents.size()));
    StatementList statements;
    ANGELIA_TRY_ASSIGN(statements.request.ordered, arguments.boolean("ordered", true));
    statements.request.writes.reserve(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i) {
        statements.request.writes.push_back(make_insert(ns, documents[i]));
        statements.positions.push_back(i);
    }
    call->state().operations.insert.fetch_add(static_cast<std::int64_t>(documents.size()),
                                              std::memory_order_relaxed);
    run_statements(call, std::move(statements), false);
    return {};
}

}  // namespace

extern const CommandEntry kInsertCommand{
    .name = "insert",
    .handler = insert,
    .fields = kInsertFields,
    .flags = kWrites | kRetryable | kApiVersion1 | kInTransaction,
    .help = "adds documents to a collection"};

}  // namespace angelia::engine::command
