// One running command: what it was asked, and the one place where its answer is completed (ok,
// operationTime, $clusterTime, labels).
#pragma once

#include "engine/command/command.h"
#include "engine/command/concerns.h"
#include "engine/command/fail_points.h"
#include "engine/engine.h"

#include <angelia/base/executor.h>
#include <angelia/bson/builder.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace angelia::engine::command {

struct CommandEntry;

/// The generic arguments that mean something here (contract 1.2).
struct GenericArguments {
    bson::Document lsid;  ///< {id: UUID}; empty = none
    std::optional<std::int64_t> txn_number;
    std::vector<std::int32_t> stmt_ids;
    bool in_transaction = false;      ///< autocommit: false
    bool starts_transaction = false;  ///< its first statement
    WriteConcern write_concern;
    ReadConcern read_concern;
    std::optional<milliseconds> max_time;
};

/// Handed around as a shared_ptr by whatever will answer it: the I/O thread, the syncer's
/// continuation, a timer. Threads: one at a time; the answer may come from any.
class Call : public std::enable_shared_from_this<Call> {
  public:
    Call(const CommandEntry& entry, Engine& engine, std::shared_ptr<ServerState> state,
         std::shared_ptr<Connection> connection, Request request, ReplyFunction reply);

    const CommandEntry& entry() const { return entry_; }
    Engine& engine() const { return engine_; }
    ServerState& state() const { return *state_; }
    const std::shared_ptr<Connection>& connection() const { return connection_; }
    const Request& request() const { return request_; }
    bson::DocumentView body() const { return request_.body; }
    const std::string& database() const { return request_.database; }
    GenericArguments& generic() { return generic_; }
    const GenericArguments& generic() const { return generic_; }
    /// The fail point that this command met, if any.
    std::optional<FailPointHit>& fail_point() { return fail_point_; }

    SteadyTime deadline() const;
    /// False: the client does not wait for durability (w:0).
    bool wait_durable() const {
        return !generic_.write_concern.unacknowledged && !request_.unacknowledged;
    }
    /// A number without a transaction.
    bool is_retryable() const { return generic_.txn_number && !generic_.in_transaction; }
    /// Of a retryable write; nothing within a transaction.
    std::optional<RetryKey> retry_key() const;
    /// Session and number, for the commands of a transaction.
    RetryKey transaction_key() const;
    /// The use of its transaction, from begin_statement() to the answer; null outside.
    const StatementPtr& statement() const { return statement_; }
    /// Errors: those of Engine::begin_statement.
    Result<void> begin_statement();
    /// What a read takes over from the generic arguments: session, deadline, transaction, snapshot.
    template <class Spec>
    void fill_read(Spec& spec) const {
        spec.lsid = generic_.lsid.copy();
        spec.deadline = deadline();
        spec.statement = statement_;
        spec.snapshot.wanted = !statement_ && generic_.read_concern.level == "snapshot";
        spec.snapshot.at = generic_.read_concern.at_cluster_time;
    }

    /// The documents of an array argument, given as a document sequence or in the body. Errors:
    /// Location40414, TypeMismatch.
    Result<std::vector<bson::DocumentView>> documents(std::string_view field) const;
    /// The namespace that the command's own value names; whether it is a legal one is the engine's
    /// to say. Errors: BadValue (no string).
    Result<Namespace> collection() const;

    /// Lets the receive buffer go as soon as nothing of the request is needed any more.
    void release_request() {
        request_.body = bson::DocumentView();
        request_.sequences.clear();
        request_.bytes.reset();
    }

    /// Answers once; `fields` lacks ok, operationTime, $clusterTime and a write concern's error.
    /// `time`: of a write, its own.
    void succeed(bson::Builder fields, std::optional<bson::Timestamp> time = std::nullopt);
    void fail(const Error& error);
    /// Answers and keeps the command running: one reply more of an exhaust stream.
    void succeed_with_more_to_come(bson::Builder fields);
    /// The connection ends, without an answer.
    void hang_up();
    /// fail() when it is an error. For continuations.
    template <class T>
    bool failed(const Result<T>& result) {
        if (result) return false;
        fail(result.error());
        return true;
    }

  private:
    void end_statement(bool failed);
    bson::Document complete(bson::Builder fields, double ok, std::optional<bson::Timestamp> time);
    void send(Reply reply);

    const CommandEntry& entry_;
    Engine& engine_;
    const std::shared_ptr<ServerState>
        state_;  // shared with the service: an answer may come after it is gone
    const std::shared_ptr<Connection> connection_;
    Request request_;
    const ReplyFunction reply_;
    GenericArguments generic_;
    std::optional<FailPointHit> fail_point_;
    StatementPtr statement_;
    const SteadyTime started_;
    std::atomic<bool> answered_{false};
};
using CallPtr = std::shared_ptr<Call>;

}  // namespace angelia::engine::command
