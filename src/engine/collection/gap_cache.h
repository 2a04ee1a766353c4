// Remembers stretches of keys in which nothing lives. The front of a queue is tombstones; walking
// over them again for every poll costs milliseconds (docs/engine.md). Only a cache: losing a gap
// costs time, never an answer.
//
// A gap holds for every view from one commit on: nothing was put there since. Readers see views of
// different ages, so a gap is skipped only in views that are at least as new as the one it was
// learnt in, and what was put after the view of a reader is cut out of what the reader learns.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::engine {

inline constexpr std::size_t kGapsMax = 64;
inline constexpr std::size_t kRecentPutsMax = 4096;

/// The gaps of one index, or of the records of one collection. Threads: safe.
class GapCache {
  public:
    /// A reader that learns; while it lives, the puts since its view are kept.
    struct Lesson {
        std::uint64_t sequence = 0;
    };
    using LessonPtr = std::shared_ptr<const Lesson>;  ///< shared by the reader and, weakly, by us

    /// What a reader may do. The default one neither skips nor learns: for readers with changes of
    /// their own, and for old views.
    struct Ticket {
        bool skips = false;
        std::uint64_t sequence = 0;  ///< of its view
        LessonPtr lesson;
    };
    /// For a reader of the view of commit `sequence` (storage::View), without changes of its own.
    Ticket begin(std::uint64_t sequence);
    /// For a reader inside the apply section, also behind changes of the section.
    static Ticket inside() { return {true, UINT64_MAX, nullptr}; }

    /// The end of the gap that `key` lies in, or an empty string.
    std::string skip(std::string_view key, const Ticket& ticket) const;
    /// The reader of `lesson` saw nothing in [start, end).
    void learn(const LessonPtr& lesson, std::string_view start, std::string_view end);

    /// In the apply section, before the commit: `key` is about to live, from commit `sequence` on.
    /// No reader that is yet to begin has a view before that of commit `oldest_view`, or it
    /// learns nothing.
    void put(std::string_view key, std::uint64_t sequence, std::uint64_t oldest_view);

    std::size_t size() const { return count_.load(std::memory_order_acquire); }
    /// For tests.
    std::size_t recent_puts() const;

  private:
    struct Gap {
        std::string end;
        std::uint64_t since = 0;  ///< the commit from which on it holds
        std::uint64_t learnt = 0;
    };
    struct Put {
        std::uint64_t sequence = 0;
        std::string key;
    };
    void remember_put(std::string_view key, std::uint64_t sequence, std::uint64_t oldest_view);
    void forget_oldest_gap();

    mutable std::mutex mutex_;
    // guarded by mutex_
    std::map<std::string, Gap, std::less<>> gaps_;  ///< by start; disjoint
    std::vector<std::weak_ptr<const Lesson>> lessons_;
    std::deque<Put> puts_;         ///< in commit order
    std::uint64_t forgotten_ = 0;  ///< puts up to this commit are not (all) in puts_
    std::uint64_t learnt_ = 0;
    std::atomic<std::size_t> count_{0};  ///< gaps_.size(), to be looked at without the lock
};

}  // namespace angelia::engine
