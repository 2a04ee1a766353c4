#include "engine/read_view.h"

#include "engine/core.h"

namespace angelia::engine {

ReadView read_view(storage::View view) {
    return {std::move(view.snapshot), std::static_pointer_cast<const CatalogView>(view.state),
            view.position};
}

ReadView current_view(Core& core) { return read_view(core.storage->published()); }

Result<Counters> read_counters(const storage::Reader& reader, storage::CollectionId collection) {
    std::string stored;
    ANGELIA_TRY_ASSIGN(bool there,
                       reader.get(storage::Family::Meta, counter_key(collection), stored));
    return there ? decode_counters(stored) : Counters{};
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
