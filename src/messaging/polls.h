// Looks at the collection: what streams cannot know (stored before they ran, lost, left over,
// available again by time).
#pragma once

#include "messaging/intake.h"

#include <atomic>

namespace angelia::messaging {

/// Everything here runs on the background executor, except request(). Threads: safe.
class Polls {
  public:
    Polls(Context& context, Registry& registry, Intake& intake, Answers& answers)
        : context_(context), registry_(registry), intake_(intake), answers_(answers) {}

    /// Somebody has a reason to look. `soon`: now rather than at the next tick. Any number of
    /// requests make one poll.
    void request(bool soon);
    /// From the timer: polls if somebody asked, `must` says so, or the fallback interval has
    /// passed.
    void tick(bool must);
    /// Some of what was taken is through: fetches the next batch if the last one was full and
    /// little of it is left.
    void next_batch_if_low();
    /// Messages that wait for a time of ours: look again after `delay`.
    void request_in(milliseconds delay);
    /// Whether a poll has succeeded since start(); called once when it did.
    void set_first_poll_hook(std::function<void()> hook) { first_poll_ = std::move(hook); }
    void set_streams_live(bool live) { streams_live_ = live; }

  private:
    struct Found {
        std::size_t documents = 0;
        std::size_t taken = 0;
    };
    using Kinds = unsigned;
    static constexpr Kinds kExclusive = 1, kOthers = 2, kAll = 3;
    void request(bool soon, Kinds kinds);
    void run(Kinds kinds);
    bool look(Kinds kinds);
    std::optional<Found> find(bson::Document filter, std::size_t limit);

    Context& context_;
    Registry& registry_;
    Intake& intake_;
    Answers& answers_;
    std::function<void()> first_poll_;
    std::atomic<Kinds> requested_{kAll};
    std::atomic<Kinds> more_{0};  // the last batch of these was full
    std::atomic<bool> posted_{false};
    std::atomic<bool> streams_live_{false};
    std::size_t batch_size() const;
    SteadyTime last_{};           // background executor only
    double mean_bytes_ = 0;       // of a found document; background executor only
    bool any_succeeded_ = false;  // background executor only
};

}  // namespace angelia::messaging
