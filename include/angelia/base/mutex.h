// A mutex that clang's thread-safety analysis understands (-Wthread-safety): fields say
// ANGELIA_GUARDED_BY(mutex_), functions that need the lock say ANGELIA_REQUIRES(mutex_). With other
// compilers the words mean nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define ANGELIA_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ANGELIA_THREAD_ANNOTATION(x)
#endif
#define ANGELIA_CAPABILITY(x) ANGELIA_THREAD_ANNOTATION(capability(x))
#define ANGELIA_SCOPED_CAPABILITY ANGELIA_THREAD_ANNOTATION(scoped_lockable)
#define ANGELIA_GUARDED_BY(x) ANGELIA_THREAD_ANNOTATION(guarded_by(x))
#define ANGELIA_REQUIRES(...) ANGELIA_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ANGELIA_EXCLUDES(...) ANGELIA_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ANGELIA_ACQUIRE(...) ANGELIA_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ANGELIA_RELEASE(...) ANGELIA_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define ANGELIA_TRY_ACQUIRE(...) ANGELIA_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define ANGELIA_NO_THREAD_SAFETY_ANALYSIS ANGELIA_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace angelia {

class ANGELIA_CAPABILITY("mutex") Mutex {
  public:
    void lock() ANGELIA_ACQUIRE() { mutex_.lock(); }
    void unlock() ANGELIA_RELEASE() { mutex_.unlock(); }
    bool try_lock() ANGELIA_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

  private:
    friend class Condition;
    std::mutex mutex_;
};

/// Holds a Mutex while it lives; unlock() and lock() in between are allowed, in turn.
class ANGELIA_SCOPED_CAPABILITY MutexLock {
  public:
    explicit MutexLock(Mutex& mutex) ANGELIA_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexLock() ANGELIA_RELEASE() {
        if (held_) mutex_.unlock();
    }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;
    void unlock() ANGELIA_RELEASE() {
        held_ = false;
        mutex_.unlock();
    }
    void lock() ANGELIA_ACQUIRE() {
        mutex_.lock();
        held_ = true;
    }

  private:
    Mutex& mutex_;
    bool held_ = true;
};

/// A condition variable for Mutex. Callers loop over their condition themselves: the analysis
/// cannot see into predicates.
class Condition {
  public:
    void wait(Mutex& mutex) ANGELIA_REQUIRES(mutex) {
        std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
        condition_.wait(lock);
        lock.release();
    }
    /// False when `deadline` passed; the condition may hold all the same.
    template <class Clock, class Duration>
    bool wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& deadline)
        ANGELIA_REQUIRES(mutex) {
        std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
        const bool in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
        lock.release();
        return in_time;
    }
    void notify_one() noexcept { condition_.notify_one(); }
    void notify_all() noexcept { condition_.notify_all(); }

  private:
    std::condition_variable condition_;
};

}  // namespace angelia
