// The two change streams of a node: messages, and deletions of locks. Rebuilt when the set of
// topics changes; polling where there are none.
#pragma once

#include "messaging/claims.h"
#include "messaging/intake.h"

#include <atomic>

namespace angelia::messaging {

/// open(), tick() and close() run on the background executor or before and after it. Threads: safe.
class Streams {
  public:
    struct Hooks {
        std::function<void(bool soon)> poll;
        std::function<void()> started_or_given_up;  ///< each time
    };
    Streams(Context& context, Registry& registry, Intake& intake, Claims& claims)
        : context_(context), registry_(registry), intake_(intake), claims_(claims) {}
    void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }

    /// From the timer: opens what is missing, rebuilds when topics changed. Returns true when
    /// streams are needed and not live.
    bool tick();
    void close();
    bool live() const;
    bool polling_only() const { return polling_only_; }
    void use_polling_only(const std::string& why);
    /// Main stream started at least once, or polling.
    bool started() const { return main_started_ || polling_only_; }
    /// The filter that runs knows this topic.
    bool covers(const std::string& topic) const;
    /// Other makes of nodes are on the queue: every lock that goes may mean a message available
    /// again.
    void set_foreign_nodes(bool there) { foreign_nodes_ = there; }

  private:
    void open_main();
    void open_locks();
    void on_main_batch(std::vector<bson::Document> events);
    void on_lock_batch(std::vector<bson::Document> events);
    void on_error(const char* which, const Error& error, bool fatal);

    Context& context_;
    Registry& registry_;
    Intake& intake_;
    Claims& claims_;
    Hooks hooks_;
    std::atomic<bool> polling_only_{false};
    std::atomic<bool> main_started_{false};
    std::atomic<bool> foreign_nodes_{false};

    mutable Mutex mutex_;
    std::unique_ptr<store::Watch> main_watch_ ANGELIA_GUARDED_BY(mutex_);
    std::unique_ptr<store::Watch> lock_watch_ ANGELIA_GUARDED_BY(mutex_);
    std::shared_ptr<const Subscriptions> built_for_ ANGELIA_GUARDED_BY(mutex_);
    SteadyTime next_try_{};  // background executor only
};

}  // namespace angelia::messaging
