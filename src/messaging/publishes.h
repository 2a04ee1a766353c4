// Stores what is published. Few publishers at a time go straight to the store; where more come
// together, those that wait are stored by one call, as a batch grows with the load and costs
// nothing without it.
#pragma once

#include "messaging/context.h"

#include <deque>

namespace angelia::messaging {

/// Threads: safe.
class Publishes {
  public:
    explicit Publishes(Context& context) : context_(context) {}
    /// Returns when they are stored. Errors: the store's; of a single document in the result.
    Result<store::InsertResult> insert(std::span<const bson::DocumentView> documents);

  private:
    using Documents = std::span<const bson::DocumentView>;
    struct Waiting {
        Documents documents;
        Condition changed;
        std::vector<Waiting*> batch{};  ///< not empty: it stores these, itself the first of them
        std::optional<Result<store::InsertResult>> result;
    };
    using Batch = std::vector<Waiting*>;
    static constexpr std::size_t kInFlightMax = 2;
    static constexpr std::size_t kBatchDocumentsMax = 1000;
    static constexpr std::size_t kBatchBytesMax = 4u << 20;
    static constexpr std::size_t kAloneBytesMin = 64u << 10;  ///< gains nothing from company

    Result<store::InsertResult> store(Documents documents);
    Result<store::InsertResult> lead(Waiting& self);
    void hand_on() ANGELIA_REQUIRES(mutex_);

    Context& context_;
    Mutex mutex_;
    std::deque<Waiting*> waiting_ ANGELIA_GUARDED_BY(mutex_);
    std::size_t in_flight_ ANGELIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace angelia::messaging
