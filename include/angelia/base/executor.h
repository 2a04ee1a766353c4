// Where work runs later: a seam that threads, pools and the simulator implement.
#pragma once

#include <angelia/base/clock.h>

#include <cstdint>
#include <functional>

namespace angelia {

/// Runs functions one after another (a lane) or side by side (a pool), each exactly once unless
/// cancelled or the executor stops first; then it is destroyed without being run. Functions must
/// not throw. Threads: safe.
class Executor {
  public:
    using Task = std::function<void()>;
    enum class TimerId : std::uint64_t {};

    virtual ~Executor() = default;
    virtual void post(Task task) = 0;
    virtual TimerId post_after(microseconds delay, Task task) = 0;
    /// True when the task had not started; it will not run then.
    virtual bool cancel(TimerId timer) = 0;
};

}  // namespace angelia
