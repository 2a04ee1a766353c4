// The index of who watches what. Commits run through it once; only streams that have read
// everything and that a new entry may concern are touched. All others cost nothing.
#pragma once

#include "engine/changes/change_streams.h"
#include "engine/changes/event_cache.h"
#include "engine/changes/stream_plan.h"

#include <angelia/base/mutex.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace angelia::engine::changes {

/// The hub's side of one stream. A stream is *watching* when its reader has read everything up to
/// `at` and the hub looks at each later entry for it; the first that may concern it is its `hit`,
/// and ends the watching. Lives inside the stream; add() and remove() frame its life in the hub.
class Subscription {
  public:
    explicit Subscription(StreamPlan plan) : plan_(std::move(plan)) {}
    const StreamPlan& plan() const { return plan_; }

  private:
    friend class StreamHub;
    // constant
    const StreamPlan plan_;
    // guarded by the hub's mutex
    bool added_ = false;
    bool watching_ = false;
    bool ended_ = false;  ///< closed, or dead: waking makes sense at once
    OplogPosition at_;
    std::optional<OplogPosition> hit_;
    std::function<void()> wake_;
    std::size_t slot_ = 0;  ///< its place in the bucket's list while watching
    SubscriptionIndex::Entry index_entry_;
};

/// Threads: safe. Lock order: a stream's own mutex, then the hub's, then the event cache's;
/// wake-ups run under none.
class StreamHub {
  public:
    StreamHub(Oplog& oplog, ChangeStreamHooks hooks);
    ~StreamHub();
    void shutdown() ANGELIA_EXCLUDES(mutex_);

    Oplog& oplog() { return oplog_; }
    const ChangeStreamHooks& hooks() const { return hooks_; }
    const StoreId& store_id() const { return store_id_; }
    EventCache& cache() { return cache_; }
    /// More than one stream may ask for an event.
    bool shares_events() const { return open_count_.load(std::memory_order_relaxed) > 1; }

    /// False after shutdown. Pairs with leave(): in between the oplog and the hooks are there.
    bool enter() ANGELIA_EXCLUDES(mutex_);
    void leave() ANGELIA_EXCLUDES(mutex_);

    void add(Subscription& subscription) ANGELIA_EXCLUDES(mutex_);
    void remove(Subscription& subscription) ANGELIA_EXCLUDES(mutex_);
    /// The stream is closed or dead: not watched any more. A waiting reader is woken.
    void end(Subscription& subscription) ANGELIA_EXCLUDES(mutex_);

    struct Progress {
        bool watching =
            false;  ///< nothing to read: the stream may stand at `position` without having looked
        OplogPosition position;  ///< where reading goes on
    };
    /// Where a reader that stood at `position` may go on without missing anything that concerns it.
    Progress progress(const Subscription& subscription, OplogPosition position)
        ANGELIA_EXCLUDES(mutex_);
    /// To be called when everything up to `position`, which includes all entries of its time, has
    /// been read. False when the hub has seen later entries meanwhile: read on.
    bool watch(Subscription& subscription, OplogPosition position) ANGELIA_EXCLUDES(mutex_);
    /// ChangeStream::wake_once.
    void set_wake(Subscription& subscription, std::function<void()> wake) ANGELIA_EXCLUDES(mutex_);

    void count_read(std::uint64_t entries) {
        entries_read_.fetch_add(entries, std::memory_order_relaxed);
    }
    void count_delivered(std::uint64_t events) {
        events_delivered_.fetch_add(events, std::memory_order_relaxed);
    }
    void count_lookup() { lookups_.fetch_add(1, std::memory_order_relaxed); }
    void count_history_lost() { history_lost_.fetch_add(1, std::memory_order_relaxed); }
    ChangeStreams::Counters counters() const ANGELIA_EXCLUDES(mutex_);

  private:
    using Wakes = std::vector<std::function<void()>>;
    struct Bucket {
        std::vector<Subscription*> watching;
        SubscriptionIndex index;        ///< of those that watch
        std::size_t subscriptions = 0;  ///< watching or not
    };
    void on_durable(const Oplog::Entries& entries) ANGELIA_EXCLUDES(mutex_);
    void offer(Bucket& bucket, const OplogEntry& entry, Operation operation, Wakes& wakes)
        ANGELIA_REQUIRES(mutex_);
    bool concerns(const Subscription& subscription, const OplogEntry& entry, Operation operation)
        ANGELIA_REQUIRES(mutex_);
    void stop_watching(Subscription& subscription, Bucket& bucket) ANGELIA_REQUIRES(mutex_);
    static std::string bucket_key(const StreamPlan& plan);
    Bucket* find_bucket(std::string_view db, std::string_view collection) ANGELIA_REQUIRES(mutex_);

    // constant
    Oplog& oplog_;
    const ChangeStreamHooks hooks_;
    const StoreId store_id_;
    Oplog::ListenerId listener_{};
    // own synchronisation
    EventCache cache_;
    std::atomic<std::uint64_t> open_count_{0}, entries_read_{0}, events_delivered_{0}, lookups_{0},
        history_lost_{0};
    // guarded by mutex_
    mutable Mutex mutex_;
    Condition idle_;
    std::size_t inside_ ANGELIA_GUARDED_BY(mutex_) = 0;  ///< readers between enter() and leave()
    bool shut_ ANGELIA_GUARDED_BY(mutex_) = false;
    OplogPosition seen_
        ANGELIA_GUARDED_BY(mutex_);  ///< every entry up to here was offered to those that watched
    std::unordered_map<std::string, Bucket> buckets_
        ANGELIA_GUARDED_BY(mutex_);  ///< by "db\0collection", "db\0" and ""
    std::string key_buffer_ ANGELIA_GUARDED_BY(mutex_);
    std::uint64_t opened_ ANGELIA_GUARDED_BY(mutex_) = 0, entries_seen_
                                                          ANGELIA_GUARDED_BY(mutex_) = 0;
    std::uint64_t candidates_ ANGELIA_GUARDED_BY(mutex_) = 0, wakeups_
                                                              ANGELIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace angelia::engine::changes
