// Events that were encoded a moment ago, kept so that streams with equal options share the work.
#pragma once

#include "engine/changes/event.h"

#include <angelia/base/mutex.h>

#include <atomic>
#include <deque>
#include <memory>
#include <unordered_map>

namespace angelia::engine::changes {

/// An encoded event, shared with the cache or owned alone.
class EncodedEvent {
  public:
    explicit EncodedEvent(std::shared_ptr<const bson::Document> shared)
        : shared_(std::move(shared)) {}
    explicit EncodedEvent(bson::Document own) : own_(std::move(own)) {}
    bson::DocumentView view() const { return shared_ ? shared_->view() : own_.view(); }
    /// The document to hand out: a copy only when it is shared.
    bson::Document release() && { return shared_ ? shared_->copy() : std::move(own_); }

  private:
    std::shared_ptr<const bson::Document> shared_;  ///< shared with the cache and other streams
    bson::Document own_;
};

/// Bounded; the oldest leave first. Threads: safe.
class EventCache {
  public:
    explicit EventCache(const StoreId& store) : store_(store) {}

    /// The event, from the cache or encoded now. `keep`: somebody else will probably ask for it
    /// too.
    EncodedEvent get(const OplogEntry& entry, Operation operation, const EventShape& shape,
                     bool keep) ANGELIA_EXCLUDES(mutex_);
    void clear() ANGELIA_EXCLUDES(mutex_);

    std::uint64_t encoded() const { return encoded_.load(std::memory_order_relaxed); }
    std::uint64_t shared() const { return shared_.load(std::memory_order_relaxed); }

  private:
    struct Key {
        std::uint64_t time;
        std::uint64_t sub_and_shape;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept {
            // The table takes the remainder: times that differ by whole seconds only must not meet.
            std::uint64_t h =
                key.time * 0x9E3779B97F4A7C15ull ^ key.sub_and_shape * 0xC2B2AE3D27D4EB4Full;
            h ^= h >> 32;
            return static_cast<std::size_t>(h * 0x9E3779B97F4A7C15ull ^ (h >> 29));
        }
    };
    void keep(const Key& key, std::shared_ptr<const bson::Document> event) ANGELIA_EXCLUDES(mutex_);

    // constant
    const StoreId store_;
    // own synchronisation
    std::atomic<std::uint64_t> encoded_{0}, shared_{0};
    // guarded by mutex_
    Mutex mutex_;
    std::unordered_map<Key, std::shared_ptr<const bson::Document>, Hash> events_
        ANGELIA_GUARDED_BY(mutex_);
    std::deque<Key> order_ ANGELIA_GUARDED_BY(mutex_);  ///< oldest first; one for each of events_
    std::size_t bytes_ ANGELIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace angelia::engine::changes
