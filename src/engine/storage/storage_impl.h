// The Storage behind storage.h. Three threads of work meet here: committers (one at a time, in the
// apply section), the syncer, and the keeper (repairs after a full disk, trims). Internal to this
// folder; lock order: docs/lock_order.md.
#pragma once

#include "engine/storage/database.h"
#include "engine/storage/oplog_log.h"
#include "engine/storage/overlay.h"
#include "engine/storage/reader.h"
#include "engine/storage/watermark.h"
#include "engine/storage/workspace.h"

#include <rocksdb/write_batch.h>

#include <condition_variable>
#include <thread>

namespace angelia::engine::storage {

class StorageImpl final : public Storage {
  public:
    StorageImpl(Options options, DatabasePtr database);
    ~StorageImpl() override;

    /// Format, store id, clock and oplog; then the threads.
    Result<void> start();

    const Reader& latest() const override { return latest_; }
    SnapshotPtr snapshot() const override { return std::make_shared<const Snapshot>(database_); }
    std::unique_ptr<Reader> at(SnapshotPtr snapshot) const override {
        return std::make_unique<DatabaseReader>(database_, std::move(snapshot));
    }
    std::unique_ptr<Workspace> workspace(SnapshotPtr snapshot) const override {
        return make_workspace(database_, std::move(snapshot));
    }
    View published() const override;
    View newest() const override;
    void attach_first(std::shared_ptr<const void> state) override;
    std::unique_ptr<ApplySection> begin_apply() override;
    void on_durable(CommitPosition position, std::function<void(Result<void>)> done) override {
        watermark_.when(position, std::move(done));
    }
    Result<void> wait_durable(CommitPosition position) override {
        return watermark_.wait(position);
    }
    CommitPosition applied() const override;
    CommitPosition durable() const override { return watermark_.durable(); }
    void set_durable_listener(std::function<void(CommitPosition)> listener) override {
        watermark_.set_listener(std::move(listener));
    }
    Result<void> adopt_cluster_time(bson::Timestamp time) override;
    std::array<std::uint8_t, 8> store_id() const override { return store_id_; }
    Statistics statistics() const override;
    bool memory() const override { return options_.memory; }
    Durability durability() const override { return options_.durability; }
    Result<void> set_endpoint_note(std::string note) override;
    Result<void> compact(Family family, std::string_view lower, std::string_view upper) override;
    Result<void> close() override;

    OplogLog& oplog() { return oplog_; }
    /// Announces a cut durably, then deletes what is before it.
    Result<void> trim_oplog(bson::Timestamp before);

    // -- for the apply section, which holds apply_mutex_
    bson::Timestamp next_timestamp();
    Result<CommitPosition> write(Overlay& changes);
    void left_section(std::chrono::steady_clock::time_point entered);
    Overlay& overlay() { return overlay_; }
    void attach(std::shared_ptr<const void> state) { attached_ = std::move(state); }
    const DatabasePtr& database() const { return database_; }

  private:
    static constexpr std::string_view kClockKey = "storage/clock";

    Result<void> check_format();
    Result<void> make_new_store();

    void sync_loop();
    rocksdb::Status flush_log(bool sync);
    /// After the log covers `target`: reads, oplog, watermark, waiters.
    void publish(const View& target);
    /// Without running anybody's code; the syncer's next round does.
    void publish_quietly(const View& target);
    void show(const View& target);
    void help_with_backlog();
    /// `log_broken`: what was applied and not synced cannot become durable before a resume.
    void stop_writes(const rocksdb::Status& status, std::string_view what, bool log_broken);
    void background_error(const rocksdb::Status& status);

    void request_trim_if_due();

    void keep_loop();
    void try_resume();
    void give_up_if_fatal(const rocksdb::Status& status);
    void relieve_memory();
    Result<CommitPosition> write_batch(Overlay& changes);
    Result<void> check_room(const Overlay& changes);

    // constant after start()
    const Options options_;
    const DatabasePtr database_;
    const DatabaseReader latest_;
    std::array<std::uint8_t, 8> store_id_{};

    // own synchronization
    OplogLog oplog_;
    Watermark watermark_;
    std::atomic<std::uint64_t> clock_{0};  ///< newest time handed out or adopted
    std::atomic<std::uint64_t> syncs_{0};
    std::atomic<std::uint64_t> resume_attempts_{0};
    std::mutex publish_mutex_;  ///< one publisher at a time
    std::mutex trim_mutex_;

    std::mutex apply_mutex_;  // the section, and:
    Overlay overlay_;
    std::shared_ptr<const void> attached_;  ///< with the commit of this section; null: as before
    rocksdb::WriteBatch batch_;
    std::uint64_t clock_mark_ = 0;         ///< persisted: no time above it was handed out
    std::uint64_t bytes_since_check_ = 0;  ///< memory mode

    mutable std::mutex state_mutex_;  // everything below
    std::condition_variable syncer_wakes_;
    std::condition_variable keeper_wakes_;
    View applied_;  ///< taken with each commit; never let go under this lock (RocksDB's is above)
    CommitPosition synced_;  ///< strict: same as durable; periodic: what the device has
    std::uint64_t applied_bytes_ = 0;
    std::uint64_t synced_bytes_ = 0;
    bool writing_ = false;  ///< a commit that was not refused is on its way
    bool syncer_sleeps_ = false;
    bool closing_ = false;   ///< no new commits
    bool stopping_ = false;  ///< threads end
    std::optional<Error> write_error_;
    bool write_error_is_echo_ = false;  ///< its text names no cause yet
    bool log_broken_ = false;           ///< the syncer rests
    bool needs_restart_ = false;
    bool failure_untold_ = false;  ///< the keeper has to run the waiters' errors
    bool resume_wanted_ = false;   ///< RocksDB's background work stopped, writes go on
    bool trim_due_ = false;
    bool memory_full_ = false;
    std::uint64_t commits_ = 0;
    std::uint64_t bytes_written_ = 0;
    std::uint64_t apply_us_max_ = 0;

    mutable std::mutex view_mutex_;
    View published_;  // guarded by view_mutex_; never let go under it

    std::thread syncer_;
    std::thread keeper_;
    std::mutex close_mutex_;
    bool started_ = false;  ///< guarded by close_mutex_
    bool closed_ = false;   ///< guarded by close_mutex_
};

}  // namespace angelia::engine::storage
