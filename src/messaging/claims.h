// Becomes the one that handles an exclusive message: batches of conditional writes on the lane.
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
    /// `poll`: look at the collection; `claimed`: after each round of claims.
    void set_hooks(std::function<void(bool soon)> poll, std::function<void()> claimed) {
        poll_ = std::move(poll);
        claimed_ = std::move(claimed);
    }

    /// There are candidates, or there is room again.
    void wake();

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
    std::function<void(bool)> poll_;
    std::function<void()> claimed_;
    std::atomic<bool> posted_{false};

    static constexpr std::size_t kLostMax = 10'000;
    Mutex mutex_;
    std::unordered_map<bson::ObjectId, std::int64_t> lost_
        ANGELIA_GUARDED_BY(mutex_);  // id: server time of the lock's end
    std::deque<bson::ObjectId> lost_order_ ANGELIA_GUARDED_BY(mutex_);
};

}  // namespace angelia::messaging
