// Commands that wait for something else than the disk: awaitable hello and getMore on a change
// stream. They end early when their connection is gone or the server shuts down.
#pragma once

#include <angelia/base/mutex.h>

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace angelia::engine::command {

enum class AwaitEnd { ConnectionClosed, ServerChanged, Shutdown };

/// Whoever take()s an entry may answer it; everybody else comes too late. Threads: safe.
class Awaits {
  public:
    using Ended = std::function<void(AwaitEnd)>;

    /// `ended` runs at most once, without a lock held. `hello`: ends with ServerChanged too. After
    /// shutdown: 0, and nothing was added.
    std::uint64_t add(std::int32_t connection, bool hello, Ended ended) {
        const MutexLock lock(mutex_);
        if (shut_down_) return 0;
        const std::uint64_t id = ++last_id_;
        entries_.emplace(id, Entry{connection, hello, std::move(ended)});
        return id;
    }
    /// True for exactly one caller per id, and only if it has not ended.
    bool take(std::uint64_t id) {
        const MutexLock lock(mutex_);
        return entries_.erase(id) == 1;
    }
    void end_connection(std::int32_t connection) {
        end(AwaitEnd::ConnectionClosed,
            [connection](const Entry& e) { return e.connection == connection; });
    }
    void server_changed() {
        end(AwaitEnd::ServerChanged, [](const Entry& e) { return e.hello; });
    }
    void shut_down() {
        {
            const MutexLock lock(mutex_);
            shut_down_ = true;
        }
        end(AwaitEnd::Shutdown, [](const Entry&) { return true; });
    }

  private:
    struct Entry {
        std::int32_t connection;
        bool hello;
        Ended ended;
    };
    template <class Chosen>
    void end(AwaitEnd how, Chosen chosen) {
        std::vector<Ended> ended;
        {
            const MutexLock lock(mutex_);
            for (auto it = entries_.begin(); it != entries_.end();) {
                if (!chosen(it->second)) {
                    ++it;
                    continue;
                }
                ended.push_back(std::move(it->second.ended));
                it = entries_.erase(it);
            }
        }
        for (auto& f : ended) f(how);
    }

    Mutex mutex_;
    std::uint64_t last_id_ ANGELIA_GUARDED_BY(mutex_) = 0;
    bool shut_down_ ANGELIA_GUARDED_BY(mutex_) = false;
    std::unordered_map<std::uint64_t, Entry> entries_ ANGELIA_GUARDED_BY(mutex_);
};

}  // namespace angelia::engine::command
