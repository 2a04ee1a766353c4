#include "engine/read_view.h"

#include "engine/core.h"

namespace angelia::engine {

ReadView current_view(Core& core) {
    std::lock_guard lock(core.apply_mutex);
    return {core.storage->snapshot(), core.catalog.view(), core.storage->applied()};
}

namespace {

class PinnedSnapshot final : public PinnedView {
  public:
    PinnedSnapshot(Core& core, ReadView view)
        : core_(core),
          view_(std::move(view)),
          reader_(core.storage->at(view_.snapshot)),
          pinned_(core.clock().steady_now()) {}
    const storage::Reader& reader() const override { return *reader_; }
    Result<CollectionPtr> collection(const Namespace& ns) const override {
        const auto window = std::chrono::seconds(core_.settings.snapshot_window_seconds.load());
        if (core_.clock().steady_now() - pinned_ >= window)
            return Error(ErrorCode::SnapshotTooOld,
                         "the snapshot of this cursor has been kept as long as it may be");
        return view_.catalog->find(ns);
    }
    std::optional<bson::Timestamp> time() const override { return view_.position.time; }

  private:
    Core& core_;
    const ReadView view_;
    const std::unique_ptr<storage::Reader> reader_;
    const SteadyTime pinned_;
};

}  // namespace

PinnedViewPtr pin(Core& core, ReadView view) {
    return std::make_shared<PinnedSnapshot>(core, std::move(view));
}

}  // namespace angelia::engine
