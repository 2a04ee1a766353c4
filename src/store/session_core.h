// What the sessions of all adapters have in common: the states of a transaction, one call at a
// time, the end with the store. An adapter adds how it starts, commits and aborts.
#pragma once

#include <angelia/store/store.h>

#include <memory>
#include <mutex>
#include <vector>

namespace angelia::store {

/// Threads: safe. Kept by its handle, which the application owns, and by calls that run in it.
class SessionCore : public std::enable_shared_from_this<SessionCore> {
  public:
    /// `store`: whose verbs may use it; compared only.
    explicit SessionCore(const void* store) : store_(store) {}
    virtual ~SessionCore() = default;
    SessionCore(const SessionCore&) = delete;
    SessionCore& operator=(const SessionCore&) = delete;

    Result<void> start_transaction(const TransactionOptions& options);
    Result<void> commit_transaction();
    Result<void> abort_transaction();
    bool in_transaction() const;
    bool ended() const;
    /// Aborts what is open and lets go of what the session holds, at once or as soon as the call
    /// that runs is over. Later calls answer ShutdownInProgress.
    void end();

  protected:
    /// May refuse a transaction before the server hears of it.
    virtual Result<void> start(const TransactionOptions& options) = 0;
    /// A transaction with at least one statement. `again`: the outcome of the commit before was not
    /// known, or it went well.
    virtual Result<void> commit(const TransactionOptions& options, bool again) = 0;
    /// Of a transaction with at least one statement. Failures are nobody's concern: the server ends
    /// it by itself.
    virtual void abort() = 0;
    /// A transaction without statements was committed or aborted.
    virtual void forget_empty() {}
    /// This error will not go away: the store is closing.
    virtual bool is_final(const Error&) const { return false; }
    /// Gives back what the session holds; once, when nothing runs and nothing is open.
    virtual void release() = 0;

  private:
    friend class SessionUse;
    enum class State : std::uint8_t { None, Starting, InProgress, Committed, Aborted };
    Result<void> enter();
    void leave();
    void abort_and_release();
    bool is_open() const { return state_ == State::Starting || state_ == State::InProgress; }

    const void* const store_;
    // used by the one call that has entered
    TransactionOptions options_;
    bool had_statements_ = false;
    // guarded by mutex_; written by the one call that has entered
    mutable std::mutex mutex_;
    State state_ = State::None;
    bool in_use_ = false;
    bool ended_ = false;
};

/// A session while one call runs in it. A call outside of any session has an empty one.
class SessionUse {
  public:
    SessionUse() = default;
    SessionUse(SessionUse&& other) noexcept = default;
    SessionUse& operator=(SessionUse&&) = delete;
    ~SessionUse();

    /// The session that `options` name, for a verb of `store`. In a transaction this is its next
    /// statement. Errors: ShutdownInProgress, ConflictingOperationInProgress, BadValue (of another
    /// store).
    static Result<SessionUse> begin(const CallOptions& options, const void* store);

    explicit operator bool() const { return core_ != nullptr; }
    bool in_transaction() const { return in_transaction_; }
    bool first_statement() const { return first_statement_; }
    /// The adapter's own class.
    template <class T>
    T& as() const {
        return static_cast<T&>(*core_);
    }

  private:
    friend class SessionCore;
    /// The error of begin() is that of SessionCore::enter().
    static Result<SessionUse> enter(std::shared_ptr<SessionCore> core);
    std::shared_ptr<SessionCore> core_;
    bool in_transaction_ = false;
    bool first_statement_ = false;
};

/// True when the store of the session was closed: trying again is of no use.
bool is_ended(const Session& session);

/// The sessions that are open at one store, to be ended with it. Threads: safe.
class OpenSessions {
  public:
    /// The application's handle. Errors: ShutdownInProgress.
    Result<std::unique_ptr<Session>> add(std::shared_ptr<SessionCore> core);
    void end_all();

  private:
    std::mutex mutex_;
    // guarded by mutex_
    bool ended_ = false;
    std::vector<std::weak_ptr<SessionCore>> open_;
};

}  // namespace angelia::store
