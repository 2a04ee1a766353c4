#include "messaging/context.h"

#include "messaging/layouts/standard.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>
#include <random>

namespace angelia::messaging {

void DecisionRing::add(SystemTime at, const bson::ObjectId& id, delivery::Decision decision) {
    MutexLock lock(mutex_);
    if (entries_.size() < kEntriesMax) {
        entries_.push_back({at, id, decision});
        return;
    }
    entries_[next_] = {at, id, decision};
    next_ = (next_ + 1) % kEntriesMax;
}

std::vector<DecisionEntry> DecisionRing::read() const {
    std::vector<DecisionEntry> out;
    MutexLock lock(mutex_);
    out.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const Entry& e = entries_[(next_ + i) % entries_.size()];
        std::string what;
        switch (e.decision.action) {
            case delivery::Action::Handle:
                what = "handle";
                break;
            case delivery::Action::Claim:
                what = "claim";
                break;
            case delivery::Action::Answer:
                what = "answer";
                break;
            case delivery::Action::Skip:
                what = "skip: " + std::string(delivery::skip_reason_name(e.decision.reason));
                break;
        }
        out.push_back({e.at, e.id, std::move(what)});
    }
    return out;
}

Context::Context(store::Store s, Options o)
    : store(std::move(s)),
      options(std::move(o)),
      clock(options.clock ? *options.clock : real_clock()),
      names(standard_layout(options.queue)) {
    self = options.id.empty() ? random_uuid() : options.id;
    host = local_host_name();
    morphium = options.compat == Compat::Morphium;
    at_least_once = !morphium && options.delivery == DeliveryMode::AtLeastOnce;
    threads = options.threads == 0 ? 16 : options.threads;
    fallback_poll = options.fallback_poll;
    if (fallback_poll <= milliseconds(0)) {
        fallback_poll = milliseconds(10'000);
        if (at_least_once)
            fallback_poll =
                std::max(options.poll_pause, std::min(fallback_poll, options.lease / 2));
    }
    main = store.collection(names.main);
    locks = store.collection(names.locks);
    participants = store.collection(names.participants);
}

void Context::log(LogLevel level, const std::string& text) const {
    if (options.log)
        options.log(level, fmt::format("{} queue={} id={}", text, options.queue, self));
}

void Context::post(const std::shared_ptr<Executor>& where, std::function<void()> task) const {
    where->post([node = owner, task = std::move(task)] {
        if (auto alive = node.lock()) task();
    });
}

Executor::TimerId Context::post_after(const std::shared_ptr<Executor>& where, microseconds delay,
                                      std::function<void()> task) const {
    return where->post_after(delay, [node = owner, task = std::move(task)] {
        if (auto alive = node.lock()) task();
    });
}

std::int64_t Context::server_millis() const {
    const auto now = clock.steady_now();
    MutexLock lock(mutex_);
    return server_time_.at(now, clock.system_millis());
}

void Context::learn_server_time(const store::ServerTime& reply) {
    const auto now = clock.steady_now();
    MutexLock lock(mutex_);
    server_time_.add(reply.now.millis, reply.round_trip, now);
}

void Context::count_malformed(const std::string& reason) {
    metrics.add(Counter::malformed);
    MutexLock lock(mutex_);
    ++malformed_[reason];
}

void Context::count_expired(const std::string& topic) {
    metrics.add(Counter::expired);
    MutexLock lock(mutex_);
    if (expired_.size() < kTopicsCountedMax || expired_.count(topic) != 0) ++expired_[topic];
}

std::map<std::string, std::int64_t> Context::malformed_by_reason() const {
    MutexLock lock(mutex_);
    return malformed_;
}

std::map<std::string, std::int64_t> Context::expired_by_topic() const {
    MutexLock lock(mutex_);
    return expired_;
}

Result<void> check_options(const Options& o) {
    using std::chrono::hours;
    const auto bad = [](std::string text) { return Error(ErrorCode::BadValue, std::move(text)); };
    const auto check_time = [&](const char* name, milliseconds value, milliseconds low,
                                milliseconds high) -> Result<void> {
        if (value >= low && value <= high) return {};
        return bad(fmt::format("option {} is {} ms; allowed are {} to {} ms", name, value.count(),
                               low.count(), high.count()));
    };
    const auto check_number = [&](const char* name, std::size_t value, std::size_t low,
                                  std::size_t high) -> Result<void> {
        if (value >= low && value <= high) return {};
        return bad(fmt::format("option {} is {}; allowed are {} to {}", name, value, low, high));
    };
    // The queue becomes part of collection names.
    if (o.queue.size() > 100 || o.queue.find('$') != std::string::npos ||
        o.queue.find('\0') != std::string::npos) {
        return bad(fmt::format(
            "option queue is \"{}\"; allowed are up to 100 bytes without $ and zero bytes",
            o.queue));
    }
    if (!o.queue.empty()) {
        if (auto ok = delivery::check_sender(o.queue); !ok)
            return bad("option queue: " + ok.error().message);
    }
    if (!o.id.empty()) {
        if (auto ok = delivery::check_sender(o.id); !ok)
            return bad("option id: " + ok.error().message);
        if (o.id == "self")
            return bad("option id is \"self\"; that name marks messages of a node to itself");
    }
    if (auto ok = delivery::check_topic(o.status_topic); !ok)
        return bad("option status_topic: " + ok.error().message);
    ANGELIA_TRY(check_number("window", o.window, 1, 10'000));
    ANGELIA_TRY(check_number("threads", o.threads, 0, 1'000));
    ANGELIA_TRY(check_time("poll_pause", o.poll_pause, milliseconds(1), hours(1)));
    ANGELIA_TRY(check_time("fallback_poll", o.fallback_poll, milliseconds(0), hours(1)));
    ANGELIA_TRY(check_time("default_ttl", o.default_ttl, milliseconds(1), hours(24 * 366)));
    ANGELIA_TRY(check_time("settle_delay", o.settle_delay, milliseconds(0), milliseconds(50)));
    ANGELIA_TRY(check_time("lease", o.lease, milliseconds(200), hours(12)));
    ANGELIA_TRY(check_time("heartbeat", o.heartbeat, milliseconds(100), hours(1)));
    ANGELIA_TRY(
        check_time("participant_timeout", o.participant_timeout, milliseconds(200), hours(24)));
    const auto& e = o.executors;
    const int given = (e.lane ? 1 : 0) + (e.background ? 1 : 0) + (e.settle ? 1 : 0) +
                      (e.handlers ? 1 : 0) + (e.callbacks ? 1 : 0);
    if (given != 0 && given != 5)
        return bad("option executors names some of the five; allowed are all or none");
    return {};
}

std::string random_uuid() {
    std::random_device random;
    std::array<std::uint32_t, 4> r{random(), random(), random(), random()};
    r[1] = (r[1] & 0xFFFF0FFFu) | 0x00004000u;  // version 4
    r[2] = (r[2] & 0x3FFFFFFFu) | 0x80000000u;  // variant 1
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", r[0], r[1] >> 16, r[1] & 0xFFFFu,
                       r[2] >> 16, r[2] & 0xFFFFu, r[3]);
}

std::string local_host_name() {
    if (const char* name = std::getenv("HOSTNAME"); name && *name) return name;
    std::array<char, 256> buffer{};
    if (::gethostname(buffer.data(), buffer.size() - 1) == 0 && buffer[0] != '\0')
        return buffer.data();
    return "unknown host";
}

}  // namespace angelia::messaging
