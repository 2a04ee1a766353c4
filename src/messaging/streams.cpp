#include "messaging/streams.h"

#include "messaging/filters.h"

namespace angelia::messaging {

void Streams::use_polling_only(const std::string& why) {
    if (polling_only_.exchange(true)) return;
    // One warning per process, however many nodes it has.
    static std::atomic<bool> warned{false};
    if (context_.options.use_streams && !warned.exchange(true)) {
        context_.log(LogLevel::Warning,
                     "change streams are not to be had here (" + why +
                         "); messages are found by polling every " +
                         std::to_string(context_.options.poll_pause.count()) +
                         " ms, which costs latency and load. A one-node replica set has streams: "
                         "start mongod with --replSet rs0 and run rs.initiate()");
    }
    hooks_.started_or_given_up();
}

bool Streams::tick() {
    if (polling_only_ || context_.stopping) return false;
    const auto subscriptions = registry_.read();
    bool need_main, need_locks;
    {
        MutexLock lock(mutex_);
        need_main = !main_watch_ || !built_for_ ||
                    built_for_->topics_version != subscriptions->topics_version;
        need_locks = !lock_watch_;
    }
    if ((need_main || need_locks) && context_.clock.steady_now() >= next_try_) {
        if (need_main) open_main();
        if (need_locks) open_locks();
    }
    return !live();
}

void Streams::open_main() {
    const auto subscriptions = registry_.read();
    store::WatchRequest request;
    request.collection = context_.main;
    request.stages = main_stream_stages(context_, subscriptions->watched_topics());
    store::WatchEvents events;
    events.on_batch = [this](std::vector<bson::Document> batch, const bson::Document&) {
        on_main_batch(std::move(batch));
    };
    events.on_started = [this](bool gap) {
        main_started_ = true;
        context_.metrics.add(Counter::streams_started);
        if (gap) context_.metrics.add(Counter::stream_gaps);
        hooks_.poll(true);
        hooks_.started_or_given_up();
    };
    events.on_error = [this](const Error& error, bool fatal) { on_error("message", error, fatal); };
    auto watch = context_.store.watch(std::move(request), std::move(events));
    if (!watch) {
        on_error("message", watch.error(), false);
        next_try_ = context_.clock.steady_now() + milliseconds(1000);
        return;
    }
    std::unique_ptr<store::Watch>
        old;  // closed after the new one runs: what both deliver is suppressed as a duplicate
    {
        MutexLock lock(mutex_);
        old = std::move(main_watch_);
        main_watch_ = std::move(watch).value();
        built_for_ = subscriptions;
    }
    if (old) {
        context_.metrics.add(Counter::stream_rebuilds);
        old->close();
        hooks_.poll(true);
    }
}

void Streams::open_locks() {
    store::WatchRequest request;
    request.collection = context_.locks;
    request.stages = lock_stream_stages();
    store::WatchEvents events;
    events.on_batch = [this](std::vector<bson::Document> batch, const bson::Document&) {
        on_lock_batch(std::move(batch));
    };
    events.on_started = [this](bool gap) {
        context_.metrics.add(Counter::streams_started);
        if (gap) hooks_.poll(false);
    };
    events.on_error = [this](const Error& error, bool fatal) { on_error("lock", error, fatal); };
    auto watch = context_.store.watch(std::move(request), std::move(events));
    if (!watch) {
        on_error("lock", watch.error(), false);
        next_try_ = context_.clock.steady_now() + milliseconds(1000);
        return;
    }
    MutexLock lock(mutex_);
    lock_watch_ = std::move(watch).value();
}

void Streams::on_main_batch(std::vector<bson::Document> events) {
    if (events.empty()) return;
    context_.metrics.add(Counter::events, static_cast<std::int64_t>(events.size()));
    std::vector<bson::DocumentView> documents;
    documents.reserve(events.size());
    bool look = false;
    for (const auto& event : events) {
        const auto kind = event["operationType"].get_string();
        if (!kind) continue;
        if (*kind == "insert") {
            if (auto document = event["fullDocument"].get_document())
                documents.push_back(*document);
        } else if (*kind == "update" || *kind == "lock_released") {
            look = true;
        }
    }
    intake_.offer(documents, Source::Stream);
    if (look) hooks_.poll(true);
}

void Streams::on_lock_batch(std::vector<bson::Document> events) {
    // A lock that goes because its message was handled is no news, and nearly all are such. Without
    // marks before handlers of ours, or with nodes of another make, that cannot be told; the poll
    // is at least a single one for any number of them.
    bool look = !events.empty() && (!context_.at_least_once || foreign_nodes_);
    for (const auto& event : events) {
        const auto id = event["documentKey"].get_document();
        const auto message = id ? (*id)["_id"].get_object_id() : std::nullopt;
        if (message && claims_.was_lost_and_is_over(*message)) look = true;
    }
    if (look) hooks_.poll(false);
}

void Streams::on_error(const char* which, const Error& error, bool fatal) {
    if (fatal) {
        use_polling_only(error.to_string());
        return;
    }
    context_.metrics.add(Counter::stream_errors);
    context_.log(LogLevel::Warning,
                 std::string("the ") + which +
                     " stream is down and will be tried again: " + error.to_string());
    hooks_.poll(false);
}

void Streams::close() {
    std::unique_ptr<store::Watch> main, locks;
    {
        MutexLock lock(mutex_);
        main = std::move(main_watch_);
        locks = std::move(lock_watch_);
    }
    if (main) main->close();
    if (locks) locks->close();
}

bool Streams::live() const {
    MutexLock lock(mutex_);
    return main_watch_ && main_watch_->live() && lock_watch_ && lock_watch_->live();
}

bool Streams::covers(const std::string& topic) const {
    MutexLock lock(mutex_);
    return main_watch_ && built_for_ &&
           (built_for_->listening(topic) || built_for_->pulled.count(topic) != 0);
}

}  // namespace angelia::messaging
