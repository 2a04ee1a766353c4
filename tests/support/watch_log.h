// What a watch said, for tests that wait for it.
#pragma once

#include <angelia/store/store.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace angelia::test_support {

/// How long a test waits for what must happen before it fails. Never how long something takes.
inline constexpr std::chrono::seconds kPatience{20};

/// Collects what a watch says. Threads: safe.
class WatchLog {
  public:
    store::WatchEvents events();
    /// Waits; false when patience ended first.
    bool wait_started(std::size_t count);
    bool wait_events(std::size_t count);
    bool wait_batches(std::size_t count);
    bool wait_errors(std::size_t count);

    /// One line per event: "insert 1", "update 1 {\"a\":2}", "delete 1".
    std::string text() const;
    std::vector<bson::Document> all() const;
    bson::Document last_token() const;
    std::vector<bool> gaps() const;
    std::vector<Error> errors() const;
    std::size_t calls() const;

  private:
    template <class Condition>
    bool wait(Condition&& condition);
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bson::Document> events_;
    std::vector<bool> gaps_;
    std::vector<Error> errors_;
    bson::Document token_;
    std::size_t batches_ = 0;
    std::size_t calls_ = 0;
};

}  // namespace angelia::test_support
