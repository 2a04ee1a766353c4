// The merging iterator of an apply section: stored keys and the section's own changes in one order.
#include "engine/storage/overlay.h"

namespace angelia::engine::storage {
namespace {

class MergingIterator final : public Iterator {
  public:
    MergingIterator(IteratorPtr stored, const Overlay& changes, Family family,
                    std::string_view lower, std::string_view upper)
        : stored_(std::move(stored)),
          changes_(changes),
          family_(family),
          lower_(lower),
          upper_(upper) {}

    void seek(std::string_view key) override {
        const std::string from(
            std::max(key, std::string_view(lower_)));  // a copy: `key` may be our own
        stored_->seek(from);
        settle(changes_.at_or_after(family_, from));
    }
    void seek_to_first() override { seek(lower_); }
    void seek_to_last() override {
        if (!upper_.empty()) return seek_before(upper_);
        stored_->seek_to_last();
        settle_backward(changes_.last(family_));
    }
    void seek_before(std::string_view key) override {
        const std::string bound(upper_.empty() ? key : std::min(key, std::string_view(upper_)));
        stored_->seek_before(bound);
        settle_backward(changes_.before(family_, bound));
    }
    void next() override {
        const std::string current(key_);
        if (stored_->valid() && stored_->key() == current) stored_->next();
        settle(changes_.after(family_, current));
    }
    void prev() override { seek_before(std::string(key_)); }

    bool valid() const override { return valid_; }
    std::string_view key() const override { return key_; }
    std::string_view value() const override { return own_ ? own_->value : stored_->value(); }
    Result<void> status() const override { return stored_->status(); }

  private:
    bool inside(std::string_view key) const {
        return key >= lower_ && (upper_.empty() || key < upper_);
    }

    /// Both sides stand at or after the wanted key: takes the smaller one that is not erased.
    void settle(std::optional<Overlay::Entry> own) {
        valid_ = false;
        for (;;) {
            while (stored_->valid()) {
                const auto* range = changes_.hiding(family_, stored_->key());
                if (range == nullptr) break;
                if (range->upper.empty()) return settle_own_only(own);
                stored_->seek(range->upper);
            }
            if (own && !inside(own->key)) own.reset();
            if (!own && !stored_->valid()) return;
            if (!own || (stored_->valid() && stored_->key() < own->key)) return take_stored();
            if (!own->erased) return take_own(*own);
            if (stored_->valid() && stored_->key() == own->key) stored_->next();
            own = changes_.after(family_, own->key);
        }
    }
    /// Nothing stored is visible any more.
    void settle_own_only(std::optional<Overlay::Entry> own) {
        while (own && own->erased) own = changes_.after(family_, own->key);
        if (own && inside(own->key)) take_own(*own);
    }

    /// Both sides stand at or before the wanted key: takes the greater one that is not erased, then
    /// turns both forward again.
    void settle_backward(std::optional<Overlay::Entry> own) {
        valid_ = false;
        for (;;) {
            while (stored_->valid()) {
                const auto* range = changes_.hiding(family_, stored_->key());
                if (range == nullptr) break;
                stored_->seek_before(range->lower);
            }
            if (own && !inside(own->key)) own.reset();
            if (!own && !stored_->valid()) return;
            if (!own || (stored_->valid() && stored_->key() > own->key))
                return seek(std::string(stored_->key()));
            if (!own->erased) return seek(own->key);
            if (stored_->valid() && stored_->key() == own->key) stored_->prev();
            own = changes_.before(family_, own->key);
        }
    }

    void take_stored() {
        valid_ = true;
        own_.reset();
        key_ = stored_->key();
    }
    void take_own(const Overlay::Entry& own) {
        valid_ = true;
        own_ = own;
        key_ = own.key;
    }

    IteratorPtr stored_;
    const Overlay& changes_;
    Family family_;
    std::string lower_, upper_;
    bool valid_ = false;
    std::optional<Overlay::Entry> own_;  ///< the current one, if it is a change of the section
    std::string_view key_;
};

}  // namespace

IteratorPtr merge(IteratorPtr stored, const Overlay& changes, Family family, std::string_view lower,
                  std::string_view upper) {
    return std::make_unique<MergingIterator>(std::move(stored), changes, family, lower, upper);
}

}  // namespace angelia::engine::storage
