// Becomes the one that handles an exclusive message: batches of conditional writes on the lane, or,
// of a few messages, on the handler thread that will run them, which saves a hand-over.
#pragma once

#include "messaging/intake.h"
#include "messaging/leases.h"

#include <atomic>

namespace angelia::messaging {

/// One claim as data, for the store. Pure; also used by receive().
struct ClaimTerms {
    std::int64_t now_millis = 0;  ///< server time
    milliseconds lease{0};        ///< at least once
};
store::ClaimRequest::Candidate claim_candidate(const Context& context,
                                               const delivery::Envelope& envelope,
                                               const ClaimTerms& terms);
/// What a won claim changed in the message.
void apply_claim(const Context& context, const ClaimTerms& terms, delivery::Envelope& envelope);
/// The exact values of a lock whose time is over; nothing when it still holds.
std::optional<bson::Document> take_over_filter(bson::DocumentView lock, std::int64_t now_millis);

/// Threads: safe.
class Claims {
  public:
    Claims(Context& context, Intake& intake, Leases& leases)
        : context_(context), intake_(intake), leases_(leases) {}
    struct Hooks {
        std::function<void(bool soon)> poll;  ///< look at the collection
        std::function<void()> claimed;        ///< after each round of claims
        /// Runs the claim on a free handler thread, which then runs what was won; false: none.
        std::function<bool(std::function<void()> claim)> on_handler;
    };
    void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }

    /// There are candidates, or there is room again.
    void wake();

    /// Waits until no claim is under way; false when `deadline` passed first.
    bool wait_idle(std::chrono::steady_clock::time_point deadline);

    /// Ids that somebody else had when we tried, and until when at most: when their lock goes after
    /// that, they are free.
    bool was_lost_and_is_over(const bson::ObjectId& id);

  private:
    void pump();
    bool claim_some();
    void try_take_over(std::vector<WorkPtr> locked);
    void send(std::vector<WorkPtr> works,
              const std::unordered_map<bson::ObjectId, bson::Document>* take_over);
    void remember_lost(const bson::ObjectId& id, std::int64_t until_millis);

    Context& context_;
    Intake& intake_;
    Leases& leases_;
    Hooks hooks_;
    std::atomic<bool> posted_{false};

    static constexpr std::size_t kLostMax = 10'000;
    static constexpr std::size_t kFew = 4;  ///< more are claimed by the lane, beside the handlers
    Mutex mutex_;
    Condition idle_;
    bool claiming_ ANGELIA_GUARDED_BY(mutex_) = false;  ///< one claim at a time
    bool again_ ANGELIA_GUARDED_BY(mutex_) = false;     ///< asked for meanwhile
    std::unordered_map<bson::ObjectId, std::int64_t> lost_
        ANGELIA_GUARDED_BY(mutex_);  // id: server time of the lock's end
    std::deque<bson::ObjectId> lost_order_ ANGELIA_GUARDED_BY(mutex_);
};

}  // namespace angelia::messaging
