// Where a stream stands and how it goes on after a failure: the rules that keep messages from being
// lost, without any I/O.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>
#include <angelia/store/store.h>

#include <optional>

namespace angelia::store::mongo {

inline constexpr milliseconds kHistoryLostPause{1'000};
inline constexpr milliseconds kFirstPause{50};
inline constexpr milliseconds kLongestPause{1'000};

/// Not thread-safe: belongs to the stream's thread.
class WatchPosition {
  public:
    explicit WatchPosition(const WatchRequest& request);

    /// The $changeStream stage for the next attempt. `start_after`: the server knows startAfter,
    /// which also accepts the token of an invalidate.
    bson::Document stage(bool update_lookup, bool start_after) const;
    /// True when the next start cannot promise that nothing was missed.
    bool gap() const { return !token_ && !start_at_; }
    bool has_token() const { return token_.has_value(); }

    /// An attempt succeeded: `reply` is the answer to aggregate. Its operationTime is the position
    /// until there is a token.
    void established(bson::DocumentView reply);
    /// All events of a batch were handed over: only now its token counts. `cursor`: the reply's
    /// cursor document; `last_event`: empty when there was none.
    void handed_over(bson::DocumentView cursor, bson::DocumentView last_event);
    /// The token to tell the owner with a batch: the one handed_over() would adopt, or the present
    /// one.
    bson::Document token_of(bson::DocumentView cursor, bson::DocumentView last_event) const;

    /// What an error means for the next attempt.
    struct Verdict {
        bool fatal = false;                ///< change streams do not exist here
        bool start_after_unknown = false;  ///< try again with resumeAfter, at once
        milliseconds pause{0};
    };
    /// A token that the server declared lost is dropped here and never used again.
    Verdict failed(const Error& error);
    void reset_pause() { pause_ = kFirstPause; }

  private:
    std::optional<bson::Document> token_;
    std::optional<bson::Timestamp> start_at_;
    milliseconds pause_{kFirstPause};
};

}  // namespace angelia::store::mongo
