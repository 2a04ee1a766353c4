#include "store/testing/simulated_state.h"

#include <angelia/bson/builder.h>

namespace angelia::store::testing {
namespace {

Error history_lost() {
    return {ErrorCode::ChangeStreamHistoryLost,
            "Resume of change stream was not possible, as the resume point may no longer be in the "
            "oplog."};
}

}  // namespace

SimulatedWatch::SimulatedWatch(std::shared_ptr<SimulatedServer::State> server,
                               std::shared_ptr<SimulatedStore::Client> client, WatchRequest request,
                               WatchEvents events, query::Matcher match)
    : server_(std::move(server)),
      client_(std::move(client)),
      request_(std::move(request)),
      events_(std::move(events)),
      match_(std::move(match)) {}

void SimulatedWatch::post(std::function<void()> callback) {
    client_->executor->post([self = shared_from_this(), callback = std::move(callback)] {
        const std::lock_guard<std::recursive_mutex> running(self->running_);
        {
            const std::lock_guard<std::mutex> lock(self->server_->mutex);
            if (self->client_->crashed || self->client_->closed) return;
        }
        if (!self->closed_) callback();
    });
}

void SimulatedWatch::start() {
    last_reply_ = server_->clock.steady_now();
    if (!server_->change_streams) {
        lost_ = true;
        post([this] {
            events_.on_error({ErrorCode::Location40573,
                              "The $changeStream stage is only supported on replica sets"},
                             true);
        });
        return;
    }
    bool fresh = true;
    position_ = server_->last_time;
    if (request_.start_at) {
        position_ = bson::Timestamp::from_uint64(request_.start_at->as_uint64() - 1);
        fresh = false;
    }
    if (request_.resume_after) {
        const auto time = time_of(*request_.resume_after);
        position_ = time.value_or(bson::Timestamp{});
        fresh = false;
    }
    if (client_->streams_lost) {
        lost_ = true;
        post([this, error = *client_->streams_lost] { events_.on_error(error, false); });
        return;
    }
    if (position_ < server_->forgotten) {
        position_ = server_->last_time;
        fresh = true;
        post([this] { events_.on_error(history_lost(), false); });
    }
    post([this, fresh, token = std::make_shared<bson::Document>(token_of(position_))] {
        events_.on_started(fresh);
        if (!closed_) events_.on_batch({}, *token);
    });
    arm_heartbeat();
    wake();
}

void SimulatedWatch::wake() {
    if (lost_ || pump_posted_ || closed_) return;
    pump_posted_ = true;
    auto task = [self = shared_from_this(), epoch = epoch_] {
        self->post([watch = self.get(), epoch] {
            {
                const std::lock_guard<std::mutex> lock(watch->server_->mutex);
                if (watch->epoch_ != epoch) return;
            }
            watch->pump();
        });
    };
    if (server_->event_delay > microseconds::zero()) {
        client_->executor->post_after(server_->event_delay, std::move(task));
    } else {
        task();
    }
}

bool SimulatedWatch::collect(std::vector<bson::Document>& out) {
    const auto& log = server_->events;
    auto at =
        std::upper_bound(log.begin(), log.end(), position_,
                         [](bson::Timestamp t, const auto& event) { return t < event->time; });
    for (; at != log.end(); ++at) {
        if (out.size() >= static_cast<std::size_t>(request_.batch_size)) return true;
        const SimulatedEvent& event = **at;
        position_ = event.time;
        if (event.collection != request_.collection) continue;
        bson::Builder b;
        b.add("_id", token_of(event.time)).add_all(event.body);
        if (event.is_update && request_.update_lookup) {
            const SharedDocument now =
                server_->document(event.collection, event.document_id.view());
            if (now != nullptr) {
                b.add("fullDocument", *now);
            } else {
                b.add("fullDocument", bson::Null{});
            }
        }
        bson::Document shown = b.take();
        if (match_.matches(shown)) out.push_back(std::move(shown));
    }
    position_ = std::max(position_, server_->last_time);
    return false;
}

void SimulatedWatch::pump() {
    std::vector<bson::Document> batch;
    bson::Document token;
    {
        const std::lock_guard<std::mutex> lock(server_->mutex);
        pump_posted_ = false;
        if (lost_) return;
        if (position_ < server_->forgotten) {
            position_ = server_->last_time;
            post([this] { events_.on_error(history_lost(), false); });
            post([this] { events_.on_started(true); });
        }
        const bool more = collect(batch);
        if (batch.empty()) return;
        token = token_of(position_);
        last_reply_ = server_->clock.steady_now();
        arm_heartbeat();
        if (more) wake();
    }
    events_.on_batch(std::move(batch), token);
}

// One timer at a time: when it fires too early, because a reply came meanwhile, it is set again for
// the rest.
void SimulatedWatch::arm_heartbeat() {
    if (heartbeat_armed_) return;
    heartbeat_armed_ = true;
    const auto silence =
        std::chrono::duration_cast<microseconds>(server_->clock.steady_now() - last_reply_);
    client_->executor->post_after(request_.max_wait - silence, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->post([watch = self.get()] { watch->beat(); });
    });
}

void SimulatedWatch::beat() {
    bson::Document token;
    {
        const std::lock_guard<std::mutex> lock(server_->mutex);
        heartbeat_armed_ = false;
        if (lost_) return;
        if (server_->clock.steady_now() - last_reply_ < request_.max_wait) return arm_heartbeat();
        token = token_of(position_);
        last_reply_ = server_->clock.steady_now();
        arm_heartbeat();
    }
    events_.on_batch({}, token);
}

void SimulatedWatch::lose(const Error& error) {
    if (lost_ || closed_) return;
    lost_ = true;
    pump_posted_ = false;
    ++epoch_;
    post([this, error] { events_.on_error(error, false); });
}

void SimulatedWatch::restore(bool drop_events) {
    if (!lost_ || closed_) return;
    lost_ = false;
    const bool gap = drop_events || position_ < server_->forgotten;
    if (gap) position_ = server_->last_time;
    last_reply_ = server_->clock.steady_now();
    post([this, gap] { events_.on_started(gap); });
    arm_heartbeat();
    wake();
}

void SimulatedWatch::close() {
    closed_ = true;
    const std::lock_guard<std::recursive_mutex> wait_for_callback(running_);
}

bool SimulatedWatch::live() const {
    const std::lock_guard<std::mutex> lock(server_->mutex);
    const auto silence = server_->clock.steady_now() - last_reply_;
    return !closed_ && !lost_ && !client_->crashed && !client_->closed &&
           silence <= request_.max_wait + std::chrono::seconds(10);
}

}  // namespace angelia::store::testing
