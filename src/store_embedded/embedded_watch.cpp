#include "store_embedded/embedded_watch.h"

#include <angelia/bson/builder.h>

namespace angelia::store_embedded {
namespace {

constexpr std::size_t kBatchBytesMax = std::size_t{16} << 20;
constexpr milliseconds kRetryPause{1'000};
constexpr milliseconds kLiveGrace{10'000};

bool token_is_lost(const Error& error) {
    return error.code == ErrorCode::ChangeStreamHistoryLost ||
           error.code == ErrorCode::ChangeStreamFatalError ||
           error.code == ErrorCode::InvalidResumeToken;
}

}  // namespace

EmbeddedWatch::EmbeddedWatch(std::shared_ptr<engine::Engine> engine, std::shared_ptr<Executor> lane,
                             store::WatchRequest request, store::WatchEvents events)
    : engine_(std::move(engine)),
      lane_(std::move(lane)),
      request_(std::move(request)),
      events_(std::move(events)),
      in_memory_(engine_->storage().memory()),
      last_reply_(now()) {}

Result<void> EmbeddedWatch::open(From from) {
    engine::WatchSpec spec;
    spec.ns = {request_.collection.db, request_.collection.collection};
    spec.stages = request_.stages.copy();
    bson::Builder options;
    if (request_.update_lookup) options.add("fullDocument", "updateLookup");
    if (from == From::Token)
        options.add("startAfter",
                    token_);  // as resumeAfter, and takes the token of an invalidate too
    if (from == From::Time) options.add("startAtOperationTime", *request_.start_at);
    spec.options = options.take();
    ANGELIA_TRY_ASSIGN(stream_, engine_->watch(spec));
    // Nothing is read: the token says where the stream begins.
    ANGELIA_TRY_ASSIGN(engine::ChangeStream::Batch first, stream_->poll(0, kBatchBytesMax));
    token_ = std::move(first.resume_token);
    gap_ = from == From::Now;
    return {};
}

Result<void> EmbeddedWatch::start() {
    const std::lock_guard<std::recursive_mutex> running(running_);
    if (request_.resume_after) token_ = request_.resume_after->copy();
    auto opened = open(request_.resume_after ? From::Token
                       : request_.start_at   ? From::Time
                                             : From::Now);
    if (opened) {
        post(&EmbeddedWatch::begin);
        return {};
    }
    if (opened.error().code != ErrorCode::ChangeStreamHistoryLost) return opened;
    lane_->post([self = shared_from_this(), error = std::move(opened).error()] {
        const std::lock_guard<std::recursive_mutex> held(self->running_);
        self->fail(error);
    });
    return {};
}

void EmbeddedWatch::post(void (EmbeddedWatch::*work)()) {
    lane_->post([self = shared_from_this(), work] {
        const std::lock_guard<std::recursive_mutex> running(self->running_);
        if (!self->closed_) (self.get()->*work)();
    });
}

void EmbeddedWatch::post_after(milliseconds delay, void (EmbeddedWatch::*work)()) {
    lane_->post_after(delay, [weak = weak_from_this(), work] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        const std::lock_guard<std::recursive_mutex> running(self->running_);
        if (!self->closed_) (self.get()->*work)();
    });
}

// A stream is open: tell so, and begin to read.
void EmbeddedWatch::begin() {
    up_ = true;
    last_reply_ = now();
    events_.on_started(gap_);
    if (closed_) return;
    hand_over({}, token_.copy());
    arm_heartbeat();
    run_steps(true);
}

void EmbeddedWatch::reopen() {
    const From from = token_dead_ || token_.empty() ? From::Now : From::Token;
    auto opened = open(from);
    if (!opened) return fail(std::move(opened).error());
    token_dead_ = false;
    begin();
}

// On the thread that advanced the durable mark. In memory that is the writer's.
void EmbeddedWatch::woken() {
    if (in_memory_) {
        run_steps(false);
    } else {
        post(&EmbeddedWatch::run_on_lane);
    }
}

void EmbeddedWatch::run_on_lane() { run_steps(true); }

// One thread reads at a time; who comes meanwhile leaves word. A writer reads one batch, if nobody
// holds it up; the lane does the rest, batch by batch, so that other watches get their turn.
void EmbeddedWatch::run_steps(bool on_lane) {
    if (steps_wanted_.fetch_add(1) != 0) return;
    int wanted = 1;
    do {
        bool more = false;
        {
            std::unique_lock<std::recursive_mutex> running(running_, std::defer_lock);
            if (on_lane) {
                running.lock();
            } else if (!running.try_lock()) {
                more = true;
            }
            if (running.owns_lock()) more = !closed_ && step();
        }
        if (more) {
            steps_wanted_ = 0;
            return post(&EmbeddedWatch::run_on_lane);
        }
    } while ((wanted = steps_wanted_.fetch_sub(wanted) - wanted) != 0);
}

// Hands one batch over. True: there may be more at once; else the stream wakes us.
bool EmbeddedWatch::step() {
    if (stream_ == nullptr) return false;
    auto batch = stream_->poll(static_cast<std::size_t>(request_.batch_size), kBatchBytesMax);
    if (!batch) {
        fail(std::move(batch).error());
        return false;
    }
    const bool full = batch->events.size() == static_cast<std::size_t>(request_.batch_size);
    const bool over = batch->closed;
    if (!batch->events.empty() || heartbeat_due_)
        hand_over(std::move(batch->events), batch->resume_token);
    heartbeat_due_ = false;
    if (closed_) return false;
    token_ = std::move(batch->resume_token);
    if (over) {
        // The collection was dropped: the stream ends, the watch goes on behind it.
        stream_ = nullptr;
        post(&EmbeddedWatch::reopen);
        return false;
    }
    if (full) return true;
    stream_->wake_once([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->woken();
    });
    return false;
}

void EmbeddedWatch::hand_over(std::vector<bson::Document> events, const bson::Document& token) {
    last_reply_ = now();
    events_.on_batch(std::move(events), token);
}

// One timer at a time: when it fires too early, because a batch came meanwhile, it is set again for
// the rest.
void EmbeddedWatch::arm_heartbeat() {
    if (heartbeat_armed_) return;
    heartbeat_armed_ = true;
    const auto silence = std::chrono::duration_cast<milliseconds>(now() - last_reply_.load());
    post_after(std::max(milliseconds(1), request_.max_wait - silence), &EmbeddedWatch::beat);
}

void EmbeddedWatch::beat() {
    heartbeat_armed_ = false;
    if (stream_ == nullptr) return;  // begin() sets it again
    heartbeat_due_ = now() - last_reply_.load() >= request_.max_wait;
    if (heartbeat_due_)
        run_steps(true);  // reading nothing moves the token to where the stream has looked
    if (!closed_) arm_heartbeat();
}

void EmbeddedWatch::fail(Error error) {
    if (closed_) return;
    up_ = false;
    stream_ = nullptr;
    token_dead_ = token_is_lost(error);
    const bool over = error.code == ErrorCode::ShutdownInProgress;
    events_.on_error(error, over);
    if (!over && !closed_) post_after(kRetryPause, &EmbeddedWatch::reopen);
}

void EmbeddedWatch::close() {
    closed_ = true;
    const std::lock_guard<std::recursive_mutex> wait_for_callback(running_);
    if (stream_ != nullptr) {
        stream_->wake_once({});
        stream_->close();
    }
}

bool EmbeddedWatch::live() const {
    return up_ && !closed_ && now() - last_reply_.load() <= request_.max_wait + kLiveGrace;
}

}  // namespace angelia::store_embedded
