#include "engine/changes/event_cache.h"

namespace angelia::engine::changes {
namespace {
/// A few commits' worth of events: readers that are woken by the same commit ask within
/// milliseconds of one another.
constexpr std::size_t kCacheBytesMax = std::size_t{8} << 20;
/// One event may not push everything else out.
constexpr std::size_t kCachedEventBytesMax = kCacheBytesMax / 8;
}  // namespace

EncodedEvent EventCache::get(const OplogEntry& entry, Operation operation, const EventShape& shape,
                             bool keep_it) {
    const Key key{entry.time().as_uint64(), (std::uint64_t{entry.sub()} << 8) | shape.key()};
    {
        MutexLock lock(mutex_);
        if (const auto found = events_.find(key); found != events_.end()) {
            shared_.fetch_add(1, std::memory_order_relaxed);
            return EncodedEvent(found->second);
        }
    }
    encoded_.fetch_add(1, std::memory_order_relaxed);
    bson::Document event = encode_event(entry, operation, shape, store_);
    if (!keep_it || event.size_bytes() > kCachedEventBytesMax)
        return EncodedEvent(std::move(event));
    auto shared = std::make_shared<const bson::Document>(std::move(event));
    keep(key, shared);
    return EncodedEvent(std::move(shared));
}

void EventCache::keep(const Key& key, std::shared_ptr<const bson::Document> event) {
    MutexLock lock(mutex_);
    const std::size_t size = event->size_bytes();
    if (!events_.emplace(key, std::move(event)).second) return;  // another thread was quicker
    order_.push_back(key);
    bytes_ += size;
    while (bytes_ > kCacheBytesMax) {
        const auto oldest = events_.find(order_.front());
        bytes_ -= oldest->second->size_bytes();
        events_.erase(oldest);
        order_.pop_front();
    }
}

void EventCache::clear() {
    MutexLock lock(mutex_);
    events_.clear();
    order_.clear();
    bytes_ = 0;
}

}  // namespace angelia::engine::changes
