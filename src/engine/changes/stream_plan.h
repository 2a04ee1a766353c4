// What a watcher asked for, checked and compiled: scope, starting point, shape of the events,
// filter, stages.
#pragma once

#include "engine/aggregation/pipeline.h"
#include "engine/changes/event_filter.h"
#include "engine/changes/subscription_index.h"
#include "engine/engine.h"

#include <array>
#include <optional>
#include <string>

namespace angelia::engine::changes {

enum class AfterImage : std::uint8_t { Default, UpdateLookup, WhenAvailable, Required };
enum class BeforeImage : std::uint8_t { Off, WhenAvailable, Required };

struct StartPoint {
    enum class Kind : std::uint8_t { Now, After, AtTime };
    Kind kind = Kind::Now;
    ResumeToken token;     ///< After
    bson::Timestamp time;  ///< AtTime: events at or after it
};

/// Immutable after parse. Threads: safe.
class StreamPlan {
  public:
    /// Errors: see ChangeStreams::open. ChangeStreamHistoryLost when the token is another store's.
    static Result<StreamPlan> parse(const WatchSpec& spec, const StoreId& store);

    WatchSpec::Scope scope() const { return scope_; }
    const Namespace& ns() const { return ns_; }
    const StartPoint& start() const { return start_; }
    const EventShape& shape() const { return shape_; }
    AfterImage after_image() const { return after_image_; }
    BeforeImage before_image() const { return before_image_; }
    const EventFilter& filter() const { return filter_; }
    /// The stages behind the leading filters.
    const aggregation::Pipeline& stages() const { return stages_; }

    /// Events that are too large are handed out in fragments.
    bool splits_events() const { return splits_events_; }

    /// The entry happens inside what is watched (whatever its operation).
    bool in_scope(const EventNamespace& ns, Operation operation) const;
    /// The stream ends behind this operation.
    bool invalidated_by(Operation operation) const;
    /// An entry in scope: can the stream have anything to do with it? Yes for what invalidates.
    Verdict concern(const EventNamespace& ns, Operation operation) const;
    /// What an entry must fulfil for concern() to be anything but No.
    const std::vector<Interest>& interests() const { return interests_; }
    /// The event of this operation needs a document that is not in the oplog entry.
    bool needs_lookup(Operation operation) const;
    /// What this stream cannot go on without and the entry does not carry: a kept image. Nothing
    /// when all is there. Errors inside: NoMatchingDocument.
    std::optional<Error> missing_image(const OplogEntry& entry, Operation operation) const;
    /// Yes: passes the filter. Maybe: ask filter().matches().
    Verdict judge(const EventNamespace& ns, Operation operation) const;

  private:
    Result<void> parse_options(bson::DocumentView options, const StoreId& store);
    Result<void> parse_start(std::string_view name, bson::ValueView value, const StoreId& store);
    Result<void> parse_stages(bson::DocumentView stages);
    Result<void> check_scope(bool all_changes_for_cluster);
    /// Takes a $changeStreamSplitLargeEvent off the end.
    Result<bson::Document> take_split_stage(bson::DocumentView stages);
    std::vector<Interest> find_interests() const;

    WatchSpec::Scope scope_ = WatchSpec::Scope::Collection;
    Namespace ns_;
    StartPoint start_;
    EventShape shape_;
    AfterImage after_image_ = AfterImage::Default;
    BeforeImage before_image_ = BeforeImage::Off;
    EventFilter filter_;
    aggregation::Pipeline stages_;
    bool splits_events_ = false;
    /// A collection's stream sees one namespace: its verdicts are known from the start.
    std::array<Verdict, kOperationCount> collection_verdicts_{};
    std::vector<Interest> interests_;
};

/// An error with the label that tells drivers not to resume.
Error non_resumable(ErrorCode code, std::string message);

}  // namespace angelia::engine::changes
