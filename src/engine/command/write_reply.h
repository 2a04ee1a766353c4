// What insert, update and delete have in common: statements that are parsed one by one, and the
// shape of their reply (contract 3.5).
#pragma once

#include "engine/command/call.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace angelia::engine::command {

/// The statements of one write command on their way to the engine. A statement that cannot be
/// parsed is an error of its own, beside the others.
struct StatementList {
    WriteRequest request;
    std::vector<std::size_t> positions;  ///< in the command, of each write in `request`
    std::vector<std::pair<std::size_t, Error>> parse_errors;  ///< ordered by position

    /// False when nothing behind it may run: the list is ordered.
    bool add_error(std::size_t position, Error error) {
        parse_errors.emplace_back(position, std::move(error));
        return !request.ordered;
    }
};

/// Errors: InvalidLength.
Result<void> check_statement_count(std::size_t count);
/// Fills in what comes from the generic arguments: retry key, statement ids, deadline, durability.
void prepare_request(const Call& call, StatementList& statements);
/// The statement id of the write at this position of the command.
std::int32_t statement_id(const Call& call, std::size_t position);
/// Hands the writes to the engine, here or on a worker.
void run_write(const CallPtr& call, WriteRequest request, WriteDone done);
/// Hands the statements to the engine and answers; `update`: with nModified and upserted.
void run_statements(const CallPtr& call, StatementList statements, bool update);

}  // namespace angelia::engine::command
