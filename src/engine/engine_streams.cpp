// Change streams: opened for readers in this process, or behind cursors whose getMore waits without
// a thread.
#include "engine/collection/records.h"
#include "engine/engine_impl.h"

#include <fmt/format.h>

#include <atomic>

namespace angelia::engine {

namespace {

constexpr milliseconds kStreamWaitDefault{1000};  // contract 5.1
constexpr std::size_t kStreamEventsMax = 100'000;

std::string shown_stream_namespace(const WatchSpec& spec) {
    switch (spec.scope) {
        case WatchSpec::Scope::Collection:
            return spec.ns.full();
        case WatchSpec::Scope::Database:
            return spec.ns.db + ".$cmd.aggregate";
        case WatchSpec::Scope::Deployment:
            return "admin.$cmd.aggregate";
    }
    return spec.ns.full();
}

}  // namespace

/// A getMore that waits for the first event. It is held by what may end it (the stream's wake-up,
/// the timer, the cursor's kill) and by nothing else. Threads: safe; finishes once.
class EngineImpl::StreamWait : public std::enable_shared_from_this<EngineImpl::StreamWait> {
  public:
    StreamWait(EngineImpl& engine, CursorPtr cursor, std::size_t events_max, SteadyTime end,
               std::function<bool(std::function<void()>)> run_on,
               std::function<void(Result<CursorBatch>)> done)
        : engine_(engine),
          cursor_(std::move(cursor)),
          events_max_(events_max),
          end_(end),
          run_on_(std::move(run_on)),
          done_(std::move(done)) {}

    void begin(milliseconds wait) {
        // First of all: set any later it could land on the next getMore of this cursor.
        engine_.cursors_.set_on_kill(
            cursor_, [self = shared_from_this()](Error error) { self->finish(std::move(error)); });
        run_steps();
        std::lock_guard lock(mutex_);
        if (finished_) return;
        timer_ = engine_.timers_.post_after(wait, [self = shared_from_this()] {
            self->timed_out_ = true;
            self->schedule();
        });
    }

  private:
    /// Wake-up and timer may come together: one step at a time, and none is lost.
    void run_steps() {
        if (steps_wanted_.fetch_add(1) != 0) return;
        int wanted = 1;
        do {
            step();
            // What was asked for while the step ran is answered by one more step.
        } while ((wanted = steps_wanted_.fetch_sub(wanted) - wanted) != 0);
    }
    void schedule() {
        const auto steps = [self = shared_from_this()] { self->run_steps(); };
        if (!run_on_ || !run_on_(steps)) engine_.workers_.post(steps);
    }
    /// Reads what is there; answers, or waits for more.
    void step() {
        if (finished_) return;
        const bool over = timed_out_ || engine_.core_.clock().steady_now() >= end_;
        auto batch = cursor_->stream->poll(events_max_, kBatchReplyBytesMax);
        if (!batch) return died(std::move(batch).error());
        if (!batch->events.empty() || batch->closed || over) return finish(std::move(*batch));
        cursor_->stream->wake_once([self = shared_from_this()] { self->schedule(); });
    }
    bool begin_finish() {
        if (finished_.exchange(true)) return false;
        std::optional<Executor::TimerId> timer;
        {
            std::lock_guard lock(mutex_);
            timer = timer_;
        }
        if (timer) engine_.timers_.cancel(*timer);
        return true;
    }
    void finish(ChangeStream::Batch batch) {
        if (!begin_finish()) return;
        cursor_->stream->wake_once({});
        CursorBatch reply;
        reply.ns = cursor_->shown_ns;
        reply.documents = std::move(batch.events);
        reply.post_batch_resume_token = std::move(batch.resume_token);
        reply.cursor_id = batch.closed ? 0 : cursor_->id;
        reply.operation_time = engine_.operation_time();
        const bool alive = engine_.cursors_.check_in(cursor_);
        if (batch.closed) {
            engine_.cursors_.remove(cursor_);
            cursor_->stream->close();
        }
        if (!alive) return done_(Error(ErrorCode::CursorKilled, "cursor was killed"));
        done_(std::move(reply));
    }
    /// The stream cannot go on, and says why each time it is asked: the cursor stays until it is
    /// killed or idle for too long, so that a client that asks again is not told that there never
    /// was such a cursor.
    void died(Error error) {
        if (!begin_finish()) return;
        engine_.cursors_.check_in(cursor_);
        done_(std::move(error));
    }
    /// The cursor was killed.
    void finish(Error error) {
        if (!begin_finish()) return;
        engine_.cursors_.check_in(cursor_);
        engine_.cursors_.remove(cursor_);
        cursor_->stream->close();
        done_(std::move(error));
    }

