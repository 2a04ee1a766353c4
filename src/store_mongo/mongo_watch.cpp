#include "store_mongo/mongo_watch.h"

#include "store_mongo/driver_error.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

#include <system_error>

namespace angelia::store::mongo {
namespace {

constexpr milliseconds kWatchCloseWait{1'000};
constexpr milliseconds kKillTimeout{500};

bson::Document cursor_of(bson::DocumentView reply) {
    return bson::Document(reply["cursor"].get_document().value_or(bson::DocumentView()));
}

}  // namespace

WatchLoop::WatchLoop(std::shared_ptr<ClientPool> pool, std::shared_ptr<Learned> learned,
                     const Clock& clock, LogFunction log, milliseconds reply_grace,
                     WatchRequest request, WatchEvents events)
    : pool_(std::move(pool)),
      learned_(std::move(learned)),
      clock_(clock),
      log_(std::move(log)),
      reply_grace_(reply_grace),
      request_(std::move(request)),
      events_(std::move(events)),
      position_(request_),
      last_reply_(clock.steady_now()) {}

Result<void> WatchLoop::start() {
    try {
        std::thread thread([self = shared_from_this()] { self->run(); });
        thread.detach();  // it holds the loop alive and close() waits for `ended_`; a stalled
                          // server must not hold the closer
    } catch (const std::system_error& e) {
        return {ErrorCode::OperationFailed, fmt::format("no thread for a watch on {}: {}",
                                                        request_.collection.full(), e.what())};
    }
    return {};
}

bool WatchLoop::closing() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return closing_;
}

void WatchLoop::pause(milliseconds delay) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, delay, [this] { return closing_; });
}

template <class Callback, class... Args>
void WatchLoop::tell(const Callback& callback, Args&&... args) {
    const std::lock_guard<std::recursive_mutex> running(running_);
    if (!closing()) callback(std::forward<Args>(args)...);
}

void WatchLoop::run() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        thread_id_ = std::this_thread::get_id();
    }
    while (!closing()) {
        const Result<void> over = follow();
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            up_ = false;
            cursor_ = 0;
        }
        if (closing() || over) continue;
        const WatchPosition::Verdict verdict = position_.failed(over.error());
        if (verdict.start_after_unknown) {
            if (learned_->start_after.exchange(false)) {
                log_(LogLevel::Info, fmt::format("the server does not know startAfter: streams go "
                                                 "on with resumeAfter collection={}",
                                                 request_.collection.full()));
            }
            continue;
        }
        tell(events_.on_error, over.error(), verdict.fatal);
        if (verdict.fatal) break;
        pause(verdict.pause);
    }
    log_(LogLevel::Debug, fmt::format("the watch ended collection={}", request_.collection.full()));
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
}

Result<bson::Document> WatchLoop::open_stream(mongoc_client_t* client, const bson_t* options) {
    bson::Builder b;
    b.add("aggregate", request_.collection.collection).open_array("pipeline");
    b.push(position_.stage(request_.update_lookup, learned_->start_after));
    for (const auto& [key, stage] : request_.stages.view()) b.push(stage);
    b.close().open("cursor").add("batchSize", request_.batch_size).close();
    return run_command(client, request_.collection.db, b.take(), CommandKind::Read, options);
}

// True while the cursor is open at the server.
Result<bool> WatchLoop::take_batch(bson::DocumentView reply, std::string_view batch_field) {
    const bson::Document cursor = cursor_of(reply);
    const auto id = cursor["id"].to_int64();
    const auto batch = cursor[batch_field].get_array();
    if (!id || !batch)
        return {ErrorCode::ProtocolError,
                fmt::format("a reply to a stream on {} has no cursor.id or no cursor.{}",
                            request_.collection.full(), batch_field)};
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        cursor_ = *id;
        last_reply_ = clock_.steady_now();
    }
    std::vector<bson::Document> events;
    for (const auto& [key, event] : *batch) {
        const auto document = event.get_document();
        if (!document)
            return {ErrorCode::ProtocolError,
                    fmt::format("an event of a stream on {} is no document",
                                request_.collection.full())};
        events.emplace_back(*document);
    }
    const bson::Document last = events.empty() ? bson::Document() : events.back().copy();
    const bson::Document token = position_.token_of(cursor, last);
    tell(events_.on_batch, std::move(events), token);
    // A batch whose owner was closed meanwhile was not handed over.
    if (!closing()) position_.handed_over(cursor, last);
    return *id != 0;
}

