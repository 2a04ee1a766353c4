#include "engine/collection/gap_cache.h"

#include <algorithm>
#include <iterator>

namespace angelia::engine {

GapCache::Ticket GapCache::begin() {
    std::lock_guard lock(mutex_);
    Ticket ticket;
    ticket.epoch = epoch_;
    if (writing_) return ticket;
    ticket.lesson = std::make_shared<Lesson>();
    std::erase_if(lessons_, [](const auto& lesson) { return lesson.expired(); });
    lessons_.push_back(ticket.lesson);
    return ticket;
}

std::string GapCache::skip(std::string_view key, std::uint64_t epoch) const {
    if (size() == 0) return {};
    std::lock_guard lock(mutex_);
    auto it = gaps_.upper_bound(key);
    if (it == gaps_.begin()) return {};
    --it;
    return it->second.epoch <= epoch && key < it->second.end ? it->second.end : std::string();
}

void GapCache::learn(const LessonPtr& lesson, std::string_view start, std::string_view end) {
    std::lock_guard lock(mutex_);
    if (!lesson || lesson->useless) return;
    std::string first(start), last(end);
    for (const auto& key : lesson->puts)
        if (key >= first && key < last) last = key;
    if (first >= last) return;
    // Together with the gaps it touches.
    auto it = gaps_.upper_bound(first);
    if (it != gaps_.begin() && std::prev(it)->second.end >= first) --it;
    while (it != gaps_.end() && it->first <= last) {
        first = std::min(first, it->first);
        last = std::max(last, it->second.end);
        it = gaps_.erase(it);
    }
    gaps_[std::move(first)] = {std::move(last), ++epoch_};
    if (gaps_.size() > kGapsMax) forget_oldest();
    count_.store(gaps_.size(), std::memory_order_release);
}

void GapCache::forget_oldest() {
    auto oldest = std::min_element(gaps_.begin(), gaps_.end(), [](const auto& a, const auto& b) {
        return a.second.epoch < b.second.epoch;
    });
    gaps_.erase(oldest);
}

void GapCache::put(std::string_view key) {
    std::lock_guard lock(mutex_);
    writing_ = true;
    for (const auto& weak : lessons_) {
        const auto lesson = weak.lock();
        if (!lesson) continue;
        if (lesson->puts.size() >= kLessonPutsMax) lesson->useless = true;
        if (!lesson->useless) lesson->puts.emplace_back(key);
    }
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

void GapCache::end_section() {
    std::lock_guard lock(mutex_);
    writing_ = false;
    std::erase_if(lessons_, [](const auto& lesson) { return lesson.expired(); });
}

}  // namespace angelia::engine
