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
#include <random>
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

    FailPointHit copy() const;
};

/// What failCommand chooses commands by.
struct CommandFacts {
    const CommandEntry& entry;
    std::string_view sent_name;  ///< as the client spelled it; the entry may be that of an alias,
                                 ///< or of everything unknown
    std::string_view application;
    std::string_view ns;
};

/// Threads: safe.
class FailPoints {
  public:
    /// Sets or ends one point; returns how often it was hit since the server began. Errors, and
    /// nothing changed: FailPointSetFailed (unknown name), BadValue, TypeMismatch, InvalidOptions,
    /// Location40414, Location40415 (mode or data).
    Result<std::int32_t> configure(std::string_view name, bson::ValueView mode,
                                   bson::DocumentView data);

    /// False: nothing is set. Costs one load.
    bool any() const { return any_.load(std::memory_order_relaxed); }
    /// failCommand. Counts only when the command is meant.
    std::optional<FailPointHit> on_command(const CommandFacts& facts);
    /// failGetMoreAfterCursorCheckout.
    std::optional<FailPointHit> on_get_more() { return meet("failGetMoreAfterCursorCheckout"); }
    /// onPrimaryTransactionalWrite; error_code: the statement must not be committed.
    std::optional<FailPointHit> on_transactional_write() {
        return meet("onPrimaryTransactionalWrite");
    }

  private:
    enum class Mode { Off, AlwaysOn, Times, Skip, Random };
    struct Point {
        Mode mode = Mode::Off;
        std::int64_t left = 0;  // of times or skip
        double probability = 0;
        std::int32_t hits = 0;
        std::vector<std::string> commands;
        std::optional<std::string> application, ns;
        FailPointHit hit;
    };
    static Result<Point> parse_mode(bson::ValueView mode);
    static Result<void> parse_command_data(bson::DocumentView data, Point& point);
    static Result<void> parse_get_more_data(bson::DocumentView data, Point& point);
    static Result<void> parse_write_data(bson::DocumentView data, Point& point);
    std::optional<FailPointHit> meet(std::string_view name);
    bool use(Point& point) ANGELIA_REQUIRES(mutex_);

    std::atomic<bool> any_{false};
    Mutex mutex_;
    std::map<std::string, Point, std::less<>> points_ ANGELIA_GUARDED_BY(mutex_);
    std::minstd_rand random_ ANGELIA_GUARDED_BY(mutex_){std::random_device{}()};
};

}  // namespace angelia::engine::command
