// Sessions over the engine: no command is written or parsed, the engine's own calls are made.
#pragma once

#include "engine/engine.h"
#include "engine/session/session_table.h"
#include "store/session_core.h"
#include "store/transaction_rules.h"

#include <mutex>
#include <vector>

namespace angelia::store_embedded {

/// Ids of sessions that are used again, as drivers do: the engine keeps a record for each id for
/// half an hour. Threads: safe.
class SessionIds {
  public:
    /// An id and the last transaction number used with it.
    engine::RetryKey take();
    void give_back(engine::RetryKey key);

  private:
    std::mutex mutex_;
    std::vector<engine::RetryKey> free_;  ///< guarded by mutex_; the one used last goes first
};

class EmbeddedSession final : public store::SessionCore {
  public:
    EmbeddedSession(const void* store, std::shared_ptr<engine::Engine> engine,
                    std::shared_ptr<SessionIds> ids);

    const engine::RetryKey& key() const { return key_; }
    engine::Engine& engine() const { return *engine_; }

  private:
    Result<void> start(const store::TransactionOptions& options) override;
    Result<void> commit(const store::TransactionOptions& options, bool again) override;
    void abort() override;
    /// The engine in this process does not come back: what MongoDB's clients take for a server that
    /// is replaced by another one ends the matter here.
    bool is_final(const Error& error) const override {
        return error.code == ErrorCode::ShutdownInProgress;
    }
    void release() override;

    std::shared_ptr<engine::Engine> engine_;  ///< shared with the store, until the session ends
    const std::shared_ptr<SessionIds> ids_;   ///< shared with the store
    engine::RetryKey key_;
};

/// What one call has of a session: its use, and in a transaction the engine's statement.
class Statement {
  public:
    Statement(Statement&&) noexcept = default;
    ~Statement();

    static Result<Statement> begin(const store::CallOptions& options, const void* store);

    bool in_transaction() const { return use_.in_transaction(); }
    const engine::StatementPtr& engine_statement() const { return statement_; }
    template <class Spec>
    void fill(Spec& spec) const {
        if (!statement_) return;
        spec.statement = statement_;
        spec.lsid = use_.as<EmbeddedSession>().key().lsid.copy();
    }
    /// The answer of the call. In a transaction an error ends it, and gets its label.
    template <class T>
    Result<T> end(Result<T> answer) {
        if (!statement_) return answer;
        if (!answer) return failed(std::move(answer).error());
        statement_->finish();
        return answer;
    }
    Error failed(Error error);

  private:
    explicit Statement(store::SessionUse use) : use_(std::move(use)) {}
    store::SessionUse use_;
    engine::StatementPtr statement_;
};

}  // namespace angelia::store_embedded
