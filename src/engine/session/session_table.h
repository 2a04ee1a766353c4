// Sessions and their transactions (contract 6.2): which number is open, committed or aborted, who
// uses it now, and when it ends by itself. What must outlive the process is in the retry table.
#pragma once

#include "engine/core.h"
#include "engine/session/transaction.h"

#include <unordered_map>

namespace angelia::engine {

inline constexpr milliseconds kSessionIdle{30 * 60 * 1000};
inline constexpr std::size_t kSessionsMax = 100'000;

class SessionTable;

/// One statement of an open transaction, which it has for itself until it is destroyed. Whoever
/// sees the statement fail calls fail(): any error ends a transaction.
class TransactionStatement {
  public:
    TransactionStatement(SessionTable& table, std::shared_ptr<Transaction> transaction);
    ~TransactionStatement();
    TransactionStatement(const TransactionStatement&) = delete;
    TransactionStatement& operator=(const TransactionStatement&) = delete;

    Transaction& transaction() const { return *transaction_; }
    const std::shared_ptr<Transaction>& shared_transaction() const { return transaction_; }
    void fail() { failed_ = true; }
    /// The statement is over: the next one may begin. Once; the destructor calls it, too. Threads:
    /// safe.
    void finish();
    /// Errors: TransactionExceededLifetimeLimitSeconds, NoSuchTransaction when the transaction was
    /// ended from outside while the statement runs. Threads: safe.
    Result<void> check_alive() const;

  private:
    SessionTable& table_;
    const std::shared_ptr<Transaction> transaction_;  ///< shared with the table
    std::atomic<bool> failed_{false};
    std::atomic<bool> finished_{false};
};

struct TransactionCounts {
    std::int64_t open = 0, active = 0, started = 0, committed = 0, aborted = 0, conflicts = 0;
    std::int64_t sessions = 0, retried_commits = 0;
};

/// Threads: safe.
class SessionTable {
  public:
    explicit SessionTable(Core& core) : core_(core) {}

    /// Checks the number, opens the transaction if this is its first statement, and gives the
    /// statement the use of it. `view`: what it will read. Errors: TransactionTooOld,
    /// NoSuchTransaction, TransactionCommitted, ConflictingOperationInProgress (another statement
    /// is running, or the number is open already), TemporarilyUnavailable.
    Result<StatementPtr> begin_statement(const RetryKey& key, bool start,
                                         const std::function<Result<ReadView>()>& view);
    /// Where the commit stands, also when it was committed before. Errors: as begin_statement,
    /// those of Transaction::commit.
    Result<storage::CommitPosition> commit(const RetryKey& key);
    /// Errors: as begin_statement.
    Result<void> abort(const RetryKey& key);
    /// A retryable write is about to use this number. Aborts an open transaction with a smaller
    /// one. Errors: TransactionTooOld, NoSuchTransaction (the number is a transaction's).
    Result<void> before_retryable_write(const RetryKey& key);

    /// Ends what the session has open and forgets it.
    void end_session(bson::DocumentView lsid);
    void end_sessions(const std::function<bool(bson::DocumentView lsid)>& chosen);
    void touch(bson::DocumentView lsid);
    /// Aborts what is open longer than allowed; forgets idle sessions and returns their ids.
    std::vector<bson::Document> sweep();

    TransactionCounts counts() const;
    /// Called, under no lock, for every transaction that ended.
    void set_on_end(std::function<void(const RetryKey&)> on_end) { on_end_ = std::move(on_end); }

  private:
    friend class TransactionStatement;
    enum class State : std::uint8_t { Open, Committing, Committed, Aborted };
    struct Session {
        bson::Document lsid;
        std::int64_t txn_number = -1;  ///< newest number of a transaction known here
        State state = State::Aborted;
        std::shared_ptr<Transaction> transaction;  ///< while open, or until its statement is over
        bool in_use = false;
        ErrorCode ended_by = ErrorCode::NoSuchTransaction;
        storage::CommitPosition committed;
        SteadyTime started, last_used;
    };
    using Ended = std::vector<std::shared_ptr<Transaction>>;

    Session* find(const bson::Document& lsid);
    /// What the retry table knows. Under no lock of ours.
    Result<LastTransaction> stored(const bson::Document& lsid);
    /// Why a number that no session here has cannot go on: the retry table may know it. Under no
    /// lock of ours.
    Error not_known(const RetryKey& key);
    Result<void> check_open(const Session* session, const RetryKey& key) const;
    void end(Session& session, State state, ErrorCode why, Ended& ended);
    void finish(Ended ended);
    void check_in(const std::shared_ptr<Transaction>& transaction, bool failed);
    Result<void> check_alive(const Transaction& transaction);

    Core& core_;
    std::function<void(const RetryKey&)> on_end_;  // constant after open
    std::atomic<TransactionId> last_id_{0};
    mutable std::mutex mutex_;
    // guarded by mutex_
    std::unordered_map<std::string, Session> sessions_;  ///< by the bytes of lsid
    TransactionCounts counts_;
};

}  // namespace angelia::engine
