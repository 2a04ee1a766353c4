// The adapter itself; see embedded_store.h for how to get one.
#pragma once

#include "engine/engine.h"
#include "store/session_core.h"
#include "store_embedded/engine_place.h"

#include <angelia/base/threads.h>
#include <angelia/store/store.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace angelia::store_embedded {

class EmbeddedWatch;
class SessionIds;
class Statement;
class WriteList;

engine::Namespace to_namespace(const store::CollectionName& name);

/// Threads: safe.
class EmbeddedStore final : public store::StoreAdapter {
  public:
    explicit EmbeddedStore(EngineLease lease, std::string description);
    ~EmbeddedStore() override;

    Result<store::InsertResult> insert(const store::CollectionName&,
                                       std::span<const bson::DocumentView>, bool ordered,
                                       const store::CallOptions&) override;
    Result<std::vector<bson::Document>> find(const store::FindRequest&,
                                             const store::CallOptions&) override;
    Result<store::UpdateResult> update(const store::CollectionName&, std::vector<store::UpdateOp>,
                                       bool ordered, const store::CallOptions&) override;
    Result<std::optional<bson::Document>> find_and_modify(store::FindAndModifyRequest,
                                                          const store::CallOptions&) override;
    Result<store::DeleteResult> remove(const store::CollectionName&, std::vector<store::DeleteOp>,
                                       bool ordered, const store::CallOptions&) override;
    Result<store::BulkResult> bulk_write(std::vector<store::BulkOp>, bool ordered,
                                         const store::CallOptions&) override;
    Result<store::ClaimResult> claim(store::ClaimRequest, const store::CallOptions&) override;
    Result<std::int64_t> count(const store::CollectionName&, bson::DocumentView filter,
                               const store::CallOptions&) override;
    Result<void> ensure_indexes(const store::CollectionName&, std::vector<store::IndexDefinition>,
                                const store::CallOptions&) override;
    Result<void> drop(const store::CollectionName&, const store::CallOptions&) override;
    Result<std::vector<std::string>> list_collections(std::string_view db,
                                                      const store::CallOptions&) override;
    Result<std::unique_ptr<store::Watch>> watch(store::WatchRequest, store::WatchEvents) override;
    Result<store::ServerTime> server_time(const store::CallOptions&) override;
    Result<store::Capabilities> capabilities() override;
    Result<std::unique_ptr<store::Session>> start_session() override;
    std::unique_ptr<store::Diagnostics> diagnostics() override;
    std::string describe() const override { return description_; }
    Result<void> close() override;

    /// Errors: ShutdownInProgress.
    Result<std::shared_ptr<engine::Engine>> engine() const;

  private:
    /// The session and the statement of a call, if it has them. Errors: those of SessionUse::begin
    /// and Engine::begin_statement.
    Result<Statement> statement(const store::CallOptions& options);
    /// A call that cannot be made out: also this is a statement, and ends its transaction.
    Error refused(const store::CallOptions& options, Error error);
    Result<std::vector<bson::Document>> read(engine::Engine& engine,
                                             const store::FindRequest& request,
                                             const store::CallOptions& options,
                                             const Statement& statement);
    Result<std::int64_t> count_in_transaction(engine::Engine& engine, const engine::Namespace& ns,
                                              bson::DocumentView filter,
                                              const Statement& statement);
    /// One engine request; waits as the options say. In a transaction `ordered` means nothing.
    Result<engine::WriteResult> write(engine::Engine& engine,
                                      std::vector<engine::ConditionalWrite> writes, bool ordered,
                                      const store::CallOptions& options);
    /// The same for a batch of the port: `parsed(i)` gives operation `i`; `list` remembers what
    /// could not be parsed. Nothing left to run is an empty result.
    Result<engine::WriteResult> write(
        WriteList& list, std::size_t count,
        const std::function<Result<engine::ConditionalWrite>(std::size_t)>& parsed, bool ordered,
        const store::CallOptions& options);

    const std::string description_;
    // own synchronisation
    const std::shared_ptr<SessionIds> session_ids_;  ///< shared with sessions, which may end later
    store::OpenSessions sessions_;
    // guarded by mutex_
    mutable std::mutex mutex_;
    EngineLease lease_;
    bool closed_ = false;
    std::shared_ptr<SerialExecutor> lane_;  ///< runs watches; made with the first
    std::vector<std::weak_ptr<EmbeddedWatch>> watches_;
};

}  // namespace angelia::store_embedded
