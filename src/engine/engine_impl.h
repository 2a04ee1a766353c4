// The engine: rooms wired together. The face is engine.h; what happens to a write is told in
// docs/engine.md.
#pragma once

#include "engine/changes/change_streams.h"
#include "engine/core.h"
#include "engine/cursor/cursor.h"
#include "engine/write/ttl_monitor.h"

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

    Result<std::shared_ptr<ChangeStream>> watch(const WatchSpec& spec) override;
    Result<CursorBatch> open_change_stream_cursor(const WatchSpec& spec, std::int64_t batch_size,
                                                  bson::Document lsid) override;

    void create_collection(const Namespace& ns, bson::Document options, Done done) override;
    void drop_collection(const Namespace& ns,
                         std::function<void(Result<std::int32_t>)> done) override;
    void drop_database(const std::string& db, Done done) override;
    void create_indexes(const Namespace& ns, std::vector<IndexSpec> specs,
                        std::function<void(Result<IndexBuild>)> done) override;
    void drop_indexes(const Namespace& ns, bson::Value which,
                      std::function<void(Result<std::int32_t>)> done) override;
    std::vector<std::string> list_databases() override;
    std::vector<CollectionInfo> list_collections(const std::string& db) override;
    Result<CollectionStats> collection_stats(const Namespace& ns) override;
    Result<std::vector<IndexSpec>> list_indexes(const Namespace& ns) override;
    Result<bson::Document> validate(const Namespace& ns) override;

    storage::Storage& storage() override { return *core_.storage; }
    Oplog& oplog() override { return *core_.oplog; }
    const EngineOptions& options() const override { return core_.options; }
    RuntimeSettings& settings() override { return core_.settings; }
    bson::Timestamp operation_time() const override { return core_.storage->durable().time; }
    Executor& timers() override { return timers_; }
    Executor& workers() override { return workers_; }
    Result<std::int64_t> run_ttl_pass() override { return ttl_.run_pass(); }
    milliseconds ttl_interval() const override { return milliseconds(ttl_interval_ms_.load()); }
    void set_ttl_interval(milliseconds interval) override;
    bson::Document status() const override;

  private:
    class StreamWait;

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
    Result<CursorBatch> first_batch(CursorPtr cursor, std::int64_t batch_size, bool single_batch);
    void get_more_stream(CursorPtr cursor, const GetMoreSpec& spec,
                         std::function<void(Result<CursorBatch>)> done);
    Result<std::optional<bson::Document>> look_up(const OplogEntry& entry);
    void compact_later(storage::Family family, std::string prefix);
    void schedule_upkeep();
    void run_upkeep();

    Core core_;
    CursorRegistry cursors_;
    TtlMonitor ttl_;
    std::unique_ptr<ChangeStreams> streams_;
    SerialExecutor timers_;
    SerialExecutor upkeep_;  ///< TTL passes and sweeps: a lane of their own, so that no long
                             ///< command keeps them waiting
    ThreadPool workers_;
    std::mutex close_mutex_;
    bool closed_ = false;   // guarded by close_mutex_
    bool started_ = false;  // constant after start()
    int upkeep_count_ = 0;  // only on upkeep_
    std::atomic<std::int64_t> ttl_interval_ms_;
    std::mutex upkeep_mutex_;
    std::optional<Executor::TimerId> next_upkeep_;  // guarded by upkeep_mutex_
};

}  // namespace angelia::engine
