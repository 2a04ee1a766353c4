#include "engine/command/write_reply.h"

#include "engine/command/announce.h"
#include "engine/command/command_table.h"
#include "engine/command/labels.h"
#include "engine/command/placement.h"
#include "engine/command/server_state.h"
#include "engine/session/session_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace angelia::engine::command {
namespace {

constexpr std::size_t kErrorTextBytesMax =
    1024 * 1024;  // then messages are left out, as MongoDB does

struct WriteErrorRow {
    std::size_t position;
    const Error* error;
};

struct WriteShape {
    bool update = false;  // with nModified and upserted
    bool ordered = true;
};

void add_write_errors(bson::Builder& b, std::vector<WriteErrorRow> rows) {
    if (rows.empty()) return;
    std::sort(rows.begin(), rows.end(),
              [](const auto& x, const auto& y) { return x.position < y.position; });
    std::size_t text = 0;
    b.open_array("writeErrors");
    for (const auto& row : rows) {
        b.push_document()
            .add("index", static_cast<std::int32_t>(row.position))
            .add("code", static_cast<std::int32_t>(row.error->code));
        b.add("codeName", error_code_name(row.error->code));
        const bool room = text < kErrorTextBytesMax;
        b.add("errmsg", room ? std::string_view(row.error->message) : std::string_view());
        text += row.error->message.size();
        if (room && !row.error->details_bson.empty())
            b.add_all(bson::DocumentView(row.error->details_bson));
        b.close();
    }
    b.close();
}

void reply_to_statements(Call& call, const std::vector<std::size_t>& positions,
                         const std::vector<std::pair<std::size_t, Error>>& parse_errors,
                         WriteShape shape, const WriteResult& result) {
    std::int64_t n = 0;
    std::int64_t modified = 0;
    std::vector<WriteErrorRow> errors;
    for (std::size_t i = 0; i < result.outcomes.size(); ++i) {
        const WriteOutcome& outcome = result.outcomes[i];
        if (outcome.error) errors.push_back({positions[i], &*outcome.error});
        n += outcome.matched + (outcome.upserted_id.is_missing() ? 0 : 1);
        modified += outcome.modified;
    }
    // In an ordered list the statement that could not be parsed stands behind those that ran: it
    // counts only if they all succeeded.
    if (!shape.ordered || errors.empty())
        for (const auto& [position, error] : parse_errors) errors.push_back({position, &error});
    bson::Builder b;
    b.add("n", static_cast<std::int32_t>(n));
    if (shape.update) {
        b.add("nModified", static_cast<std::int32_t>(modified));
        bool any = false;
        for (std::size_t i = 0; i < result.outcomes.size(); ++i) {
            if (result.outcomes[i].upserted_id.is_missing()) continue;
            if (!std::exchange(any, true)) b.open_array("upserted");
            b.push_document()
                .add("index", static_cast<std::int32_t>(positions[i]))
                .add("_id", result.outcomes[i].upserted_id)
                .close();
        }
        if (any) b.close();
    }
    // Any error ends a transaction, also of a statement that the engine never saw.
    if (!errors.empty() && call.statement()) call.statement()->fail();
    add_write_errors(b, std::move(errors));
    bool any_retried = false;
    for (std::size_t i = 0; i < result.outcomes.size(); ++i) {
        if (!result.outcomes[i].retried) continue;
        if (!std::exchange(any_retried, true)) b.open_array("retriedStmtIds");
        b.push(statement_id(call, positions[i]));
    }
    if (any_retried) b.close();
    call.succeed(std::move(b),
                 result.outcomes.empty() ? std::nullopt : std::optional(result.operation_time));
}

/// onPrimaryTransactionalWrite: looks at each statement, and hangs up in place of the answer when
/// the fail point says so.
WriteDone meet_transactional_writes(const CallPtr& call, WriteRequest& request, WriteDone done) {
    struct Met {
        std::atomic<bool> hang_up{false};
        std::atomic<std::int32_t> fails_command{0};  // with this code
    };
    const auto met = std::make_shared<Met>();
    const auto failure = [call](std::int32_t code) {
        return Error(static_cast<ErrorCode>(code),
                     fmt::format("Failing write of transaction number {} due to failpoint; it is "
                                 "not committed",
                                 call->generic().txn_number.value_or(0)));
    };
    request.before_commit = [call, met, failure]() -> std::optional<Error> {
        const auto hit = call->state().fail_points.on_transactional_write();
        if (!hit) return std::nullopt;
        if (hit->close_connection) met->hang_up = true;
        if (!hit->error_code) return std::nullopt;
        // As MongoDB does it: a server that may not write any more says so of the whole command.
        if (is_state_change(static_cast<ErrorCode>(*hit->error_code)))
            met->fails_command = *hit->error_code;
        return failure(*hit->error_code);
    };
    return [call, met, failure, done = std::move(done)](Result<WriteResult> result) {
        if (met->hang_up) return call->hang_up();
        if (const auto code = met->fails_command.load()) return call->fail(failure(code));
        done(std::move(result));
    };
}

}  // namespace

std::int32_t statement_id(const Call& call, std::size_t position) {
    const auto& ids = call.generic().stmt_ids;
    if (position < ids.size()) return ids[position];
    // One id is the first of a row: that is how `stmtId` is meant.
    return static_cast<std::int32_t>(position) + (ids.size() == 1 ? ids.front() : 0);
}

Result<void> check_statement_count(std::size_t count) {
    if (count >= 1 && count <= static_cast<std::size_t>(kWriteBatchMax)) return {};
    return Error(ErrorCode::InvalidLength,
                 fmt::format("Write batch sizes must be between 1 and {}. Got {} operations.",
                             kWriteBatchMax, count));
}

void prepare_request(const Call& call, StatementList& statements) {
    auto& request = statements.request;
    request.retry = call.retry_key();
    request.wait_durable = call.wait_durable();
    request.deadline = call.deadline();
    request.statement = call.statement();
    for (std::size_t i = 0; i < request.writes.size(); ++i)
        request.writes[i].stmt_id = statement_id(call, statements.positions[i]);
}

void run_write(const CallPtr& call, WriteRequest request, WriteDone done) {
    if (request.retry && call->state().fail_points.any())
        done = meet_transactional_writes(call, request, std::move(done));
    bool long_search = false;
    for (const auto& write : request.writes)
        if (write.filter && !long_search)
            long_search = may_take_long(call->engine(), write.ns, write.filter->source());
    if (!long_search) return call->engine().write(std::move(request), std::move(done));
    call->engine().workers().post(
        [call, shared = std::make_shared<WriteRequest>(std::move(request)),
         done = std::move(done)] { call->engine().write(std::move(*shared), done); });
}

void run_statements(const CallPtr& call, StatementList statements, bool update) {
    prepare_request(*call, statements);
    call->release_request();
    const WriteShape shape{update, statements.request.ordered};
    if (statements.request.writes.empty())
        return reply_to_statements(*call, statements.positions, statements.parse_errors, shape, {});
    run_write(call, std::move(statements.request),
              [call, shape, positions = std::move(statements.positions),
               parse_errors = std::move(statements.parse_errors)](Result<WriteResult> result) {
                  if (!call->failed(result))
                      reply_to_statements(*call, positions, parse_errors, shape, *result);
              });
}

}  // namespace angelia::engine::command
