#include "engine/storage/workspace.h"

#include "engine/storage/overlay.h"
#include "engine/storage/reader.h"

namespace angelia::engine::storage {

namespace {

// Most transactions are a handful of small changes.
constexpr std::size_t kWorkspaceBlockBytes = 4 * 1024;

class SnapshotWorkspace final : public Workspace {
  public:
    SnapshotWorkspace(DatabasePtr database, SnapshotPtr snapshot)
        : base_(std::move(database), std::move(snapshot)), changes_(kWorkspaceBlockBytes) {}

    void put(Family family, std::string_view key, std::string_view value) override {
        changes_.put(family, key, value);
    }
    void erase(Family family, std::string_view key) override { changes_.erase(family, key); }
    const Reader& base() const override { return base_; }
    std::size_t bytes() const override { return changes_.bytes(); }

    Result<bool> get(Family family, std::string_view key, std::string& value) const override {
        return get_over(changes_, base_, family, key, value);
    }
    IteratorPtr iterate(Family family, std::string_view lower,
                        std::string_view upper) const override {
        return merge(base_.iterate(family, lower, upper), changes_, family, lower, upper);
    }

    void for_each(const std::function<void(const Change&)>& visit) const override {
        for (int i = 0; i < kFamilyCount; ++i) {
            const auto family = static_cast<Family>(i);
            for (auto e = changes_.at_or_after(family, {}); e; e = changes_.after(family, e->key)) {
                Change change{family, e->key, std::nullopt};
                if (!e->erased) change.value = e->value;
                visit(change);
            }
        }
    }

  private:
    const DatabaseReader base_;
    Overlay changes_;
};

}  // namespace

std::unique_ptr<Workspace> make_workspace(DatabasePtr database, SnapshotPtr snapshot) {
    return std::make_unique<SnapshotWorkspace>(std::move(database), std::move(snapshot));
}

}  // namespace angelia::engine::storage
