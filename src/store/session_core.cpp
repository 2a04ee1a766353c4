#include "store/session_core.h"

#include "store/transaction_rules.h"

#include <algorithm>

namespace angelia::store {
namespace {

Error store_closed() { return {ErrorCode::ShutdownInProgress, "the store was closed"}; }

class SessionHandle final : public Session {
  public:
    explicit SessionHandle(std::shared_ptr<SessionCore> core) : core_(std::move(core)) {}
    ~SessionHandle() override { core_->end(); }

    Result<void> start_transaction(const TransactionOptions& options) override {
        return core_->start_transaction(options);
    }
    Result<void> commit_transaction() override { return core_->commit_transaction(); }
    Result<void> abort_transaction() override { return core_->abort_transaction(); }
    bool in_transaction() const override { return core_->in_transaction(); }
    const std::shared_ptr<SessionCore>& core() const { return core_; }

  private:
    const std::shared_ptr<SessionCore> core_;  ///< shared with the call that runs in it
};

}  // namespace

Result<void> SessionCore::enter() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return store_closed();
    if (in_use_) {
        return {ErrorCode::ConflictingOperationInProgress,
                "another call is running in this session; a session runs one call at a time"};
    }
    in_use_ = true;
    return {};
}

void SessionCore::leave() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!ended_) {
            in_use_ = false;
            return;
        }
    }
    abort_and_release();
}

void SessionCore::abort_and_release() {
    if (is_open() && had_statements_) abort();
    release();
}

void SessionCore::end() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (ended_) return;
        ended_ = true;
        if (in_use_) return;  // the call that runs does the rest
        in_use_ = true;
    }
    abort_and_release();
}

bool SessionCore::in_transaction() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_open();
}

bool SessionCore::ended() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_;
}

Result<void> SessionCore::start_transaction(const TransactionOptions& options) {
    ANGELIA_TRY_ASSIGN(const SessionUse use, SessionUse::enter(shared_from_this()));
    if (is_open())
        return {ErrorCode::ConflictingOperationInProgress,
                "this session has an open transaction: commit or abort it first"};
    if (options.acknowledge == Acknowledge::None)
        return {ErrorCode::InvalidOptions, "a commit cannot go unacknowledged"};
    if (options.max_commit_time < milliseconds(1))
        return {ErrorCode::InvalidOptions, "max_commit_time must be at least 1 ms"};
    ANGELIA_TRY(start(options));
    options_ = options;
    had_statements_ = false;
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = State::Starting;
    return {};
}

Result<void> SessionCore::commit_transaction() {
    ANGELIA_TRY_ASSIGN(const SessionUse use, SessionUse::enter(shared_from_this()));
    if (state_ == State::None)
        return {ErrorCode::NoSuchTransaction, "no transaction was started in this session"};
    if (state_ == State::Aborted)
        return {ErrorCode::NoSuchTransaction,
                "the transaction was aborted; it cannot be committed"};
    const bool again = state_ == State::Committed;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        state_ = State::Committed;
    }
    if (!had_statements_) {
        if (!again) forget_empty();
        return {};
    }
    auto done = commit(options_, again);
    if (done) return {};
    Error error = std::move(done).error();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_final(error)) ended_ = true;
    if (ended_) {
        error.code = ErrorCode::ShutdownInProgress;
        error.message = "the store was closed during the commit: " + error.message;
        error.labels = {kUnknownCommitResult};
    } else {
        label_commit_error(error);
    }
    return error;
}

Result<void> SessionCore::abort_transaction() {
    ANGELIA_TRY_ASSIGN(const SessionUse use, SessionUse::enter(shared_from_this()));
    if (state_ == State::None)
        return {ErrorCode::NoSuchTransaction, "no transaction was started in this session"};
    if (state_ == State::Committed)
        return {ErrorCode::TransactionCommitted,
                "the transaction was committed; it cannot be aborted"};
    if (state_ == State::Aborted)
        return {ErrorCode::NoSuchTransaction, "the transaction was aborted before"};
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        state_ = State::Aborted;
    }
    had_statements_ ? abort() : forget_empty();
    return {};
}

SessionUse::~SessionUse() {
    if (core_ != nullptr) core_->leave();
}

Result<SessionUse> SessionUse::enter(std::shared_ptr<SessionCore> core) {
    ANGELIA_TRY(core->enter());
    SessionUse use;
    use.core_ = std::move(core);
    return use;
}

Result<SessionUse> SessionUse::begin(const CallOptions& options, const void* store) {
    if (options.session == nullptr) return SessionUse();
    const auto* handle = dynamic_cast<const SessionHandle*>(options.session);
    if (handle == nullptr || handle->core()->store_ != store)
        return {ErrorCode::BadValue, "the session is one of another store"};
    ANGELIA_TRY_ASSIGN(SessionUse use, enter(handle->core()));
    SessionCore& core = *use.core_;
    using State = SessionCore::State;
    use.in_transaction_ = core.is_open();
    use.first_statement_ = core.state_ == State::Starting;
    if (use.in_transaction_) core.had_statements_ = true;
    const std::lock_guard<std::mutex> lock(core.mutex_);
    core.state_ = use.in_transaction_ ? State::InProgress : State::None;
    return use;
}

bool is_ended(const Session& session) {
    const auto* handle = dynamic_cast<const SessionHandle*>(&session);
    return handle != nullptr && handle->core()->ended();
}

Result<std::unique_ptr<Session>> OpenSessions::add(std::shared_ptr<SessionCore> core) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!ended_) {
            std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
            open_.push_back(core);
            return std::unique_ptr<Session>(std::make_unique<SessionHandle>(std::move(core)));
        }
    }
    core->end();
    return store_closed();
}

void OpenSessions::end_all() {
    std::vector<std::weak_ptr<SessionCore>> open;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ended_ = true;
        open.swap(open_);
    }
    for (const auto& weak : open) {
        if (const auto core = weak.lock()) core->end();
    }
}

}  // namespace angelia::store
