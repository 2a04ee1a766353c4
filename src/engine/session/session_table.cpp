#include "engine/session/session_table.h"

#include <fmt/format.h>

namespace angelia::engine {

namespace {

Error too_old(const RetryKey& key, std::int64_t newest) {
    return Error(ErrorCode::TransactionTooOld,
                 fmt::format("Cannot use transaction number {} on this session because a newer "
                             "number {} has already been used on it.",
                             key.txn_number, newest));
}

Error no_such(const RetryKey& key, std::string_view why) {
    return Error(ErrorCode::NoSuchTransaction,
                 fmt::format("Transaction with {{ txnNumber: {} }} {}.", key.txn_number, why));
}

Error already_committed(const RetryKey& key) {
    return Error(
        ErrorCode::TransactionCommitted,
        fmt::format("Transaction with {{ txnNumber: {} }} has been committed.", key.txn_number));
}

Error in_use(const RetryKey& key) {
    return Error(ErrorCode::ConflictingOperationInProgress,
                 fmt::format("Another operation of transaction {} of this session is running.",
                             key.txn_number));
}

}  // namespace

TransactionStatement::TransactionStatement(SessionTable& table,
                                           std::shared_ptr<Transaction> transaction)
    : table_(table), transaction_(std::move(transaction)) {}

TransactionStatement::~TransactionStatement() { finish(); }

void TransactionStatement::finish() {
    if (!finished_.exchange(true)) table_.check_in(transaction_, failed_);
}

Result<void> TransactionStatement::check_alive() const { return table_.check_alive(*transaction_); }

SessionTable::Session* SessionTable::find(const bson::Document& lsid) {
    auto it = sessions_.find(std::string(lsid.bytes()));
    return it == sessions_.end() ? nullptr : &it->second;
}

Result<LastTransaction> SessionTable::stored(const bson::Document& lsid) {
    std::lock_guard lock(core_.apply_mutex);
    return core_.retries.last(core_.storage->latest(), lsid);
}

Error SessionTable::not_known(const RetryKey& key) {
    auto last = stored(key.lsid);
    if (!last) return std::move(last).error();
    if (last->txn_number == key.txn_number && last->committed_transaction)
        return already_committed(key);
    if (key.txn_number < last->txn_number) return too_old(key, last->txn_number);
    return no_such(key, "has not been started or was forgotten");
}

Result<StatementPtr> SessionTable::begin_statement(const RetryKey& key, bool start,
                                                   const std::function<Result<ReadView>()>& view) {
    Ended ended;
    std::shared_ptr<Transaction> transaction;
    LastTransaction stored_last;
    if (start) {
        ANGELIA_TRY_ASSIGN(stored_last, stored(key.lsid));
    }
    {
        std::unique_lock lock(mutex_);
        Session* session = find(key.lsid);
        const auto newest =
            std::max(stored_last.txn_number, session ? session->txn_number : std::int64_t{-1});
        if (start) {
            if (key.txn_number < newest) return too_old(key, newest);
            if (key.txn_number == newest)
                return Error(ErrorCode::ConflictingOperationInProgress,
                             fmt::format("Cannot start a transaction with number {}: this session "
                                         "has used that number already.",
                                         key.txn_number));
            if (!session) {
                if (sessions_.size() >= kSessionsMax)
                    return Error(ErrorCode::TemporarilyUnavailable,
                                 fmt::format("{} sessions have transactions already; no more are "
                                             "allowed",
                                             kSessionsMax));
                session = &sessions_[std::string(key.lsid.bytes())];
                session->lsid = key.lsid.copy();
            }
            end(*session, State::Aborted, ErrorCode::NoSuchTransaction, ended);
            if (session->in_use) {
                lock.unlock();
                finish(std::move(ended));
                return in_use(key);
            }
            session->txn_number = key.txn_number;
            session->state = State::Open;
            session->ended_by = ErrorCode::NoSuchTransaction;
            session->in_use = true;
            session->started = session->last_used = core_.clock().steady_now();
            ++counts_.started;
            ++counts_.open;
            ++counts_.active;
        } else {
            if (!session || key.txn_number > session->txn_number) {
                lock.unlock();
                return not_known(key);
            }
            ANGELIA_TRY(check_open(session, key));
            if (session->in_use) return in_use(key);
            session->in_use = true;
            session->last_used = core_.clock().steady_now();
            ++counts_.active;
            transaction = session->transaction;
        }
    }
    finish(std::move(ended));
    if (!start) {
        if (core_.options.transaction_mutant == TransactionMutant::LateSnapshot &&
            !transaction->changed()) {
            ANGELIA_TRY_ASSIGN(auto later, view());
            transaction->read_from(std::move(later));
        }
        return std::make_shared<TransactionStatement>(*this, std::move(transaction));
    }
    auto seen = view();
    if (seen)
        transaction = std::make_shared<Transaction>(
            core_, RetryKey{key.lsid.copy(), key.txn_number}, ++last_id_, std::move(*seen));
    std::lock_guard lock(mutex_);
    Session& session = *find(key.lsid);  // in use: nobody takes it away
    if (!seen) {
        end(session, State::Aborted, ErrorCode::NoSuchTransaction, ended);
        session.in_use = false;
        --counts_.active;
        return std::move(seen).error();
    }
    session.transaction = transaction;
    return std::make_shared<TransactionStatement>(*this, std::move(transaction));
}

Result<void> SessionTable::check_open(const Session* session, const RetryKey& key) const {
    if (!session || key.txn_number > session->txn_number)
        return no_such(key, "has not been started or was forgotten");
    if (key.txn_number < session->txn_number) return too_old(key, session->txn_number);
    switch (session->state) {
        case State::Open:
            return {};
        case State::Committing:
        case State::Committed:
            return already_committed(key);
        case State::Aborted:
            if (session->ended_by == ErrorCode::TransactionExceededLifetimeLimitSeconds)
                return no_such(key, "was aborted because it was open for too long");
            return no_such(key, "has been aborted");
    }
    return {};
}

Result<storage::CommitPosition> SessionTable::commit(const RetryKey& key) {
    std::shared_ptr<Transaction> transaction;
    {
        std::unique_lock lock(mutex_);
        Session* session = find(key.lsid);
        const bool known = session && session->txn_number == key.txn_number;
        if (known && session->state == State::Committed) {
            ++counts_.retried_commits;
            return session->committed;
        }
        if (!known && (!session || key.txn_number > session->txn_number)) {
            lock.unlock();
            ANGELIA_TRY_ASSIGN(auto last, stored(key.lsid));
            if (last.txn_number == key.txn_number && last.committed_transaction) {
                lock.lock();
                ++counts_.retried_commits;
                return core_.storage->applied();
            }
            if (key.txn_number < last.txn_number) return too_old(key, last.txn_number);
            return no_such(key, "has not been started or was forgotten");
        }
        ANGELIA_TRY(check_open(session, key));
        if (session->in_use) return in_use(key);
        session->in_use = true;
        session->state = State::Committing;
        session->last_used = core_.clock().steady_now();
        ++counts_.active;
        transaction = session->transaction;
    }
    Result<storage::CommitPosition> position = transaction->position();
    if (transaction->changed()) position = transaction->commit();
    transaction->release_intents();
    {
        std::lock_guard lock(mutex_);
        Session& session = *find(key.lsid);
        session.in_use = false;
        --counts_.active;
        --counts_.open;
        session.state = position ? State::Committed : State::Aborted;
        if (position) session.committed = *position;
        ++(position ? counts_.committed : counts_.aborted);
        session.transaction.reset();
    }
    if (on_end_) on_end_(key);
    return position;
}

Result<void> SessionTable::abort(const RetryKey& key) {
    Ended ended;
    std::unique_lock lock(mutex_);
    Session* session = find(key.lsid);
    if (!session || key.txn_number > session->txn_number) {
        lock.unlock();
        return not_known(key);
    }
    ANGELIA_TRY(check_open(session, key));
    end(*session, State::Aborted, ErrorCode::NoSuchTransaction, ended);
    lock.unlock();
    finish(std::move(ended));
    return {};
}

Result<void> SessionTable::before_retryable_write(const RetryKey& key) {
    Ended ended;
    {
        std::lock_guard lock(mutex_);
        if (sessions_.empty()) return {};
        Session* session = find(key.lsid);
        if (!session) return {};
        if (key.txn_number < session->txn_number) return too_old(key, session->txn_number);
        if (key.txn_number == session->txn_number)
            return no_such(key, "is a transaction's number, it cannot be a retryable write's");
        end(*session, State::Aborted, ErrorCode::NoSuchTransaction, ended);
        // From here on the retry table knows the newest number of this session.
        if (!session->in_use) sessions_.erase(std::string(key.lsid.bytes()));
    }
    finish(std::move(ended));
    return {};
}

void SessionTable::end(Session& session, State state, ErrorCode why, Ended& ended) {
    if (session.state != State::Open) return;
    session.state = state;
    session.ended_by = why;
    ++counts_.aborted;
    --counts_.open;
    // A statement that runs lets it go when it is over.
    if (!session.in_use && session.transaction) ended.push_back(std::move(session.transaction));
}

void SessionTable::finish(Ended ended) {
    for (const auto& transaction : ended) {
        transaction->release_intents();
        if (on_end_) on_end_(transaction->key());
    }
}

void SessionTable::check_in(const std::shared_ptr<Transaction>& transaction, bool failed) {
    Ended ended;
    {
        std::lock_guard lock(mutex_);
        Session* session = find(transaction->key().lsid);
        ANGELIA_CHECK(session != nullptr);
        session->in_use = false;
        --counts_.active;
        session->last_used = core_.clock().steady_now();
        if (failed) end(*session, State::Aborted, ErrorCode::NoSuchTransaction, ended);
        if (session->state == State::Aborted && session->transaction)
            ended.push_back(std::move(session->transaction));
    }
    finish(std::move(ended));
}

Result<void> SessionTable::check_alive(const Transaction& transaction) {
    std::lock_guard lock(mutex_);
    const Session* session = find(transaction.key().lsid);
    if (session && session->state == State::Open) return {};
    if (session && session->ended_by == ErrorCode::TransactionExceededLifetimeLimitSeconds)
        return Error(ErrorCode::TransactionExceededLifetimeLimitSeconds,
                     fmt::format("the transaction was open longer than the {} seconds that are "
                                 "allowed",
                                 core_.settings.transaction_lifetime_seconds.load()));
    return no_such(transaction.key(), "has been aborted");
}

void SessionTable::end_session(bson::DocumentView lsid) {
    Ended ended;
    {
        std::lock_guard lock(mutex_);
        auto it = sessions_.find(std::string(lsid.bytes()));
        if (it == sessions_.end()) return;
        end(it->second, State::Aborted, ErrorCode::NoSuchTransaction, ended);
    }
    finish(std::move(ended));
}

void SessionTable::end_sessions(const std::function<bool(bson::DocumentView lsid)>& chosen) {
    Ended ended;
    {
        std::lock_guard lock(mutex_);
        for (auto& [id, session] : sessions_)
            if (chosen(session.lsid))
                end(session, State::Aborted, ErrorCode::NoSuchTransaction, ended);
    }
    finish(std::move(ended));
}

void SessionTable::touch(bson::DocumentView lsid) {
    std::lock_guard lock(mutex_);
    if (sessions_.empty()) return;
    auto it = sessions_.find(std::string(lsid.bytes()));
    if (it != sessions_.end()) it->second.last_used = core_.clock().steady_now();
}

std::vector<bson::Document> SessionTable::sweep() {
    Ended ended;
    std::vector<bson::Document> forgotten;
    {
        std::lock_guard lock(mutex_);
        const auto now = core_.clock().steady_now();
        for (auto it = sessions_.begin(); it != sessions_.end();) {
            Session& session = it->second;
            if (session.state == State::Open &&
                now - session.started >=
                    std::chrono::seconds(core_.settings.transaction_lifetime_seconds.load()))
                end(session, State::Aborted, ErrorCode::TransactionExceededLifetimeLimitSeconds,
                    ended);
            const bool idle = !session.in_use && session.state != State::Open &&
                              now - session.last_used >= kSessionIdle;
            if (idle) forgotten.push_back(session.lsid.copy());
            it = idle ? sessions_.erase(it) : std::next(it);
        }
    }
    finish(std::move(ended));
    return forgotten;
}

TransactionCounts SessionTable::counts() const {
    std::lock_guard lock(mutex_);
    auto counts = counts_;
    counts.sessions = static_cast<std::int64_t>(sessions_.size());
    return counts;
}

}  // namespace angelia::engine
