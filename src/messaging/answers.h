// Who waits for which answers. A waiter is registered before its request is stored, so that no
// answer can come too early.
#pragma once

#include "delivery/id_memory.h"
#include "messaging/context.h"

#include <unordered_map>
#include <unordered_set>

namespace angelia::messaging {

/// Threads: safe. Nothing of the user runs here: callbacks go to the callback executor.
class Answers {
  public:
    explicit Answers(Context& context) : context_(context) {}

    /// What is registered for one request until it is over.
    struct Waiter;

    /// For blocking callers: remembers answers until wait() takes them.
    Result<std::shared_ptr<Waiter>> expect(const bson::ObjectId& request, bool exclusive);
    /// Up to `count` answers (0: all until the end) or until `timeout`; ends the registration.
    /// Error ShutdownInProgress after stop().
    Result<std::vector<Message>> wait(const std::shared_ptr<Waiter>& waiter, std::size_t count,
                                      milliseconds timeout);
    /// For callbacks: registered until answered (exclusive) or over.
    Result<void> expect_async(const bson::ObjectId& request, bool exclusive, milliseconds timeout,
                              AnswerCallback on_answer, std::function<void()> on_timeout);
    /// The request could not be sent.
    void forget(const bson::ObjectId& request);

    bool waiting_for(const bson::ObjectId& request) const;
    /// A request of ours, whether or not somebody still waits.
    bool asked(const bson::ObjectId& request) const;
    std::vector<bson::ObjectId> waited_ids(std::size_t count_max) const;
    std::size_t waiting_count() const;

    /// True when somebody took it: of an exclusive request the first answer, else each answer id
    /// once.
    bool dispatch(Message answer);

    /// Wakes everybody with ShutdownInProgress; nobody may wait from now on.
    void shut_down();

  private:
    static constexpr std::size_t kWaitersMax = 100'000;
    Result<void> enter(const bson::ObjectId& request, std::shared_ptr<Waiter> waiter);
    std::shared_ptr<Waiter> remove(const bson::ObjectId& request);

    Context& context_;
    mutable Mutex mutex_;
    bool closed_ ANGELIA_GUARDED_BY(mutex_) = false;
    std::unordered_map<bson::ObjectId, std::shared_ptr<Waiter>> waiters_ ANGELIA_GUARDED_BY(mutex_);
    delivery::IdMemory asked_ ANGELIA_GUARDED_BY(mutex_){100'000, std::chrono::minutes(30)};
};

}  // namespace angelia::messaging
