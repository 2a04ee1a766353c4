// Moments that snapshot reads were told of, to be asked for again (contract 6.4). Only these: a
// moment that no reply named is gone.
#pragma once

#include "engine/core.h"
#include "engine/read_view.h"

#include <deque>

namespace angelia::engine {

inline constexpr std::size_t kSnapshotsMax = 64;

/// Threads: safe.
class SnapshotHistory {
  public:
    explicit SnapshotHistory(Core& core) : core_(core) {}

    /// The newest moment, kept under its time from now on.
    ReadView take();
    /// Errors: SnapshotTooOld (passed, and not kept or no longer), SnapshotUnavailable (yet to
    /// come).
    Result<ReadView> find(bson::Timestamp at);
    void forget_old();
    std::size_t size() const;

  private:
    struct Kept {
        ReadView view;
        SteadyTime taken;
    };
    void forget_old_locked();

    Core& core_;
    mutable std::mutex mutex_;
    std::deque<Kept> kept_;  // guarded by mutex_; oldest first
};

}  // namespace angelia::engine
