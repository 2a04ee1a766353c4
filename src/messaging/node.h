// One node: its parts wired together, its life (start, ready, stop), its timer.
#pragma once

#include "messaging/answers.h"
#include "messaging/claims.h"
#include "messaging/context.h"
#include "messaging/intake.h"
#include "messaging/leases.h"
#include "messaging/participants.h"
#include "messaging/polls.h"
#include "messaging/publishes.h"
#include "messaging/pull.h"
#include "messaging/registry.h"
#include "messaging/runner.h"
#include "messaging/settle.h"
#include "messaging/streams.h"

namespace angelia {
class SerialExecutor;
class ThreadPool;
}  // namespace angelia

namespace angelia::messaging {

/// Executors with threads, made at start() when none are given.
struct OwnExecutors {
    std::vector<std::shared_ptr<SerialExecutor>> lanes;
    std::vector<std::shared_ptr<ThreadPool>> pools;
    void stop();
};

/// Threads: safe.
class Node : public std::enable_shared_from_this<Node> {
  public:
    Node(store::Store store, Options options);

    Result<void> start();
    bool wait_ready(milliseconds timeout);
    Result<void> stop(milliseconds timeout);

    Result<std::vector<bson::ObjectId>> publish(std::vector<Message> messages, bool to_self);
    Result<void> need_started() const;
    Status status() const;
    void look_again();  ///< a listener was added, a topic resumed

    Context context;
    Registry registry;
    Answers answers{context};
    Intake intake{context, registry, answers};
    Leases leases{context};
    Settler settler{context, intake, leases};
    Runner runner{context, registry, intake, leases, settler};
    Claims claims{context, intake, leases};
    Polls polls{context, registry, intake, answers};
    Streams streams{context, registry, intake, claims};
    Participants participants{context};
    Pull pull{context, registry};
    Publishes publishes{context};

  private:
    enum class State : std::uint8_t { New, Starting, Running, Stopping, Stopped };

    Result<void> make_executors();
    void wire();
    void tick();
    void schedule_tick();
    void beat();
    void renew();
    void ensure_indexes(int attempt);
    Result<void> learn_publisher_time();
    void ensure_publisher_indexes();
    void index_error(const store::CollectionName& collection, const Error& error,
                     std::string_view what_now);
    void became_ready();
    std::size_t release_what_waits();

    std::atomic<State> state_{State::New};
    OwnExecutors own_;
    SteadyTime next_settled_tick_{};

    mutable Mutex mutex_;
    Condition ready_changed_;
    bool first_poll_ ANGELIA_GUARDED_BY(mutex_) = false;
    bool streams_started_ ANGELIA_GUARDED_BY(mutex_) = false;
    /// Of publishers that never start.
    std::atomic<bool> publish_indexes_done_{false}, publisher_time_known_{false};
    std::atomic<int> index_error_told_{0};  ///< code of the last one that was said as a warning
};

}  // namespace angelia::messaging
