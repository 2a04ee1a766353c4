// A change stream inside the process: a position in the oplog, a filter, and a way to be woken.
// Cursors of the wire door and store_embedded both stand on it. Events: contract in
// docs/formats/change_events.md.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <functional>
#include <memory>
#include <vector>

namespace angelia::engine {

/// Threads: one reader at a time; wake-ups may come from any thread.
class ChangeStream {
  public:
    struct Batch {
        std::vector<bson::Document> events;
        bson::Document
            resume_token;     ///< post-batch token: resume after it and nothing is lost or repeated
        bool closed = false;  ///< an invalidate was delivered; the stream is over
    };
    virtual ~ChangeStream() = default;

    /// What is ready now, possibly nothing; never waits. A call looks at a bounded number of
    /// entries: it may hand out nothing although it is not at the end yet; then the token has moved
    /// and wake_once() answers at once. events_max 0 only fetches the token. Errors end the stream
    /// and are repeated: ChangeStreamHistoryLost, ChangeStreamFatalError, BSONObjectTooLarge,
    /// NoMatchingDocument, ShutdownInProgress (with their labels), CursorKilled after close().
    /// After an invalidate: no events, `closed`, each time.
    virtual Result<Batch> poll(std::size_t events_max, std::size_t bytes_max) = 0;

    /// Runs `wake` once, as soon as poll() may have something new (at once if it has already) or
    /// the stream died. A later call replaces the earlier one; an empty function cancels, though a
    /// wake-up that has begun may still be running on another thread then. Runs on the thread that
    /// advanced the watermark (or inside wake_once() itself) with no lock held: only set a flag or
    /// post.
    virtual void wake_once(std::function<void()> wake) = 0;

    virtual void close() = 0;
};

}  // namespace angelia::engine
