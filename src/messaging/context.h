// What all parts of a node share: options, names, store, clock, executors, counters, the ring of
// decisions, server time.
#pragma once

#include "delivery/decide.h"
#include "delivery/server_time.h"
#include "messaging/layouts/layout.h"
#include "messaging/metrics.h"

#include <angelia/base/mutex.h>
#include <angelia/messaging/messaging.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace angelia::messaging {

/// The last decisions about messages, kept as numbers and written out only when somebody asks.
/// Threads: safe.
class DecisionRing {
  public:
    void add(SystemTime at, const bson::ObjectId& id, delivery::Decision decision);
    std::vector<DecisionEntry> read() const;

  private:
    struct Entry {
        SystemTime at;
        bson::ObjectId id;
        delivery::Decision decision;
    };
    static constexpr std::size_t kEntriesMax = 512;
    mutable Mutex mutex_;
    std::vector<Entry> entries_ ANGELIA_GUARDED_BY(mutex_);
    std::size_t next_ ANGELIA_GUARDED_BY(mutex_) = 0;
};

/// Owned by the Node. Constant after construction unless it synchronises itself.
class Context {
  public:
    Context(store::Store store, Options options);

    // constant
    store::Store store;
    Options options;
    const Clock& clock;
    LayoutNames names;
    std::string self;
    std::string host;
    bool at_least_once = true;
    bool morphium = false;
    std::size_t threads = 16;
    milliseconds fallback_poll{10'000};
    store::CollectionName main, locks, participants;

    // set once by start(), before anything else runs
    Executors run;
    std::weak_ptr<void> owner;

    // own synchronisation
    Metrics metrics;
    DecisionRing decisions;
    std::atomic<bool> stopping{false};  ///< no intake any more

    /// Queues, memory: bounds of this node.
    static constexpr std::size_t kWaitingMax = 50'000;  ///< messages waiting locally, per kind
    static constexpr std::size_t kWaitingBytesMax = 64u << 20;

    void log(LogLevel level, const std::string& text) const;
    /// Runs `task` there unless the node has gone by then.
    void post(const std::shared_ptr<Executor>& where, std::function<void()> task) const;
    Executor::TimerId post_after(const std::shared_ptr<Executor>& where, microseconds delay,
                                 std::function<void()> task) const;

    std::int64_t server_millis() const;
    void learn_server_time(const store::ServerTime& reply);

    void count_malformed(const std::string& reason);
    void count_expired(const std::string& topic);
    std::map<std::string, std::int64_t> malformed_by_reason() const;
    std::map<std::string, std::int64_t> expired_by_topic() const;

    static store::CallOptions majority(milliseconds timeout = milliseconds(30'000)) {
        return {
            .acknowledge = store::Acknowledge::Majority, .timeout = timeout, .session = nullptr};
    }
    static store::CallOptions repeatable() {
        auto options = majority();
        options.repeatable = true;
        return options;
    }

  private:
    static constexpr std::size_t kTopicsCountedMax = 1000;
    mutable Mutex mutex_;
    delivery::ServerTimeEstimate server_time_ ANGELIA_GUARDED_BY(mutex_);
    std::map<std::string, std::int64_t> malformed_ ANGELIA_GUARDED_BY(mutex_);
    std::map<std::string, std::int64_t> expired_ ANGELIA_GUARDED_BY(mutex_);
};

std::string random_uuid();
std::string local_host_name();

}  // namespace angelia::messaging
