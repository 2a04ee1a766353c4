// Who may change what while transactions are open. A transaction takes an intent on every record
// and unique key it changes, keeps it to its end, and fails at once where somebody else was first;
// a plain write or a change of the catalog waits instead: it is parked whole, with nothing applied,
// and runs again when its turn has come.
#pragma once

#include "engine/storage/keys.h"

#include <angelia/base/executor.h>
#include <angelia/base/result.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace angelia::engine {

struct Namespace;

using TransactionId = std::uint64_t;  ///< of this process; 0 = none
using WaiterId = std::uint64_t;       ///< 0 = none

inline constexpr std::size_t kParkedMax = 100'000;

std::string record_intent(storage::CollectionId collection, storage::RecordId record);
std::string unique_intent(storage::IndexId index, std::string_view encoded);
/// Held by all transactions that changed something in the collection.
std::string collection_intent(storage::CollectionId collection);
/// Held by the transaction that makes the collection.
std::string namespace_intent(const Namespace& ns);

/// What an attempt answers when it must wait for `key`; never leaves the engine.
Error blocked_error(std::string key);
/// The key, or nothing when the error is another one.
std::optional<std::string> blocked_on(const Error& error);

/// Not thread-safe: guarded by the engine's apply mutex, except what says otherwise.
class IntentTable {
  public:
    /// `run_later`: where parked work runs again.
    void start(Executor& run_later) { run_later_ = &run_later; }

    /// Nobody holds anything and nobody waits. Threads: safe.
    bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
    /// Whether a plain write may change what `key` stands for: nobody holds it, and nobody waits
    /// for it longer.
    bool free_for(const std::string& key, WaiterId waiter) const;
    /// False when another transaction holds it or a plain write waits for it.
    bool take(TransactionId holder, const std::string& key);
    /// As take(), but several may hold it side by side.
    bool take_shared(TransactionId holder, const std::string& key);
    /// Lets all these keys go; who waits longest for each runs again.
    void release(TransactionId holder, const std::vector<std::string>& keys);

    // -- waiting
    /// Parks `resume` behind `key`. With an id, the waiter that parked before and ran again in
    /// between keeps its place or changes the key. Returns 0 when the key has become free
    /// meanwhile: try again at once. Errors: TemporarilyUnavailable (too many are waiting),
    /// ShutdownInProgress.
    Result<WaiterId> park(WaiterId waiter, const std::string& key, std::function<void()> resume);
    /// Runs it again although it is not its turn: its time is over.
    void nudge(WaiterId waiter);
    /// The waiter is through, or has given up: the next one's turn. False when it was not parked.
    bool leave(WaiterId waiter);
    /// Nobody parks any more; what is parked runs again at once and learns of the shutdown there.
    void shut_down();
    std::size_t parked() const { return parked_.load(std::memory_order_relaxed); }

  private:
    struct Waiter {
        std::string key;
        std::function<void()> resume;  ///< empty: it is running
    };
    struct Entry {
        std::vector<TransactionId> holders;
        std::deque<WaiterId> queue;
    };
    void wake_first(Entry& entry);
    void leave_queue(WaiterId waiter, const std::string& key);
    void update_size() { size_.store(entries_.size(), std::memory_order_release); }

    Executor* run_later_ = nullptr;
    std::unordered_map<std::string, Entry> entries_;
    std::unordered_map<WaiterId, Waiter> waiters_;
    WaiterId last_waiter_ = 0;
    bool closed_ = false;
    std::atomic<std::size_t> size_{0};
    std::atomic<std::size_t> parked_{0};
};

}  // namespace angelia::engine
