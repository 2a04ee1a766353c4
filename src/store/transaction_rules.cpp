#include "store/transaction_rules.h"

#include <algorithm>

namespace angelia::store {
namespace {

void add_label(Error& error, const char* label) {
    if (!error.has_label(label)) error.labels.emplace_back(label);
}

bool is_transient_everywhere(ErrorCode code) {
    switch (code) {
        case ErrorCode::WriteConflict:
        case ErrorCode::LockTimeout:
        case ErrorCode::NoSuchTransaction:
        case ErrorCode::PreparedTransactionInProgress:
        case ErrorCode::SnapshotUnavailable:
        case ErrorCode::SnapshotTooOld:
            return true;
        default:
            return false;
    }
}

/// After `failures` in a row.
microseconds pause_after(std::uint32_t failures, double jitter) {
    double longest = static_cast<double>(kPauseFirst.count());
    const double limit = static_cast<double>(kPauseMax.count());
    for (std::uint32_t i = 1; i < failures && longest < limit; ++i) longest *= 1.5;
    return microseconds(static_cast<std::int64_t>(std::min(longest, limit) * jitter));
}

}  // namespace

bool is_network_error(ErrorCode code) {
    switch (code) {
        case ErrorCode::HostUnreachable:
        case ErrorCode::HostNotFound:
        case ErrorCode::NetworkTimeout:
        case ErrorCode::SocketException:
            return true;
        default:
            return false;
    }
}

void label_statement_error(Error& error) {
    if (is_transient_everywhere(error.code) || error.code == ErrorCode::TemporarilyUnavailable ||
        is_retriable(error.code))
        add_label(error, kTransientTransactionError);
}

void label_commit_error(Error& error) {
    if (error.has_label(kTransientTransactionError)) return;
    if (is_transient_everywhere(error.code)) return add_label(error, kTransientTransactionError);
    if (is_retriable(error.code) || error.code == ErrorCode::MaxTimeMSExpired ||
        error.code == ErrorCode::WriteConcernTimeout)
        add_label(error, kUnknownCommitResult);
}

TransactionDecision decide_transaction(const TransactionStep& step) {
    using Action = TransactionDecision::Action;
    const bool work = step.kind == TransactionStep::Kind::Work;
    if (!step.error) {
        return work && step.still_open ? TransactionDecision{Action::Commit}
                                       : TransactionDecision{Action::Return};
    }
    TransactionDecision decision;
    decision.abort_first = work && step.still_open;
    // A commit that was given up for its own time limit would be given up again.
    const bool commit_again = !work && step.error->code != ErrorCode::MaxTimeMSExpired &&
                              step.error->has_label(kUnknownCommitResult);
    const bool start_again = !commit_again && step.error->has_label(kTransientTransactionError);
    if (step.closed || (!commit_again && !start_again)) return decision;
    const auto pause = pause_after(commit_again ? step.commits : step.attempts, step.jitter);
    if (step.elapsed + pause >= step.retry_for) return decision;
    decision.action = commit_again ? Action::CommitAgain : Action::StartAgain;
    decision.pause = pause;
    return decision;
}

}  // namespace angelia::store
