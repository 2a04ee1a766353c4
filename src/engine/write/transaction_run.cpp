// The writes of one statement of a transaction: searched outside of the apply section, where nobody
// else changes what the transaction sees; evaluated inside, where intents are taken.
#include "engine/session/session_table.h"
#include "engine/session/transaction_scope.h"
#include "engine/write/write_run.h"

#include <fmt/format.h>

namespace angelia::engine {

namespace {

/// Drivers begin the whole transaction again after these; the statement has no result then.
bool ends_the_attempt(ErrorCode code) {
    return code == ErrorCode::WriteConflict || code == ErrorCode::SnapshotUnavailable;
}

}  // namespace

Result<void> WriteRun::run_in_transaction() {
    auto& statement = *request_.statement;
    for (const auto& write : request_.writes) {
        if (write.ns.db == "admin" || write.ns.db == "config" || write.ns.db == "local" ||
            write.ns.collection.rfind("system.", 0) == 0)
            return Error(ErrorCode::OperationNotSupportedInTransaction,
                         fmt::format("Cannot write to {} in a transaction", write.ns.full()));
        ANGELIA_TRY(statement.transaction().collection(write.ns));
    }
    while (next_ < request_.writes.size()) {
        ANGELIA_TRY(core_.check_open());
        ANGELIA_TRY(check_deadline(core_, request_.deadline));
        prepare(next_, std::min(request_.writes.size(), next_ + kBatchWritesMax));
        const bool searches = request_.writes[next_].kind != WriteKind::Insert && !progress_ &&
                              outside_.count(next_) == 0;
        if (searches) ANGELIA_TRY(search_outside(next_));
        ANGELIA_TRY(statement.check_alive());
        ANGELIA_TRY_ASSIGN(Step step, run_batch_in_transaction());
        if (step == Step::SearchOutside) ANGELIA_TRY(search_outside(next_));
    }
    position_ = statement.transaction().position();
    return {};
}

Result<WriteRun::Step> WriteRun::run_batch_in_transaction() {
    TransactionScope scope(core_, request_.statement->transaction());
    PendingStatements none;
    applied_in_batch_ = 0;
    const std::size_t first = next_;
    while (next_ < request_.writes.size()) {
        const bool insert = request_.writes[next_].kind == WriteKind::Insert;
        if (insert && !prepared_[next_].done) break;
        // The next search belongs outside.
        if (!insert && next_ != first && outside_.count(next_) == 0) break;
        if (next_ != first && applied_in_batch_ >= kBatchWritesMax) break;
        auto step = evaluate(scope, next_, none);
        if (step) {
            auto size = scope.check_size();
            if (!size) return std::move(size).error();
        }
        if (!step) {
            if (ends_the_attempt(step.error().code)) return std::move(step).error();
            if (step.error().code == ErrorCode::DuplicateKey) ++core_.counters.duplicate_keys;
            outcomes_[next_] = WriteOutcome{};
            outcomes_[next_].error = std::move(step).error();
            ++next_;
            skip_rest();
            request_.statement->fail();
            return Step::Finished;
        }
        if (*step != Step::Finished) return *step;
        progress_.reset();
        searches_ = 0;
        ++next_;
    }
    return Step::Finished;
}

}  // namespace angelia::engine
