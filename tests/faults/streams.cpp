#include "faults/streams.h"

namespace angelia::engine::faults {

using namespace testing_support;

namespace {

constexpr std::size_t kEventsMax = 50;
constexpr std::size_t kBytesMax = std::size_t{1} << 20;

Result<std::shared_ptr<ChangeStream>> try_open_behind(TestEngine& engine, const Namespace& ns,
                                                      const bson::Document& token) {
    WatchSpec spec;
    spec.ns = ns;
    if (!token.view().empty()) spec.options = bson::make("resumeAfter", token);
    return engine->watch(spec);
}

std::shared_ptr<ChangeStream> open_behind(TestEngine& engine, const Namespace& ns,
                                          const bson::Document& token) {
    return try_open_behind(engine, ns, token).value_or_throw();
}

StreamReader::Event event_of(const bson::Document& document) {
    StreamReader::Event event;
    const auto view = document.view();
    event.token = bson::to_json(view["_id"]);
    event.operation = std::string(view["operationType"].as_string());
    event.id = view.find_path("documentKey._id").to_int64().value_or(-1);
    event.rev = view.find_path("fullDocument.rev").to_int64();
    if (!event.rev) event.rev = view.find_path("updateDescription.updatedFields.rev").to_int64();
    return event;
}

}  // namespace

void StreamReader::start(TestEngine& engine) {
    auto stream = open_behind(engine, ns_, last_token_);
    {
        const std::lock_guard lock(mutex_);
        stop_ = wake_ = false;
        error_.reset();
    }
    if (first_token_.view().empty()) {
        first_token_ = stream->poll(0, kBytesMax).value_or_throw().resume_token.copy();
        last_token_ = first_token_.copy();
    }
    thread_ = std::thread([this, stream = std::move(stream)] {
        read_until_stopped(*stream);
        stream->close();
    });
}

void StreamReader::read_until_stopped(ChangeStream& stream) {
    for (;;) {
        auto batch = stream.poll(kEventsMax, kBytesMax);
        std::unique_lock lock(mutex_);
        if (!batch) {
            error_ = batch.error();
            return;
        }
        for (const auto& event : batch->events) {
            delivered_.push_back(event_of(event));
            tokens_.emplace_back(event.view()["_id"].as_document());
        }
        last_token_ = batch->resume_token.copy();
        if (stop_) return;
        if (!batch->events.empty()) continue;
        lock.unlock();
        stream.wake_once([this] {
            const std::lock_guard inner(mutex_);
            wake_ = true;
            woken_.notify_one();
        });
        lock.lock();
        woken_.wait(lock, [&] { return wake_ || stop_; });
        wake_ = false;
        const bool stopped = stop_;
        lock.unlock();
        if (stopped) {
            stream.wake_once({});
            return;
        }
    }
}

void StreamReader::stop() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        woken_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

std::optional<Error> StreamReader::error() const {
    const std::lock_guard lock(mutex_);
    return error_;
}

std::size_t StreamReader::delivered() const {
    const std::lock_guard lock(mutex_);
    return delivered_.size();
}

Result<std::vector<StreamReader::Event>> StreamReader::read_all(TestEngine& engine,
                                                                const bson::Document& token) const {
    ANGELIA_TRY_ASSIGN(const auto stream, try_open_behind(engine, ns_, token));
    const auto end = bson::to_json(
        open_behind(engine, ns_, {})->poll(0, kBytesMax).value_or_throw().resume_token);
    std::vector<Event> events;
    for (;;) {
        ANGELIA_TRY_ASSIGN(const auto batch, stream->poll(kEventsMax, kBytesMax));
        for (const auto& event : batch.events) events.push_back(event_of(event));
        // Nobody writes now: the stream is at the end when it stands where a new one begins.
        if (batch.events.empty() && bson::to_json(batch.resume_token) >= end) break;
    }
    stream->close();
    return events;
}

Violations StreamReader::replay(TestEngine& engine, const std::vector<Event>& all) const {
    Violations violations;
    std::map<std::int64_t, std::int64_t> told;
    for (const auto& event : all) {
        const bool there = told.count(event.id) != 0;
        if (there == (event.operation == "insert"))
            violations.push_back(ns_.full() + ": an event '" + event.operation + "' of document " +
                                 std::to_string(event.id) + " that is " +
                                 (there ? "there" : "not there"));
        if (event.operation == "delete")
            told.erase(event.id);
        else if (event.rev)
            told[event.id] = *event.rev;
    }
    std::map<std::int64_t, std::int64_t> stored;
    for (const auto& json : engine.find(ns_)) {
        const auto document = doc(json);
        stored[document.view()["_id"].to_int64().value_or(-1)] =
            document.view()["rev"].to_int64().value_or(-1);
    }
    for (const auto& [id, rev] : stored) {
        if (told.count(id) == 0)
            violations.push_back(ns_.full() + ": the stream says nothing of document " +
                                 std::to_string(id));
        else if (told[id] != rev)
            violations.push_back(ns_.full() + ": document " + std::to_string(id) + " has rev " +
                                 std::to_string(rev) + ", the stream says " +
                                 std::to_string(told[id]));
    }
    for (const auto& [id, rev] : told) {
        if (stored.count(id) == 0)
            violations.push_back(ns_.full() + ": the stream tells of document " +
                                 std::to_string(id) + ", which is not there");
    }
    return violations;
}

Violations StreamReader::check(TestEngine& engine) {
    Violations violations;
    const auto everything = read_all(engine, first_token_);
    const auto behind = read_all(engine, last_token_);
    for (const auto* stream : {&everything, &behind}) {
        if (!*stream)
            return {ns_.full() +
                    ": a stream that goes on from a token failed: " + stream->error().message};
    }
    const auto& all = *everything;
    const auto& rest = *behind;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < delivered_.size(); ++i) {
        if (i >= all.size() || all[i] != delivered_[i]) {
            violations.push_back(ns_.full() + ": event " + std::to_string(i) + " (" +
                                 delivered_[i].operation + " of " +
                                 std::to_string(delivered_[i].id) +
                                 ") was delivered and is not there any more");
            break;
        }
    }
    if (delivered_.size() + rest.size() != all.size() ||
        !std::equal(rest.rbegin(), rest.rend(), all.rbegin()))
        violations.push_back(ns_.full() + ": " + std::to_string(delivered_.size()) +
                             " delivered and " + std::to_string(rest.size()) +
                             " behind the last token are not the " + std::to_string(all.size()) +
                             " events there are");
    auto replayed = replay(engine, all);
    violations.insert(violations.end(), replayed.begin(), replayed.end());
    return violations;
}

