// receive(), acknowledge(), extend(), reject(): consumption at the caller's pace, on the caller's
// thread.
#pragma once

#include "messaging/claims.h"
#include "messaging/intake.h"

namespace angelia::messaging {

/// Threads: safe.
class Pull {
  public:
    Pull(Context& context, Registry& registry) : context_(context), registry_(registry) {}

    /// `covered`: the stream tells of the topic, so that looking now and then is enough.
    Result<std::vector<Message>> receive(const std::string& topic, std::size_t count,
                                         milliseconds wait, const std::function<bool()>& covered);
    Result<void> acknowledge(const Message& message);
    Result<void> extend(const Message& message, milliseconds lease);
    Result<void> reject(const Message& message, const std::string& reason);

    void wake(const std::string& topic);
    void wake_all();
    void shut_down();

  private:
    Result<std::vector<Message>> take(const std::string& topic, std::size_t count);
    Result<void> check(const Message& message) const;
    Result<void> settle(const Message& message, store::UpdateOp update);

    Context& context_;
    Registry& registry_;
    Mutex mutex_;
    Condition woken_;
    std::uint64_t wakes_ ANGELIA_GUARDED_BY(mutex_) = 0;
    bool closed_ ANGELIA_GUARDED_BY(mutex_) = false;
};

}  // namespace angelia::messaging
