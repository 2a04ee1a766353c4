// Keeps a sink that is down from being tried by every message: after some failures in a row only
// one attempt at a time goes out, at a pace, until one succeeds. Waiting for it counts as no
// attempt.
#pragma once

#include <angelia/base/clock.h>

#include <cstdint>

namespace angelia::delivery {

struct BreakerOptions {
    std::int32_t failures_to_open = 20;  ///< transient ones, in a row
    milliseconds probe_every{5000};
};

/// Not thread-safe; the clock comes in.
class CircuitBreaker {
  public:
    explicit CircuitBreaker(BreakerOptions options = {}) : options_(options) {}

    enum class State : std::uint8_t { Closed, Open, Probing };
    State state() const { return state_; }

    /// Whether an attempt may go out now. While it is open this also hands out the probe: call it
    /// only for an attempt that is made then, and report how it went.
    bool may_try(SteadyTime now) {
        if (state_ == State::Closed) return true;
        if (state_ == State::Probing || now < next_probe_) return false;
        state_ = State::Probing;
        return true;
    }
    void succeeded() {
        state_ = State::Closed;
        failures_ = 0;
    }
    /// A failure of one message says nothing about the sink: report transient ones only.
    void failed(SteadyTime now) {
        ++failures_;
        if (state_ == State::Closed && failures_ < options_.failures_to_open) return;
        state_ = State::Open;
        next_probe_ = now + options_.probe_every;
    }
    /// The probe was given up without an answer.
    void withdrawn(SteadyTime now) {
        if (state_ == State::Probing) {
            state_ = State::Open;
            next_probe_ = now;
        }
    }
    /// When may_try() can become true again; meaningful while it is open.
    SteadyTime next_probe() const { return next_probe_; }

  private:
    BreakerOptions options_;
    State state_ = State::Closed;
    std::int32_t failures_ = 0;
    SteadyTime next_probe_{};
};

}  // namespace angelia::delivery