    EngineImpl& engine_;
    const CursorPtr cursor_;
    const std::size_t events_max_;
    const SteadyTime end_;
    const std::function<bool(std::function<void()>)> run_on_;
    const std::function<void(Result<CursorBatch>)> done_;
    std::atomic<bool> finished_{false};
    std::atomic<bool> timed_out_{false};
    std::atomic<int> steps_wanted_{0};
    std::mutex mutex_;
    std::optional<Executor::TimerId> timer_;  // guarded by mutex_
};

Result<std::shared_ptr<ChangeStream>> EngineImpl::watch(const WatchSpec& spec) {
    ANGELIA_TRY(core_.check_open());
    return streams_->open(spec);
}

Result<CursorBatch> EngineImpl::open_change_stream_cursor(const WatchSpec& spec,
                                                          std::int64_t batch_size,
                                                          bson::Document lsid) {
    ANGELIA_TRY(core_.check_open());
    if (batch_size < 0)
        return Error(ErrorCode::Location51024,
                     fmt::format("BSON field 'batchSize' value must be >= 0, actual value '{}'",
                                 batch_size));
    ANGELIA_TRY_ASSIGN(auto stream, streams_->open(spec));
    auto cursor = std::make_shared<Cursor>();
    cursor->ns = spec.ns;
    cursor->shown_ns = shown_stream_namespace(spec);
    cursor->lsid = std::move(lsid);
    cursor->stream = stream;
    CursorBatch reply;
    reply.ns = cursor->shown_ns;
    // Nothing is read yet: the first batch is empty and its token says where the stream begins.
    ANGELIA_TRY_ASSIGN(auto batch, stream->poll(0, kBatchReplyBytesMax));
    reply.post_batch_resume_token = std::move(batch.resume_token);
    reply.operation_time = operation_time();
    ANGELIA_TRY_ASSIGN(reply.cursor_id, cursors_.add(std::move(cursor)));
    return reply;
}

void EngineImpl::get_more_stream(CursorPtr cursor, const GetMoreSpec& spec,
                                 std::function<void(Result<CursorBatch>)> done) {
    const auto wait = spec.max_wait.value_or(kStreamWaitDefault);
    const auto events_max =
        spec.batch_size > 0 ? static_cast<std::size_t>(spec.batch_size) : kStreamEventsMax;
    const auto end = core_.clock().steady_now() + wait;
    auto waiting = std::make_shared<StreamWait>(*this, std::move(cursor), events_max, end,
                                                spec.run_on, std::move(done));
    waiting->begin(wait);
}

/// fullDocument: "updateLookup": what the document is now, for reads.
Result<std::optional<bson::Document>> EngineImpl::look_up(const OplogEntry& entry) {
    std::optional<bson::Document> document;
    const auto view = current_view(core_);
    auto collection = view.find({std::string(entry.db()), std::string(entry.collection())});
    if (!collection) return document;
    const auto seen = core_.storage->at(view.snapshot);
    const auto& reader = *seen;
    ANGELIA_TRY_ASSIGN(auto record, find_record_by_id(reader, *collection, entry.id()));
    if (!record) return document;
    std::string value;
    ANGELIA_TRY_ASSIGN(bool there, read_record(reader, collection->id, *record, value));
    if (there) document = bson::Document(bson::DocumentView(storage::record_document(value)));
    return document;
}

}  // namespace angelia::engine
