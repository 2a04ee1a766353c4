// One change stream: reads the oplog from a position, makes events, filters them, keeps count of
// where it is.
#pragma once

#include "engine/changes/stream_hub.h"

namespace angelia::engine::changes {

class StreamReader final : public ChangeStream {
  public:
    /// Errors: ChangeStreamHistoryLost, and those of the oplog.
    static Result<std::shared_ptr<ChangeStream>> open(std::shared_ptr<StreamHub> hub,
                                                      StreamPlan plan);
    /// For open(): an unplaced stream.
    StreamReader(std::shared_ptr<StreamHub> hub, StreamPlan plan);
    ~StreamReader() override;

    Result<Batch> poll(std::size_t events_max, std::size_t bytes_max) override
        ANGELIA_EXCLUDES(mutex_);
    void wake_once(std::function<void()> wake) override;
    void close() override;

  private:
    struct Gathering;
    Result<void> place() ANGELIA_EXCLUDES(mutex_);
    /// The first entry that is read behind an event's token must be that event's. Errors:
    /// ChangeStreamFatalError.
    Result<void> check_resume_point(const OplogEntry& entry) ANGELIA_REQUIRES(mutex_);
    Result<void> gather(Gathering& out) ANGELIA_REQUIRES(mutex_);
    Result<void> process(const std::shared_ptr<const OplogEntry>& entry, Gathering& out)
        ANGELIA_REQUIRES(mutex_);
    /// Hands out what fits of an event, in fragments when it is too large; `seen` of them have been
    /// handed out before. True when nothing of it is left.
    Result<bool> deliver(const OplogEntry& entry, bson::Document event, std::uint16_t seen,
                         Gathering& out) ANGELIA_REQUIRES(mutex_);
    void deliver_fragments(Gathering& out) ANGELIA_REQUIRES(mutex_);
    Result<void> deliver_invalidate(Gathering& out) ANGELIA_REQUIRES(mutex_);
    /// The finished event, or nothing when the stream does not want it.
    Result<std::optional<bson::Document>> event_of(const OplogEntry& entry, Operation operation)
        ANGELIA_REQUIRES(mutex_);
    Result<std::optional<bson::Document>> through_stages(bson::Document event) const;
    bson::Document token() const ANGELIA_REQUIRES(mutex_);
    Error die(Error error) ANGELIA_REQUIRES(mutex_);

    // constant
    const std::shared_ptr<StreamHub>
        hub_;  ///< shared by all streams: they may outlive the ChangeStreams object
    // own synchronisation (the hub's)
    Subscription subscription_;
    std::atomic<bool> closed_{false};
    // guarded by mutex_
    Mutex mutex_;
    OplogPosition position_ ANGELIA_GUARDED_BY(mutex_);  ///< read up to here
    /// The entry at position_ made an event that has been handed out.
    bool at_event_ ANGELIA_GUARDED_BY(mutex_) = false;
    bool resume_point_checked_ ANGELIA_GUARDED_BY(mutex_) = false;
    std::optional<OplogPosition> resumed_at_ ANGELIA_GUARDED_BY(
        mutex_);  ///< entry whose event has been delivered before, not its invalidate
    std::shared_ptr<const OplogEntry> invalidating_
        ANGELIA_GUARDED_BY(mutex_);  ///< its invalidate comes next
    /// A split event of which not everything has been handed out; position_ is before its entry.
    struct Split {
        OplogPosition at;
        std::vector<bson::Document> fragments;
        std::size_t next = 0;
    };
    std::optional<Split> split_ ANGELIA_GUARDED_BY(mutex_);
    std::optional<ResumeToken> finished_
        ANGELIA_GUARDED_BY(mutex_);  ///< token of the delivered invalidate
    std::optional<Error> dead_ ANGELIA_GUARDED_BY(mutex_);
};

}  // namespace angelia::engine::changes
