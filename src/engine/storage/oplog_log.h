// The oplog inside the storage: entries on their way to durable, the tail kept in memory,
// listeners, and what was trimmed. Internal to this folder.
#pragma once

#include "engine/changes/oplog.h"
#include "engine/storage/database.h"
#include "engine/storage/overlay.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace angelia::engine::storage {

/// Entries become readable in commit order and only when durable: add() in the apply section,
/// publish() by who advances the watermark. Threads: safe; add() only inside the apply section.
class OplogLog {
  public:
    OplogLog(DatabasePtr database, std::uint64_t bytes_max, std::size_t tail_bytes_max);

    /// Reads the trim marker and the newest entry. `created`: time of a store that is made now.
    Result<void> load();
    /// Value of the trim marker of a new store.
    static std::string fresh_marker(bson::Timestamp created);
    static constexpr std::string_view kMarkerKey = "oplog/trimmed";

    bson::Timestamp newest() const;  ///< newest readable entry; zero when there never was one

    void add(std::uint64_t sequence, const std::vector<OplogEntryPtr>& entries);
    /// Everything added with a commit up to `sequence` becomes readable. One caller at a time.
    void publish(std::uint64_t sequence);
    /// Gives the entries that became readable since the last call to the listeners, on this thread.
    /// One caller at a time.
    void tell_listeners();

    Result<Oplog::Entries> read(OplogPosition after, std::size_t limit,
                                std::size_t bytes_max) const;
    bson::Timestamp oldest() const;

    Oplog::ListenerId add_listener(Oplog::Listener listener);
    void remove_listener(Oplog::ListenerId id);

    // -- trimming: find the cut, write the marker durably (the caller), adopt it, delete
    struct Cut {
        OplogPosition trimmed;   ///< newest entry that goes
        bson::Timestamp oldest;  ///< oldest that stays
        std::string marker() const;
    };
    /// Nothing to do when nothing older than `time` is there. Never cuts above what is readable.
    Result<std::optional<Cut>> cut_before(bson::Timestamp time) const;
    /// Time before which entries have to go to keep the size; zero when nothing has to.
    bson::Timestamp due_cut() const;
    /// From now on readers behind the cut get ChangeStreamHistoryLost.
    void adopt(const Cut& cut);
    /// After the rows are gone: drops whole files too.
    Result<void> release_files(const Cut& cut);

    std::uint64_t bytes() const;

  private:
    struct Pending {
        std::uint64_t sequence;
        OplogEntryPtr entry;
    };
    /// A stretch of the oplog for size accounting; only whole ones are trimmed.
    struct Segment {
        bson::Timestamp last;
        std::uint64_t bytes;
    };
    struct ListenerSlot {
        Oplog::ListenerId id;
        std::shared_ptr<const Oplog::Listener> call;
    };

    static Error history_lost();
    Result<Oplog::Entries> read_store(OplogPosition after, OplogPosition upto, std::size_t limit,
                                      std::size_t bytes_max) const;
    void account(bson::Timestamp time, std::uint64_t bytes);

    const DatabasePtr database_;
    const std::uint64_t bytes_max_;
    const std::size_t tail_bytes_max_;

    std::mutex pending_mutex_;
    std::deque<Pending> pending_;  ///< applied, not yet durable; guarded by pending_mutex_

    mutable std::shared_mutex tail_mutex_;  // the fields below
    std::deque<OplogEntryPtr> tail_;
    std::size_t tail_bytes_ = 0;
    OplogPosition tail_after_{{}, 0};  ///< every readable entry above this position is in the tail
    OplogPosition newest_{{}, 0};
    OplogPosition trimmed_{{}, 0};
    bson::Timestamp oldest_;
    Oplog::Entries untold_;  ///< readable, listeners not told yet
    std::deque<Segment> segments_;
    std::uint64_t bytes_ = 0;

    std::mutex listeners_mutex_;  // the fields below
    std::condition_variable listener_done_;
    std::vector<ListenerSlot> listeners_;
    std::uint64_t next_listener_ = 1;
    std::optional<Oplog::ListenerId> running_;
    std::thread::id running_thread_;
};

}  // namespace angelia::engine::storage
