// What kind of failure an attempt met, and what follows from it. Ordered rules, the first that fits
// decides; what no rule knows is transient, because giving a message up is the worse mistake.
#pragma once

#include "delivery/retry.h"

#include <angelia/base/error.h>

#include <string>
#include <string_view>
#include <vector>

namespace angelia::delivery {

enum class FailureClass : std::uint8_t {
    Transient,  ///< time-outs, unreachable, overloaded: tried again, without limit by default
    Data,       ///< cannot be encoded, is too large, is refused by its schema: never tried again
    Logic,      ///< the receiver's rules refuse it: never tried again by itself
    Config,     ///< unknown topic, no right, no route: tried again slowly, and somebody is told
};
std::string_view name_of(FailureClass kind);

struct Failure {
    std::string code;     ///< short name or number: "NetworkTimeout", "http 429"
    std::string message;  ///< for people
    std::optional<milliseconds> retry_after{};  ///< the other side said: not before
    bool of_connection = false;  ///< the sink as a whole, not this message: no attempt is counted

    static Failure from(const Error& error);
};

/// One rule: a code, where `*` stands for any characters, and what it means.
struct FailureRule {
    std::string code;
    FailureClass kind = FailureClass::Transient;
};

/// Threads: safe.
class Classification {
  public:
    /// `rules` come before the defaults.
    explicit Classification(std::vector<FailureRule> rules = {});
    FailureClass classify(const Failure& failure) const;

  private:
    std::vector<FailureRule> rules_;
};

struct RetryLimits {
    RetrySchedule schedule = RetrySchedule::enterprise();
    std::optional<std::int32_t> attempts_max{};  ///< of transient failures; nothing = no limit
    std::optional<std::int32_t> config_attempts_max{};
    bool hold_logic = false;  ///< failures of logic wait for a person instead of being dead
};

enum class AfterFailure : std::uint8_t { TryAgain, GiveUp, Hold };
struct NextAttempt {
    AfterFailure action = AfterFailure::TryAgain;
    milliseconds delay{};  ///< TryAgain
    bool counted = true;   ///< the attempt counts against the limits
    bool tell_somebody = false;
};

/// `failures_before`: counted failures of this message so far, without this one. `random`: 0 to 1.
NextAttempt after_failure(const RetryLimits& limits, FailureClass kind, const Failure& failure,
                          std::int32_t failures_before, double random);

inline constexpr std::size_t kErrorTextCharactersMax = 500;
inline constexpr std::size_t kErrorCodeCharactersMax = 64;
/// As it is stored: control characters replaced by spaces, invalid UTF-8 by U+FFFD, cut at a
/// character's border.
std::string storable_text(std::string_view text, std::size_t characters_max);

}  // namespace angelia::delivery
