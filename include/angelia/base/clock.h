// Time comes from a Clock that tests can turn.
#pragma once

#include <atomic>
#include <chrono>

namespace angelia {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using SystemTime = std::chrono::time_point<std::chrono::system_clock, microseconds>;
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, microseconds>;

/// Two readings of time. Threads: safe.
class Clock {
  public:
    virtual ~Clock() = default;
    virtual SystemTime system_now() const = 0;  ///< wall clock; may jump
    virtual SteadyTime steady_now() const = 0;  ///< monotonic
    /// Milliseconds since 1970 of system_now(), as BSON dates count.
    std::int64_t system_millis() const {
        return std::chrono::floor<milliseconds>(system_now()).time_since_epoch().count();
    }
};

/// The clocks of the machine; lives for ever.
const Clock& real_clock();

/// A clock that moves only when told. `advance` moves both readings, `jump_system` only the wall
/// clock.
class ManualClock final : public Clock {
  public:
    explicit ManualClock(SystemTime start = SystemTime(std::chrono::seconds(1'790'000'000)));
    SystemTime system_now() const override;
    SteadyTime steady_now() const override;
    void advance(microseconds by);
    void jump_system(microseconds by);

  private:
    std::atomic<std::int64_t> system_us_;
    std::atomic<std::int64_t> steady_us_{1'000'000};
};

}  // namespace angelia
