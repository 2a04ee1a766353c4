#include "messaging/node.h"

#include "messaging/status_topic.h"

#include <angelia/base/threads.h>

#include <algorithm>
#include <thread>

namespace angelia::messaging {

void OwnExecutors::stop() {
    for (auto& pool : pools) pool->stop(StopMode::Drop);
    for (auto& lane : lanes) lane->stop(StopMode::Drop);
}

Node::Node(store::Store store, Options options) : context(std::move(store), std::move(options)) {
    wire();
}

void Node::wire() {
    const auto poll = [this](bool soon) { polls.request(soon); };
    intake.set_hooks(
        {.work_ready = [this] { runner.wake(); },
         .claims_ready = [this] { claims.wake(); },
         .answer_taken =
             [this](WorkPtr work) {
                 Settlement s{.work = std::move(work)};
                 s.mark_only = true;
                 settler.settle_later(std::move(s));
             },
         .expired = [this](std::vector<WorkPtr> works) { settler.delete_expired(works); },
         .pull_ready = [this](const std::string&) { pull.wake_all(); }});
    settler.set_hooks({.room =
                           [this] {
                               claims.wake();
                               polls.next_batch_if_low();
                           },
                       .poll = poll,
                       .retry_in = [this](milliseconds delay) { polls.request_in(delay); }});
    runner.set_poll_hook(poll);
    claims.set_hooks(
        {.poll = poll,
         .claimed = [this] { polls.next_batch_if_low(); },
         .on_handler =
             [this](std::function<void()> claim) { return runner.run_behind(std::move(claim)); }});
    streams.set_hooks({.poll =
                           [this](bool soon) {
                               polls.request(soon);
                               pull.wake_all();
                           },
                       .started_or_given_up = [this] { became_ready(); }});
    polls.set_first_poll_hook([this] {
        {
            MutexLock lock(mutex_);
            first_poll_ = true;
        }
        became_ready();
    });
}

Result<void> Node::make_executors() {
    context.owner = weak_from_this();
    if (context.options.executors.lane) {
        context.run = context.options.executors;
        return {};
    }
    const auto lane = [this](const char* name) {
        auto e =
            std::make_shared<SerialExecutor>(SerialExecutorOptions{.name = name, .tasks_max = 0});
        own_.lanes.push_back(e);
        return e;
    };
    const auto pool = [this](const char* name, std::size_t threads) {
        auto e = std::make_shared<ThreadPool>(
            ThreadPoolOptions{.name = name, .threads_max = threads, .tasks_max = 0});
        own_.pools.push_back(e);
        return e;
    };
    context.run.lane = lane("msg-lane");
    context.run.background = lane("msg-background");
    context.run.settle = lane("msg-settle");
    context.run.handlers = pool("msg-handler", context.threads);
    context.run.callbacks = pool("msg-callback", 2);
    for (auto& l : own_.lanes) ANGELIA_TRY(l->start());
    for (auto& p : own_.pools) ANGELIA_TRY(p->start());
    return {};
}

Result<void> Node::start() {
    State expected = State::New;
    if (!state_.compare_exchange_strong(expected, State::Starting)) {
        if (expected == State::Stopped || expected == State::Stopping)
            return {ErrorCode::ShutdownInProgress, "this node has stopped; make another one"};
        return {ErrorCode::IllegalOperation, "start() was called before; a node starts once"};
    }
    const auto back = [this](Error error) -> Result<void> {
        own_.stop();
        own_ = {};
        state_ = State::New;
        return error;
    };
    if (auto ok = check_options(context.options); !ok) return back(ok.error());
    auto capabilities = context.store.capabilities();
    if (!capabilities) return back(capabilities.error());
    if (auto ok = participants.announce(); !ok) return back(ok.error());
    if (auto ok = make_executors(); !ok) return back(ok.error());
    if (context.options.status_listener) {
        TopicHandler status_listener;
        status_listener.topic = context.options.status_topic;
        status_listener.options.name = "angelia status";
        status_listener.handler = [node = weak_from_this()](const Message& m) -> Reply {
            auto self = node.lock();
            if (!self || m.is_answer()) return no_answer();
            return status_reply(m, self->status(), self->context.server_millis(),
                                self->context.options, self->context.threads);
        };
        std::vector<TopicHandler> one;
        one.push_back(std::move(status_listener));
        if (auto ok = registry.add(std::move(one)); !ok) return back(ok.error());
    }
    state_ = State::Running;
    const bool use_streams = context.options.use_streams && capabilities->change_streams;
    context.post(context.run.background, [this, use_streams] {
        ensure_indexes(1);
        streams.set_foreign_nodes(participants.foreign_nodes());
        if (!use_streams) streams.use_polling_only("the server has none");
        tick();
        context.post_after(context.run.background, context.options.heartbeat, [this] { beat(); });
        if (context.at_least_once)
            context.post_after(context.run.lane, context.options.lease / 3, [this] { renew(); });
    });
    return {};
}

void Node::ensure_indexes(int attempt) {
    if (context.stopping) return;
    const auto copy = [](const std::vector<store::IndexDefinition>& from) {
        std::vector<store::IndexDefinition> out;
        for (const auto& i : from)
            out.push_back({i.name, i.key.copy(), i.unique, i.sparse, i.expire_after_seconds});
        return out;
    };
    auto indexes = copy(context.names.own_indexes);
    if (context.morphium || context.options.indexes == IndexSet::Morphium) {
        for (auto& index : copy(context.names.morphium_indexes)) {
            const bool there = std::any_of(indexes.begin(), indexes.end(),
                                           [&](const auto& i) { return i.name == index.name; });
            if (!there) indexes.push_back(std::move(index));
        }
    }
    auto made = context.store.ensure_indexes(context.main, std::move(indexes));
    const auto* collection = &context.main;
    if (made) {
        collection = &context.locks;
        made = context.store.ensure_indexes(context.locks, copy(context.names.lock_indexes));
    }
    if (made) return;
    index_error(*collection, made.error(), "it will be tried again");
    const auto delay = std::min(milliseconds(5000), milliseconds(250 * attempt));
    context.post_after(context.run.background, delay,
                       [this, attempt] { ensure_indexes(attempt + 1); });
}

void Node::index_error(const store::CollectionName& collection, const Error& error,
                       std::string_view what_now) {
    context.metrics.add(Counter::index_errors);
    // Again and again the same: once is enough to hear it.
    const int code = static_cast<int>(error.code);
    const bool news = index_error_told_.exchange(code) != code;
    context.log(news ? LogLevel::Warning : LogLevel::Info,
                "indexes of collection " + collection.full() + " could not be made, " +
                    std::string(what_now) + ": " + error.to_string());
}

// A publisher whose clock is wrong must not store what has expired already.
Result<void> Node::learn_publisher_time() {
    if (publisher_time_known_) return {};
    const auto start = context.clock.steady_now();
    const auto time = context.store.server_time();
    if (time) {
        context.learn_server_time(*time);
        publisher_time_known_ = true;
        return {};
    }
    // A server that was waited for is not there, and publishing would wait as long again. Anything
    // else, such as a cut connection, is no reason not to try.
    if (context.clock.steady_now() - start > milliseconds(1000)) return time.error();
    return {};
}

// A publisher that never starts makes sure that what it stores can expire. Not being able to must
// not keep it from publishing: it may have no right to, and others may have made them.
void Node::ensure_publisher_indexes() {
    if (publish_indexes_done_.exchange(true)) return;
    std::vector<store::IndexDefinition> indexes;
    for (const auto& i : context.names.own_indexes)
        indexes.push_back({i.name, i.key.copy(), i.unique, i.sparse, i.expire_after_seconds});
    if (auto made = context.store.ensure_indexes(context.main, std::move(indexes)); !made)
        index_error(context.main, made.error(),
                    "without them expired messages stay; what was published is stored");
}

void Node::became_ready() {
    MutexLock lock(mutex_);
    streams_started_ = streams.started();
    ready_changed_.notify_all();
}

bool Node::wait_ready(milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    while (!(first_poll_ && streams_started_)) {
        if (state_ >= State::Stopping) return false;
        if (!ready_changed_.wait_until(mutex_, deadline)) break;
    }
    return first_poll_ && streams_started_;
}

void Node::schedule_tick() {
    context.post_after(context.run.background, context.options.poll_pause, [this] { tick(); });
}

void Node::tick() {
    if (context.stopping) return;
    const bool blind = streams.tick();
    polls.set_streams_live(!streams.polling_only() && !blind);
    intake.trim();
    // Without streams every tick looks; with dead ones too, until they live again.
    polls.tick(streams.polling_only() || blind);
    schedule_tick();
}

void Node::beat() {
    if (context.stopping) return;
    participants.beat();
    streams.set_foreign_nodes(participants.foreign_nodes());
    context.post_after(context.run.background, context.options.heartbeat, [this] { beat(); });
}

void Node::renew() {
    if (context.stopping && leases.held_count() == 0) return;
    leases.renew();
    context.post_after(context.run.lane, context.options.lease / 3, [this] { renew(); });
}

void Node::look_again() {
    if (state_ == State::Running) polls.request(false);
}

Result<void> Node::need_started() const {
    const auto state = state_.load();
    if (state == State::Running) return {};
    if (state >= State::Stopping) return {ErrorCode::ShutdownInProgress, "this node has stopped"};
    return {ErrorCode::IllegalOperation, "this node has not started; call start() first"};
}

Result<std::vector<bson::ObjectId>> Node::publish(std::vector<Message> messages, bool to_self) {
    if (state_ >= State::Stopping) return {ErrorCode::ShutdownInProgress, "this node has stopped"};
    const bool new_node = state_ == State::New;
    if (new_node) ANGELIA_TRY(check_options(context.options));
    std::vector<bson::ObjectId> ids;
    if (messages.empty()) return ids;
    if (messages.size() > 100'000)
        return {ErrorCode::BadValue, "publish() of " + std::to_string(messages.size()) +
                                         " messages; allowed are 1 to 100000"};
    if (new_node) ANGELIA_TRY(learn_publisher_time());
    std::vector<bson::Document> documents;
    documents.reserve(messages.size());
    const auto now = context.server_millis();
    for (auto& m : messages) {
        if (to_self) m.recipients = {context.self};
        if (m.in_answer_to && m.recipients.empty() && m.exclusive) {
            return {ErrorCode::BadValue, "an answer is not exclusive; set exclusive to false"};
        }
        ANGELIA_TRY(delivery::complete(m, {.sender = context.self,
                                           .sender_host = context.host,
                                           .now_millis = now,
                                           .default_ttl = context.options.default_ttl,
                                           .exclusive_times_out = context.morphium,
                                           .exclusive_is_deleted = !context.morphium}));
        if (to_self) m.sender = "self";
        ids.push_back(m.id);
        documents.push_back(delivery::encode(m));
    }
    std::vector<bson::DocumentView> views;
    views.reserve(documents.size());
    for (const auto& d : documents) views.push_back(d.view());
    ANGELIA_TRY_ASSIGN(const auto stored, publishes.insert(views));
    context.metrics.add(Counter::published, stored.inserted);
    // Behind the messages: a server that cannot be reached is waited for once.
    if (new_node) ensure_publisher_indexes();
    if (!stored.errors.empty()) {
        Error first = stored.errors.front().error;
        if (messages.size() > 1) {
            first.message = "message " + std::to_string(stored.errors.front().index) + " of " +
                            std::to_string(messages.size()) + " (" +
                            std::to_string(stored.errors.size()) + " failed): " + first.message;
        }
        return first;
    }
    return ids;
}

Status Node::status() const {
    Status s;
    s.id = context.self;
    s.queue = context.options.queue;
    s.layout = context.names.implementation;
    s.running = state_ == State::Running;
    s.polling_only = streams.polling_only();
    s.streams = !s.polling_only && streams.live();
    const auto subscriptions = registry.read();
    for (const auto& [topic, listeners] : subscriptions->listeners) {
        auto& names = s.listeners[topic];
        for (const auto& listener : listeners) names.push_back(listener->name);
    }
    s.paused_topics.assign(subscriptions->paused.begin(), subscriptions->paused.end());
    std::sort(s.paused_topics.begin(), s.paused_topics.end());
    s.waiting_for_answers = answers.waiting_count();
    s.in_progress = intake.in_progress_count();
    s.running_handlers = runner.running_count();
    s.counters = context.metrics.snapshot();
    s.expired_by_topic = context.expired_by_topic();
    s.malformed = context.malformed_by_reason();
    return s;
}

std::size_t Node::release_what_waits() {
    std::size_t released = 0;
    for (auto& work : intake.drain()) {
        if (!work->claimed) continue;
        context.metrics.add(Counter::released);
        settler.settle({.work = std::move(work), .outcome = Outcome::Release});
        ++released;
    }
    return released;
}

Result<void> Node::stop(milliseconds timeout) {
    const State before = state_.exchange(State::Stopping);
    if (before == State::Stopping || before == State::Stopped) {
        state_ = before;
        return {};
    }
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    // 1: no intake; who waits learns why.
    context.stopping = true;
    answers.shut_down();
    pull.shut_down();
    {
        MutexLock lock(mutex_);
        ready_changed_.notify_all();
    }
    if (before == State::New || before == State::Starting) {
        state_ = State::Stopped;
        return {};
    }
    streams.close();
    release_what_waits();
    const bool own = !own_.lanes.empty();
    bool finished = true;
    if (own) {
        // 2: running handlers finish; their leases are renewed meanwhile.
        finished = claims.wait_idle(deadline) && runner.wait_idle(deadline);
        release_what_waits();  // what a claim under way has won
        // 3: outcomes are written.
        if (!settler.wait_idle(deadline))
            context.log(LogLevel::Warning,
                        "stopped before every outcome was written; leases will run out");
    }
    // 4: close.
    participants.withdraw();
    registry.clear();
    state_ = State::Stopped;
    if (!own) return {};
    if (finished) {
        own_.stop();
        own_ = {};
        streams.close();  // a tick under way may have opened one
        return {};
    }
    // A handler that does not end would hold us here; its thread is left to end on its own, and the
    // node with it.
    std::thread([node = shared_from_this()]() mutable {
        node->own_.stop();
        node->own_ = {};
        node.reset();
    }).detach();
    return {ErrorCode::ExceededTimeLimit,
            "a handler still runs; its message stays leased until the lease runs out"};
}

}  // namespace angelia::messaging
