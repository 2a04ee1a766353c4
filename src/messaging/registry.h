// Who listens to what on this node. Readers take a snapshot; writers replace it.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/mutex.h>
#include <angelia/messaging/messaging.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace angelia::messaging {

struct Listener {
    std::string name;
    Handler handler;
};

/// Immutable. What streams and polls ask for, and what decide() is told.
struct Subscriptions {
    std::unordered_map<std::string, std::vector<std::shared_ptr<const Listener>>> listeners;
    std::unordered_set<std::string> paused;
    std::unordered_set<std::string> pulled;  ///< topics that receive() waits for
    std::uint64_t topics_version = 0;        ///< grows when the set of topics changes

    bool listening(const std::string& topic) const { return listeners.count(topic) != 0; }
    std::vector<std::string> topics() const;          ///< listened ones, sorted
    std::vector<std::string> watched_topics() const;  ///< listened and pulled ones, sorted
};

/// Threads: safe.
class Registry {
  public:
    std::shared_ptr<const Subscriptions> read() const;

    /// All or none. Fills in missing names.
    Result<std::vector<ListenerId>> add(std::vector<TopicHandler> listeners);
    bool remove(const ListenerId& id);
    void clear();

    void pause(const std::string& topic, SteadyTime now);
    milliseconds resume(const std::string& topic, SteadyTime now);

    /// True when the topic was not pulled before.
    bool add_pulled(const std::string& topic);

  private:
    void publish(std::shared_ptr<Subscriptions> next) ANGELIA_REQUIRES(mutex_) {
        current_ = std::move(next);
    }

    mutable Mutex mutex_;
    std::shared_ptr<const Subscriptions> current_ ANGELIA_GUARDED_BY(mutex_) =
        std::make_shared<Subscriptions>();
    std::map<std::string, SteadyTime> paused_since_ ANGELIA_GUARDED_BY(mutex_);
    std::uint64_t names_given_ ANGELIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace angelia::messaging
