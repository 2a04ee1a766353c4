#include "engine/session/snapshot_history.h"

#include <fmt/format.h>

namespace angelia::engine {

ReadView SnapshotHistory::take() {
    auto view = current_view(core_);
    std::lock_guard lock(mutex_);
    forget_old_locked();
    // The same moment again is kept once, for longer.
    std::erase_if(kept_, [&](const Kept& k) { return k.view.position.time == view.position.time; });
    if (kept_.size() >= kSnapshotsMax) kept_.pop_front();
    kept_.push_back({view, core_.clock().steady_now()});
    return view;
}

Result<ReadView> SnapshotHistory::find(bson::Timestamp at) {
    {
        std::lock_guard lock(mutex_);
        forget_old_locked();
        for (const auto& k : kept_)
            if (k.view.position.time == at) return k.view;
    }
    if (at > core_.storage->durable().time)
        return Error(
            ErrorCode::SnapshotUnavailable,
            fmt::format("readConcern.atClusterTime {}:{} lies in the future of this server",
                        at.seconds, at.increment));
    return Error(
        ErrorCode::SnapshotTooOld,
        fmt::format("the snapshot of time {}:{} is not kept; the last {} times that replies "
                    "named are, for {} seconds",
                    at.seconds, at.increment, kSnapshotsMax,
                    core_.settings.snapshot_window_seconds.load()));
}

void SnapshotHistory::forget_old() {
    std::lock_guard lock(mutex_);
    forget_old_locked();
}

void SnapshotHistory::forget_old_locked() {
    const auto window = std::chrono::seconds(core_.settings.snapshot_window_seconds.load());
    const auto now = core_.clock().steady_now();
    while (!kept_.empty() && now - kept_.front().taken >= window) kept_.pop_front();
}

std::size_t SnapshotHistory::size() const {
    std::lock_guard lock(mutex_);
    return kept_.size();
}

}  // namespace angelia::engine
