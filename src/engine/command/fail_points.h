// Faults on demand, for driver tests: failCommand and its like (contract 10.3). Only reachable with
// test commands enabled.
#pragma once

#include <angelia/base/mutex.h>
#include <angelia/base/result.h>
#include <angelia/bson/builder.h>

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace angelia::engine::command {

struct CommandEntry;

/// What a command that met a fail point has to do.
struct FailPointHit {
    std::optional<std::int32_t> error_code;
    std::optional<std::vector<std::string>>
        error_labels;  ///< replace the automatic ones, also when empty
    bool close_connection = false;
    std::chrono::milliseconds block{0};
    bson::Document write_concern_error;  ///< empty = none
};

/// Threads: safe.
class FailPoints {
  public:
    /// Sets or ends one point; returns how often it was hit before. Errors: FailedToParse (unknown
    /// name, bad mode or data).
    Result<std::int32_t> configure(std::string_view name, bson::ValueView mode,
                                   bson::DocumentView data);

    /// Asked by every command; costs one load while nothing is set.
    std::optional<FailPointHit> on_command(const CommandEntry& entry, std::string_view application,
                                           std::string_view ns) {
        if (!any_.load(std::memory_order_relaxed)) return std::nullopt;
        return match_command(entry, application, ns);
    }
    /// failGetMoreAfterCursorCheckout.
    std::optional<FailPointHit> on_get_more() {
        if (!any_.load(std::memory_order_relaxed)) return std::nullopt;
        return match_plain("failGetMoreAfterCursorCheckout");
    }

  private:
    enum class Mode { AlwaysOn, Times, Skip };
    struct Point {
        Mode mode = Mode::AlwaysOn;
        std::int64_t left = 0;  // of times or skip
        std::int32_t hits = 0;
        bson::Document data;
    };
    std::optional<FailPointHit> match_command(const CommandEntry& entry,
                                              std::string_view application, std::string_view ns);
    std::optional<FailPointHit> match_plain(std::string_view name);
    static bool use(Point& point);

    std::atomic<bool> any_{false};
    Mutex mutex_;
    std::map<std::string, Point, std::less<>> points_ ANGELIA_GUARDED_BY(mutex_);
};

}  // namespace angelia::engine::command
