// Watching with raw aggregate and getMore commands, one thread and one connection for each stream.
// Why not the driver's change stream: docs/decisions/0011-watching-with-raw-commands.md. The rules
// about tokens are in watch_position.h, free of I/O.
#pragma once

#include "store_mongo/client_pool.h"
#include "store_mongo/mongo_store.h"
#include "store_mongo/watch_position.h"

#include <condition_variable>
#include <thread>

namespace angelia::store::mongo {

/// One stream: opens, reads, reopens until closed. Threads: safe; callbacks run on the loop's own
/// thread.
class WatchLoop : public std::enable_shared_from_this<WatchLoop> {
  public:
    WatchLoop(std::shared_ptr<ClientPool> pool, std::shared_ptr<Learned> learned,
              const Clock& clock, LogFunction log, milliseconds reply_grace, WatchRequest request,
              WatchEvents events);

    /// Errors: OperationFailed (no thread to be had).
    Result<void> start();
    /// No callback runs after it. Wakes the thread: a read that waits at the server is ended by
    /// killing its cursor from another connection. Returns when the thread has ended, or after a
    /// second: a thread that a stalled server holds ends at its read deadline.
    void close();
    static void close_all(const std::vector<std::weak_ptr<WatchLoop>>& loops);
    bool live() const;

  private:
    void run();
    /// One established stream until it breaks.
    Result<void> follow();
    Result<bson::Document> open_stream(mongoc_client_t* client, const bson_t* options);
    Result<bool> take_batch(bson::DocumentView reply, std::string_view batch_field);
    void kill_cursor(mongoc_client_t* client, const bson_t* options);
    bool closing() const;
    void pause(milliseconds delay);
    void begin_close();
    void wait_ended(SteadyTime deadline);
    template <class Callback, class... Args>
    void tell(const Callback& callback, Args&&... args);

    // constant after construction
    const std::shared_ptr<ClientPool> pool_;
    const std::shared_ptr<Learned> learned_;
    const Clock& clock_;
    const LogFunction log_;
    const milliseconds reply_grace_;
    const WatchRequest request_;
    const WatchEvents events_;
    // only the loop's thread
    WatchPosition position_;
    std::thread::id thread_id_;
    // held while a callback runs, so that close() can wait for it; recursive: close() inside a
    // callback
    std::recursive_mutex running_;
    // guarded by mutex_
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool closing_ = false;
    bool ended_ = false;
    bool up_ = false;
    SteadyTime last_reply_;
    std::int64_t cursor_ = 0;  ///< open at the server
};

class WatchHandle final : public Watch {
  public:
    explicit WatchHandle(std::shared_ptr<WatchLoop> loop) : loop_(std::move(loop)) {}
    ~WatchHandle() override { loop_->close(); }
    void close() override { loop_->close(); }
    bool live() const override { return loop_->live(); }

  private:
    std::shared_ptr<WatchLoop> loop_;  ///< shared with its thread
};

}  // namespace angelia::store::mongo
