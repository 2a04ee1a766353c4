// The door for stream events and poll results: decode, decide, put into the right queue. Does no
// I/O and runs no user code, so it may be called from a stream's own thread.
#pragma once

#include "messaging/answers.h"
#include "messaging/registry.h"
#include "messaging/work.h"

#include <functional>
#include <set>

namespace angelia::messaging {

/// Threads: safe.
class Intake {
  public:
    struct Hooks {
        std::function<void()> work_ready;                   ///< something for handlers
        std::function<void()> claims_ready;                 ///< something to claim
        std::function<void(WorkPtr)> answer_taken;          ///< to be marked
        std::function<void(std::vector<WorkPtr>)> expired;  ///< found by a poll
        std::function<void(const std::string&)>
            pull_ready;  ///< an exclusive message of a topic that receive() waits for
    };

    Intake(Context& context, Registry& registry, Answers& answers)
        : context_(context), registry_(registry), answers_(answers) {}
    void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }  ///< before anything else

    /// Documents of messages. Returns how many of them this node took.
    std::size_t offer(const std::vector<bson::DocumentView>& documents, Source source);

    /// The most urgent message for a handler; nullptr when there is none.
    WorkPtr take_ready();
    std::size_t ready_count() const;
    /// A claimed message goes to the handlers.
    void add_ready(std::vector<WorkPtr> claimed);
    /// A broadcast comes again after a rejection.
    void offer_again(WorkPtr work);

    /// The most urgent candidates for a claim.
    std::vector<WorkPtr> take_candidates(std::size_t count_max);
    std::size_t candidate_count() const;

    /// The message is through: forget that it is in progress. `remember`: suppress later sights of
    /// it (broadcasts).
    void done(const bson::ObjectId& id);
    /// It was not handled; the next sight of it counts as the first.
    void forget(const bson::ObjectId& id);
    /// This node gave the message up for good.
    void give_up(const bson::ObjectId& id);

    std::vector<bson::ObjectId> in_progress_ids(std::size_t count_max) const;
    std::size_t in_progress_count() const;
    std::vector<bson::Value> malformed_ids() const;
    /// True once after a queue was full: the poll must look again.
    bool take_overflow();
    /// Everything that waits, at the end.
    std::vector<WorkPtr> drain();
    void trim();

  private:
    struct Queue {
        std::set<WorkPtr, LowerRank> items;
        std::size_t bytes = 0;
        bool full() const {
            return items.size() >= Context::kWaitingMax || bytes >= Context::kWaitingBytesMax;
        }
        void push(WorkPtr work);
        WorkPtr pop();
    };
    struct Taken;
    void sort_in(delivery::Envelope envelope, std::size_t bytes, Source source,
                 const Subscriptions& subscriptions, std::int64_t now, SteadyTime steady,
                 Taken& taken) ANGELIA_REQUIRES(mutex_);
    void remember_malformed(bson::DocumentView document, const std::string& reason);

    Context& context_;
    Registry& registry_;
    Answers& answers_;
    Hooks hooks_;

    mutable Mutex mutex_;
    std::uint64_t arrivals_ ANGELIA_GUARDED_BY(mutex_) = 0;
    Queue ready_ ANGELIA_GUARDED_BY(mutex_);
    Queue candidates_ ANGELIA_GUARDED_BY(mutex_);
    std::unordered_set<bson::ObjectId> in_progress_ ANGELIA_GUARDED_BY(mutex_);
    delivery::IdMemory seen_ ANGELIA_GUARDED_BY(mutex_){
        100'000, std::chrono::minutes(30)};  // broadcasts handled, anything given up
    delivery::IdMemory expired_ ANGELIA_GUARDED_BY(mutex_){
        10'000, std::chrono::minutes(30)};  // counted once
    std::vector<bson::Value> malformed_ ANGELIA_GUARDED_BY(mutex_);
    std::size_t malformed_next_ ANGELIA_GUARDED_BY(mutex_) = 0;
    bool overflow_ ANGELIA_GUARDED_BY(mutex_) = false;
};

}  // namespace angelia::messaging
