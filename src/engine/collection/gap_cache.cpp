#include "engine/collection/gap_cache.h"

#include <algorithm>
#include <iterator>

namespace angelia::engine {

GapCache::Ticket GapCache::begin(std::uint64_t sequence) {
    std::lock_guard lock(mutex_);
    std::erase_if(lessons_, [](const auto& lesson) { return lesson.expired(); });
    if (sequence < forgotten_) return {true, sequence, nullptr};
    auto lesson = std::make_shared<const Lesson>(Lesson{sequence});
    lessons_.push_back(lesson);
    return {true, sequence, std::move(lesson)};
}

std::string GapCache::skip(std::string_view key, const Ticket& ticket) const {
    if (!ticket.skips || size() == 0) return {};
    std::lock_guard lock(mutex_);
    auto it = gaps_.upper_bound(key);
    if (it == gaps_.begin()) return {};
    --it;
    return it->second.since <= ticket.sequence && key < it->second.end ? it->second.end
                                                                       : std::string();
}

void GapCache::learn(const LessonPtr& lesson, std::string_view start, std::string_view end) {
    if (!lesson) return;
    std::lock_guard lock(mutex_);
    auto since = lesson->sequence;
    if (since < forgotten_) return;
    std::string first(start), last(end);
    for (auto put = puts_.rbegin(); put != puts_.rend() && put->sequence > since; ++put)
        if (put->key >= first && put->key < last) last = put->key;
    if (first >= last) return;
    // Together with the gaps it touches.
    auto it = gaps_.upper_bound(first);
    if (it != gaps_.begin() && std::prev(it)->second.end >= first) --it;
    while (it != gaps_.end() && it->first <= last) {
        first = std::min(first, it->first);
        last = std::max(last, it->second.end);
        since = std::max(since, it->second.since);
        it = gaps_.erase(it);
    }
    gaps_[std::move(first)] = {std::move(last), since, ++learnt_};
    if (gaps_.size() > kGapsMax) forget_oldest_gap();
    count_.store(gaps_.size(), std::memory_order_release);
}

void GapCache::forget_oldest_gap() {
    auto oldest = std::min_element(gaps_.begin(), gaps_.end(), [](const auto& a, const auto& b) {
        return a.second.learnt < b.second.learnt;
    });
    gaps_.erase(oldest);
}

void GapCache::put(std::string_view key, std::uint64_t sequence, std::uint64_t oldest_view) {
    std::lock_guard lock(mutex_);
    remember_put(key, sequence, oldest_view);
    if (gaps_.empty()) return;
    auto it = gaps_.upper_bound(key);
    if (it == gaps_.begin()) return;
    --it;
    if (key >= it->second.end) return;
    // What lies behind the key is dropped: in a queue it is the part that never held anything.
    if (it->first == key)
        gaps_.erase(it);
    else
        it->second.end = std::string(key);
    count_.store(gaps_.size(), std::memory_order_release);
}

void GapCache::remember_put(std::string_view key, std::uint64_t sequence,
                            std::uint64_t oldest_view) {
    const auto forget_first = [this] {
        forgotten_ = std::max(forgotten_, puts_.front().sequence);
        puts_.pop_front();
    };
    if (!puts_.empty() && puts_.front().sequence <= oldest_view) {
        auto needed = oldest_view;
        for (const auto& weak : lessons_)
            if (const auto lesson = weak.lock()) needed = std::min(needed, lesson->sequence);
        while (!puts_.empty() && puts_.front().sequence <= needed) forget_first();
    }
    if (puts_.size() >= kRecentPutsMax) forget_first();
    puts_.push_back({sequence, std::string(key)});
}

std::size_t GapCache::recent_puts() const {
    std::lock_guard lock(mutex_);
    return puts_.size();
}

}  // namespace angelia::engine
