// The engine: rooms wired together. The face is engine.h; what happens to a write is told in
// docs/engine.md.
#pragma once

#include "engine/catalog/ddl.h"
#include "engine/changes/change_streams.h"
#include "engine/core.h"
#include "engine/cursor/cursor.h"
#include "engine/session/session_table.h"
#include "engine/session/snapshot_history.h"
#include "engine/write/parked_work.h"
#include "engine/write/ttl_monitor.h"
#include "engine/write/write_run.h"

#include <angelia/base/threads.h>

namespace angelia::engine {

class EngineImpl final : public Engine {
  public:
    explicit EngineImpl(EngineOptions options);
    ~EngineImpl() override;
    Result<void> start();

    Result<void> close() override;

    void write(WriteRequest request, WriteDone done) override;
    Result<CursorBatch> find(const FindSpec& spec) override;
    Result<CursorBatch> aggregate(const AggregateSpec& spec) override;
    Result<std::int64_t> count(const CountSpec& spec) override;
    void get_more(const GetMoreSpec& spec, std::function<void(Result<CursorBatch>)> done) override;
    KilledCursors kill_cursors(const Namespace& ns, std::span<const std::int64_t> ids) override;
    Result<CursorBatch> open_result_cursor(ResultCursorSpec spec) override;
    void end_session(bson::DocumentView lsid) override;
    void kill_sessions(const std::function<bool(bson::DocumentView lsid)>& chosen) override;
    void refresh_session(bson::DocumentView lsid) override {
        sessions_.touch(lsid);
        cursors_.keep_session(lsid);
    }

    Result<StatementPtr> begin_statement(const RetryKey& key, bool start,
                                         std::optional<bson::Timestamp> at) override;
    void commit_transaction(const RetryKey& key, Done done) override;
    Result<void> abort_transaction(const RetryKey& key) override;
    Result<void> create_collection_in(const StatementPtr& statement, const Namespace& ns,
                                      bson::Document options) override;
    Result<IndexBuild> create_indexes_in(const StatementPtr& statement, const Namespace& ns,
                                         const std::vector<IndexSpec>& specs) override;

    Result<std::shared_ptr<ChangeStream>> watch(const WatchSpec& spec) override;
    Result<CursorBatch> open_change_stream_cursor(const WatchSpec& spec, std::int64_t batch_size,
                                                  bson::Document lsid) override;

    void create_collection(const Namespace& ns, bson::Document options, Done done,
                           SteadyTime deadline) override;
    void drop_collection(const Namespace& ns, std::function<void(Result<std::int32_t>)> done,
                         SteadyTime deadline) override;
    void drop_database(const std::string& db, Done done, SteadyTime deadline) override;
    void modify_collection(const Namespace& ns, CollectionChange change,
                           std::function<void(Result<CollectionChanged>)> done,
                           SteadyTime deadline) override;
    void rename_collection(const Namespace& from, const Namespace& to, RenameOptions options,
                           Done done, SteadyTime deadline) override;
    void create_indexes(const Namespace& ns, std::vector<IndexSpec> specs,
                        std::function<void(Result<IndexBuild>)> done, SteadyTime deadline) override;
    void drop_indexes(const Namespace& ns, bson::Value which,
                      std::function<void(Result<std::int32_t>)> done, SteadyTime deadline) override;
    std::vector<std::string> list_databases() override;
    std::vector<CollectionInfo> list_collections(const std::string& db) override;
    Result<CollectionStats> collection_stats(const Namespace& ns) override;
    Result<std::vector<IndexSpec>> list_indexes(const Namespace& ns) override;
    Result<bson::Document> validate(const Namespace& ns) override;

    storage::Storage& storage() override { return *core_.storage; }
    Oplog& oplog() override { return *core_.oplog; }
    const EngineOptions& options() const override { return core_.options; }
    RuntimeSettings& settings() override { return core_.settings; }
    bson::Timestamp operation_time() const override {
        return core_.storage->published().position.time;
    }
    Executor& timers() override { return timers_; }
    Executor& workers() override { return workers_; }
    Result<std::int64_t> run_ttl_pass() override;
    void sweep_sessions() override;
    milliseconds ttl_interval() const override { return milliseconds(ttl_interval_ms_.load()); }
    void set_ttl_interval(milliseconds interval) override;
    bson::Document status() const override;

  private:
    class StreamWait;

    /// Runs a change of the catalog, which may have to wait for a transaction, and hands its result
    /// to `done`.
    template <class T>
    void run_ddl(SteadyTime deadline, std::function<Result<Committed<T>>(WaiterId)> attempt,
                 std::function<void(Result<Committed<T>>)> done) {
        auto result = std::make_shared<std::optional<Committed<T>>>();
        auto work = std::make_shared<ParkedWork>(
            core_, timers_, deadline,
            [result, attempt = std::move(attempt)](WaiterId waiter) -> Result<void> {
                ANGELIA_TRY_ASSIGN(*result, attempt(waiter));
                return {};
            },
            [result, done = std::move(done)](Result<void> finished) {
                if (!finished) return done(std::move(finished).error());
                done(std::move(**result));
            });
        work->run();
    }
    void answer_write(WriteRun& run, const WriteDone& done);
    void schedule_session_sweep();

    /// Answers with `value` once `position` is durable, or with the error that stopped the store.
    template <class T>
    void answer_durable(storage::CommitPosition position, T value,
                        std::function<void(Result<T>)> done) {
        // std::function wants something that can be copied.
        auto shared = std::make_shared<T>(std::move(value));
        core_.storage->on_durable(position, [shared, done = std::move(done)](Result<void> durable) {
            if (!durable)
                done(std::move(durable).error());
            else
                done(std::move(*shared));
        });
    }
    /// What a read of this kind sees; nothing: the newest state, batch by batch.
    Result<PinnedViewPtr> pinned_view(const StatementPtr& statement, const SnapshotRead& snapshot);
    Result<CursorBatch> first_batch(CursorPtr cursor, std::int64_t batch_size, bool single_batch);
    void get_more_stream(CursorPtr cursor, const GetMoreSpec& spec,
                         std::function<void(Result<CursorBatch>)> done);
    Result<std::optional<bson::Document>> look_up(const OplogEntry& entry);
    void compact_later(storage::Family family, std::string prefix);
    void schedule_upkeep();
    void run_upkeep();

    Core core_;
    CursorRegistry cursors_;
    SessionTable sessions_;
    SnapshotHistory snapshots_;
    TtlMonitor ttl_;
    std::unique_ptr<ChangeStreams> streams_;
    SerialExecutor timers_;
    SerialExecutor upkeep_;  ///< TTL passes and sweeps: a lane of their own, so that no long
                             ///< command keeps them waiting
    ThreadPool workers_;
    /// Parked writes whose turn has come. Never full: it is posted to under the apply mutex, and
    /// what waits for a transaction is bounded (intents.h).
    ThreadPool resumed_;
    std::mutex close_mutex_;
    bool closed_ = false;   // guarded by close_mutex_
    bool started_ = false;  // constant after start()
    int upkeep_count_ = 0;  // only on upkeep_
    std::atomic<std::int64_t> ttl_interval_ms_;
    std::mutex upkeep_mutex_;
    std::optional<Executor::TimerId> next_upkeep_;  // guarded by upkeep_mutex_
};

}  // namespace angelia::engine