Violations StreamReader::check_trimmed(TestEngine& engine) {
    Violations violations;
    const std::lock_guard lock(mutex_);
    const auto step = std::max<std::size_t>(1, tokens_.size() / 20);
    for (std::size_t at = 0; at < tokens_.size(); at += step) {
        const auto events = read_all(engine, tokens_[at]);
        if (!events) {
            ++forgotten_;
            if (events.error().code != ErrorCode::ChangeStreamHistoryLost)
                violations.push_back(ns_.full() + ": a stream that goes on from a token failed: " +
                                     events.error().message);
            continue;
        }
        const auto told = static_cast<std::ptrdiff_t>(at) + 1;
        const auto expected = static_cast<std::ptrdiff_t>(delivered_.size()) - told;
        if (static_cast<std::ptrdiff_t>(events->size()) < expected ||
            !std::equal(delivered_.begin() + told, delivered_.end(), events->begin()))
            violations.push_back(ns_.full() + ": a stream behind event " + std::to_string(at) +
                                 " of " + std::to_string(delivered_.size()) +
                                 " is silently shorter");
    }
    // A reader that was refused begins anew, as a client has to.
    if (const auto rest = read_all(engine, last_token_); !rest) {
        first_token_ = bson::Document();
        last_token_ = bson::Document();
        delivered_.clear();
        tokens_.clear();
    }
    return violations;
}

}  // namespace angelia::engine::faults
