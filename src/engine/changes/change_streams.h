// All change streams of one engine: opens them, knows which collection each of them watches, and
// wakes those that a commit concerns. Events: docs/formats/change_events.md. Tokens:
// docs/formats/resume_token.md.
#pragma once

#include "engine/changes/change_stream.h"
#include "engine/changes/oplog.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace angelia::engine {

struct WatchSpec;
namespace changes {
class StreamHub;
}

/// What the streams ask of the engine.
struct ChangeStreamHooks {
    /// For fullDocument: "updateLookup": the document that now has the `_id` of this entry, in the
    /// collection that now has the entry's name; nothing when either is gone. Called inside poll(),
    /// without a lock that other streams or commits need.
    std::function<Result<std::optional<bson::Document>>(const OplogEntry&)> lookup;
    /// Storage::store_id(); asked once.
    std::function<std::array<std::uint8_t, 8>()> store_id;
};

/// One per engine. Command entries (OpKind::Command) are read like this: the first field of the
/// payload names the command (`create`, `drop`, `dropDatabase`, `renameCollection`,
/// `createIndexes`, `dropIndexes`, `collMod`); db() and collection() of the entry say where;
/// dropDatabase has an empty collection and stands behind one `drop` entry for each collection.
/// Fields behind the first become `operationDescription` (createIndexes and dropIndexes: `indexes:
/// [specification]`). renameCollection stands under the old name and has `to: {db, coll}`; collMod
/// has `change` and `before` instead. Threads: safe.
class ChangeStreams {
  public:
    /// `oplog` must live until shutdown() returned.
    ChangeStreams(Oplog& oplog, ChangeStreamHooks hooks);
    ~ChangeStreams();  ///< shutdown()
    ChangeStreams(const ChangeStreams&) = delete;
    ChangeStreams& operator=(const ChangeStreams&) = delete;

    /// A stream that starts now, or where the options say. Errors: ChangeStreamHistoryLost,
    /// InvalidResumeToken, Location40674 (more than one starting point), Location40415 (unknown
    /// option), BadValue, TypeMismatch, IllegalOperation (stage that is not allowed), Location40602
    /// (second $changeStream), InvalidNamespace (internal collection), ShutdownInProgress, and
    /// those of the stages.
    Result<std::shared_ptr<ChangeStream>> open(const WatchSpec& spec);

    /// Ends all streams: each answers ShutdownInProgress (label ResumableChangeStreamError) from
    /// now on; waiting ones are woken. On return no poll is inside the oplog or a hook. Do not call
    /// it from a wake-up.
    void shutdown();

    struct Counters {
        std::uint64_t streams_opened = 0;
        std::uint64_t streams_open = 0;
        std::uint64_t streams_waiting = 0;  ///< with a wake-up set
        std::uint64_t history_lost =
            0;  ///< streams that died, or did not open, because their place was trimmed
        std::uint64_t entries_seen = 0;  ///< durable oplog entries looked at by the wake-up index
        std::uint64_t candidates = 0;    ///< (entry, stream) pairs evaluated for waking
        std::uint64_t wakeups = 0;
        std::uint64_t entries_read = 0;  ///< read from the oplog by polls
        std::uint64_t events_encoded = 0;
        std::uint64_t events_shared = 0;  ///< taken from the cache instead
        std::uint64_t events_delivered = 0;
        std::uint64_t lookups = 0;
    };
    Counters counters() const;

  private:
    std::shared_ptr<changes::StreamHub>
        hub_;  ///< shared with the streams, which may outlive this object
};

}  // namespace angelia::engine
