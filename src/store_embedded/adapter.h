// The adapter itself; see embedded_store.h for how to get one.
#pragma once

#include "engine/engine.h"
#include "store_embedded/engine_place.h"

#include <angelia/base/threads.h>
#include <angelia/store/store.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace angelia::store_embedded {

class EmbeddedWatch;
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
    Result<void> with_transaction(const std::function<Result<void>(store::Session&)>&,
                                  const store::CallOptions&) override;
    std::unique_ptr<store::Diagnostics> diagnostics() override;
    std::string describe() const override { return description_; }
    Result<void> close() override;

    /// Errors: ShutdownInProgress.
    Result<std::shared_ptr<engine::Engine>> engine() const;

  private:
    /// One engine request; waits as the options say.
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
    // guarded by mutex_
    mutable std::mutex mutex_;
    EngineLease lease_;
    bool closed_ = false;
    std::shared_ptr<SerialExecutor> lane_;  ///< runs watches; made with the first
    std::vector<std::weak_ptr<EmbeddedWatch>> watches_;
};

}  // namespace angelia::store_embedded
