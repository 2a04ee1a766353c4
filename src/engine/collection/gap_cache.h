// Remembers stretches of keys in which nothing lives. The front of a queue is tombstones; walking
// over them again for every poll costs milliseconds (docs/engine.md). Only a cache: losing a gap
// costs time, never an answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::engine {

inline constexpr std::size_t kGapsMax = 64;
inline constexpr std::size_t kLessonPutsMax = 4096;

/// The gaps of one index, or of the records of one collection. Threads: safe.
class GapCache {
  public:
    /// What was put since a reader began: a gap that it saw must not swallow these keys.
    struct Lesson {
        std::vector<std::string> puts;
        bool useless = false;
    };
    using LessonPtr = std::shared_ptr<Lesson>;  ///< shared by the reader and, weakly, by the cache

    /// Call before the reader's snapshot is made. `epoch`: gaps up to it hold in that snapshot. No
    /// lesson while a writer has put keys that the snapshot may or may not show.
    struct Ticket {
        std::uint64_t epoch = 0;
        LessonPtr lesson;
    };
    Ticket begin();
    /// For a reader inside the apply section: every gap holds there.
    static Ticket inside() { return {UINT64_MAX, nullptr}; }

    /// The end of the gap that `key` lies in, or an empty string.
    std::string skip(std::string_view key, std::uint64_t epoch) const;
    /// The reader of `lesson` saw nothing in [start, end).
    void learn(const LessonPtr& lesson, std::string_view start, std::string_view end);

    /// In the apply section, before the commit: `key` is about to live.
    void put(std::string_view key);
    /// The section that put keys has ended, whatever came of it.
    void end_section();

    std::size_t size() const { return count_.load(std::memory_order_acquire); }

  private:
    struct Gap {
        std::string end;
        std::uint64_t epoch = 0;
    };
    void forget_oldest();

    mutable std::mutex mutex_;
    // guarded by mutex_
    std::map<std::string, Gap, std::less<>> gaps_;  ///< by start; disjoint
    std::vector<std::weak_ptr<Lesson>> lessons_;
    std::uint64_t epoch_ = 0;
    bool writing_ = false;
    std::atomic<std::size_t> count_{0};  ///< gaps_.size(), to be looked at without the lock
};

}  // namespace angelia::engine
