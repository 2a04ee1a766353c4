// Blocking on an engine call that ends in a continuation.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/result.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

namespace angelia::store_embedded {

/// One call: the continuation sets the result, the caller waits for it. The continuation may come
/// after the caller gave up.
template <class T>
class Waiter {
  public:
    /// To be handed to the engine.
    std::function<void(Result<T>)> done() {
        return [state = state_](Result<T> result) {
            const std::lock_guard<std::mutex> lock(state->mutex);
            state->result = std::move(result);
            state->told.notify_one();
        };
    }
    /// In memory the continuation has run before this is called: no waiting then. Errors: the
    /// call's, and MaxTimeMSExpired.
    Result<T> wait(milliseconds timeout) {
        std::unique_lock<std::mutex> lock(state_->mutex);
        if (!state_->told.wait_for(lock, timeout, [this] { return state_->result.has_value(); })) {
            return Error(ErrorCode::MaxTimeMSExpired, "the call did not end in " +
                                                          std::to_string(timeout.count()) +
                                                          " ms; whether it takes effect is open");
        }
        return *std::move(state_->result);
    }

  private:
    struct State {
        std::mutex mutex;
        std::condition_variable told;
        std::optional<Result<T>> result;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();  ///< shared with the continuation
};

}  // namespace angelia::store_embedded
