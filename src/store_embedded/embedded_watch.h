// A watch over the engine's change stream, without a thread of its own: what is ready is read when
// the stream says so.
#pragma once

#include "engine/changes/change_stream.h"
#include "engine/engine.h"

#include <angelia/base/executor.h>
#include <angelia/store/store.h>

#include <atomic>
#include <memory>
#include <mutex>

namespace angelia::store_embedded {

/// Callbacks run on the lane. Over a store in memory also inside the store call of the thread that
/// wrote, which saves a hand-over: that thread reads at most one batch, the lane the rest. Threads:
/// safe.
class EmbeddedWatch : public std::enable_shared_from_this<EmbeddedWatch> {
  public:
    EmbeddedWatch(std::shared_ptr<engine::Engine> engine, std::shared_ptr<Executor> lane,
                  store::WatchRequest request, store::WatchEvents events);

    /// Errors: those of Engine::watch, except ChangeStreamHistoryLost, which on_error and a fresh
    /// start report.
    Result<void> start();
    void close();
    bool live() const;

  private:
    enum class From { Token, Time, Now };
    Result<void> open(From from);
    void post(void (EmbeddedWatch::*work)());
    void post_after(milliseconds delay, void (EmbeddedWatch::*work)());
    void woken();
    void run_on_lane();
    void run_steps(bool on_lane);
    bool step();
    void begin();
    void reopen();
    void beat();
    void arm_heartbeat();
    void fail(Error error);
    void hand_over(std::vector<bson::Document> events, const bson::Document& token);
    SteadyTime now() const { return engine_->options().storage.clock->steady_now(); }

    // constant after construction
    const std::shared_ptr<engine::Engine> engine_;  ///< shared with the store
    const std::shared_ptr<Executor>
        lane_;  ///< shared with the store: a wake-up may be on its way when the store closes
    const store::WatchRequest request_;
    const store::WatchEvents events_;
    const bool in_memory_;
    // own synchronisation
    std::atomic<bool> closed_{false};
    std::atomic<bool> up_{false};
    std::atomic<SteadyTime> last_reply_;
    std::atomic<int> steps_wanted_{0};
    // held while the stream is read and callbacks run; recursive: close() inside a callback
    std::recursive_mutex running_;
    std::shared_ptr<engine::ChangeStream> stream_;
    bson::Document token_;
    bool gap_ = false;
    bool token_dead_ = false;
    bool heartbeat_armed_ = false;
    bool heartbeat_due_ = false;
};

class EmbeddedWatchHandle final : public store::Watch {
  public:
    explicit EmbeddedWatchHandle(std::shared_ptr<EmbeddedWatch> watch) : watch_(std::move(watch)) {}
    ~EmbeddedWatchHandle() override { watch_->close(); }
    void close() override { watch_->close(); }
    bool live() const override { return watch_->live(); }

  private:
    std::shared_ptr<EmbeddedWatch> watch_;  ///< shared with tasks on their way
};

}  // namespace angelia::store_embedded