Result<void> WatchLoop::follow() {
    ANGELIA_TRY_ASSIGN(const ClientPtr client, pool_->single(request_.max_wait + reply_grace_));
    bson_error_t error{};
    const ServerDescriptionPtr primary(
        mongoc_client_select_server(client.get(), true, nullptr, &error));
    if (primary == nullptr) return from_driver(error);
    // aggregate and getMore must name one session and go to one server; servers without sessions
    // get none.
    const SessionOptionsPtr session_options(mongoc_session_opts_new());
    mongoc_session_opts_set_causal_consistency(session_options.get(), false);
    const SessionPtr session(
        mongoc_client_start_session(client.get(), session_options.get(), &error));
    ReplyBson options;
    bson_t* appended = options.out();
    bson_init(appended);
    if (session != nullptr && !mongoc_client_session_append(session.get(), appended, &error))
        return from_driver(error);
    BSON_APPEND_INT32(appended, "serverId",
                      static_cast<std::int32_t>(mongoc_server_description_id(primary.get())));

    const bool gap = position_.gap();
    ANGELIA_TRY_ASSIGN(const bson::Document opened, open_stream(client.get(), options.get()));
    position_.established(opened);
    position_.reset_pause();
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        up_ = true;
        last_reply_ = clock_.steady_now();
    }
    tell(events_.on_started, gap);
    ANGELIA_TRY_ASSIGN(bool open, take_batch(opened, "firstBatch"));
    while (open && !closing()) {
        std::int64_t cursor = 0;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            cursor = cursor_;
        }
        const bson::Document get_more = bson::make(
            "getMore", cursor, "collection", request_.collection.collection, "batchSize",
            request_.batch_size, "maxTimeMS", static_cast<std::int64_t>(request_.max_wait.count()));
        ANGELIA_TRY_ASSIGN(const bson::Document reply,
                           run_command(client.get(), request_.collection.db, get_more,
                                       CommandKind::Read, options.get()));
        ANGELIA_TRY_ASSIGN(open, take_batch(reply, "nextBatch"));
    }
    if (closing() && open) kill_cursor(client.get(), options.get());
    return {};
}

void WatchLoop::kill_cursor(mongoc_client_t* client, const bson_t* options) {
    std::int64_t cursor = 0;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        cursor = std::exchange(cursor_, 0);
    }
    if (cursor == 0) return;
    const auto done = run_command(
        client, request_.collection.db,
        bson::make("killCursors", request_.collection.collection, "cursors", bson::array(cursor)),
        CommandKind::Read, options);
    // The server ends an idle cursor by itself; nobody waits for this one.
    if (!done)
        log_(LogLevel::Debug, fmt::format("a stream's cursor was not closed collection={} error={}",
                                          request_.collection.full(), done.error().message));
}

void WatchLoop::begin_close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_all();
}

void WatchLoop::wait_ended(SteadyTime deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (thread_id_ == std::this_thread::get_id()) return;
    changed_.wait_until(lock, deadline, [this] { return ended_; });
}

void WatchLoop::close() { close_all({weak_from_this()}); }

void WatchLoop::close_all(const std::vector<std::weak_ptr<WatchLoop>>& weak_loops) {
    std::vector<std::shared_ptr<WatchLoop>> loops;
    for (const auto& weak : weak_loops) {
        if (auto loop = weak.lock()) loops.push_back(std::move(loop));
    }
    for (const auto& loop : loops) loop->begin_close();
    ClientPtr killer;  // one connection for all; made only when a thread waits at the server
    for (const auto& loop : loops) {
        const std::lock_guard<std::recursive_mutex> wait_for_callback(loop->running_);
        std::int64_t cursor = 0;
        {
            const std::lock_guard<std::mutex> lock(loop->mutex_);
            if (loop->thread_id_ != std::this_thread::get_id() && !loop->ended_)
                cursor = std::exchange(loop->cursor_, 0);
        }
        if (cursor == 0) continue;
        if (killer == nullptr) {
            auto made = loop->pool_->single(kKillTimeout);
            if (!made) continue;
            killer = *std::move(made);
        }
        const auto killed =
            run_command(killer.get(), loop->request_.collection.db,
                        bson::make("killCursors", loop->request_.collection.collection, "cursors",
                                   bson::array(cursor)),
                        CommandKind::Read);
        if (!killed)
            loop->log_(LogLevel::Debug,
                       fmt::format("a stream's cursor was not closed collection={} error={}",
                                   loop->request_.collection.full(), killed.error().message));
    }
    const SteadyTime deadline =
        std::chrono::time_point_cast<microseconds>(std::chrono::steady_clock::now()) +
        kWatchCloseWait;
    for (const auto& loop : loops) loop->wait_ended(deadline);
}

bool WatchLoop::live() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return up_ && !closing_ &&
           clock_.steady_now() - last_reply_ <= request_.max_wait + reply_grace_;
}

}  // namespace angelia::store::mongo
