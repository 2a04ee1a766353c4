// Transactions and sessions: the engine's side of session/session_table.h.
#include "engine/catalog/index_rules.h"
#include "engine/engine_impl.h"
#include "engine/session/transaction_scope.h"

#include <fmt/format.h>

namespace angelia::engine {

namespace {

constexpr milliseconds kSessionSweepEvery{1000};

/// The transaction of a statement as reads see it; later statements see what it changed meanwhile.
class PinnedTransaction final : public PinnedView {
  public:
    explicit PinnedTransaction(std::shared_ptr<Transaction> transaction)
        : transaction_(std::move(transaction)) {}
    const storage::Reader& reader() const override { return transaction_->reader(); }
    Result<CollectionPtr> collection(const Namespace& ns) const override {
        return transaction_->collection(ns);
    }
    std::optional<bson::Timestamp> time() const override { return std::nullopt; }

  private:
    const std::shared_ptr<Transaction> transaction_;  // shared with the session until it ends
};

}  // namespace

Result<PinnedViewPtr> EngineImpl::pinned_view(const StatementPtr& statement,
                                              const SnapshotRead& snapshot) {
    if (statement)
        return PinnedViewPtr(std::make_shared<PinnedTransaction>(statement->shared_transaction()));
    if (!snapshot.wanted) return PinnedViewPtr();
    if (!snapshot.at) return pin(core_, snapshots_.take());
    ANGELIA_TRY_ASSIGN(auto view, snapshots_.find(*snapshot.at));
    return pin(core_, std::move(view));
}

Result<StatementPtr> EngineImpl::begin_statement(const RetryKey& key, bool start,
                                                 std::optional<bson::Timestamp> at) {
    ANGELIA_TRY(core_.check_open());
    return sessions_.begin_statement(key, start, [this, at]() -> Result<ReadView> {
        return at ? snapshots_.find(*at) : current_view(core_);
    });
}

void EngineImpl::commit_transaction(const RetryKey& key, Done done) {
    if (auto open = core_.check_open(); !open) return done(std::move(open).error());
    auto position = sessions_.commit(key);
    if (!position) return done(std::move(position).error());
    answer_durable<bson::Timestamp>(*position, position->time, std::move(done));
}

Result<void> EngineImpl::abort_transaction(const RetryKey& key) {
    ANGELIA_TRY(core_.check_open());
    return sessions_.abort(key);
}

namespace {

/// What every statement that changes something has in common.
Result<void> check_statement(const Core& core, const StatementPtr& statement, const Namespace& ns) {
    ANGELIA_TRY(core.check_open());
    ANGELIA_TRY(check_namespace(ns));
    ANGELIA_TRY(statement->check_alive());
    ANGELIA_TRY(statement->transaction().collection(ns));
    return {};
}

}  // namespace

Result<void> EngineImpl::create_collection_in(const StatementPtr& statement, const Namespace& ns,
                                              bson::Document options) {
    ANGELIA_TRY(check_statement(core_, statement, ns));
    TransactionScope scope(core_, statement->transaction());
    ANGELIA_TRY(scope.create_collection(ns, options));
    return scope.check_size();
}

Result<IndexBuild> EngineImpl::create_indexes_in(const StatementPtr& statement, const Namespace& ns,
                                                 const std::vector<IndexSpec>& specs) {
    ANGELIA_TRY(check_statement(core_, statement, ns));
    for (const auto& spec : specs) ANGELIA_TRY(check_index_spec(spec));
    TransactionScope scope(core_, statement->transaction());
    ANGELIA_TRY_ASSIGN(auto build, scope.create_indexes(ns, specs));
    ANGELIA_TRY(scope.check_size());
    return build;
}

void EngineImpl::end_session(bson::DocumentView lsid) {
    kill_sessions([lsid](bson::DocumentView other) { return other.identical(lsid); });
}

void EngineImpl::kill_sessions(const std::function<bool(bson::DocumentView lsid)>& chosen) {
    cursors_.kill_sessions(chosen);
    sessions_.end_sessions(chosen);
}

void EngineImpl::sweep_sessions() {
    for (const auto& lsid : sessions_.sweep()) end_session(lsid);
    snapshots_.forget_old();
}

void EngineImpl::schedule_session_sweep() {
    timers_.post_after(kSessionSweepEvery, [this] {
        if (core_.closing) return;
        sweep_sessions();
        schedule_session_sweep();
    });
}

}  // namespace angelia::engine
