// A command that waits in a node's call is woken by a signal: the node stops, in order.
#pragma once

#include "cli/common.h"

#include <angelia/messaging/messaging.h>

#include <thread>

namespace angelia::cli {

/// Stops the node as soon as a signal comes, so that blocked calls of it return
/// ShutdownInProgress. Both must outlive this.
class StopAtSignal {
  public:
    StopAtSignal(const SignalWatch& signals, Messaging& node)
        : thread_([&signals, &node] {
              signals.wait();
              if (signals.signal() == 0) return;  // the destructor's own
              // What it could not finish in time, its destructor says.
              [[maybe_unused]] const auto stopped = node.stop();
          }) {}
    ~StopAtSignal() {
        SignalWatch::notify();
        thread_.join();
    }
    StopAtSignal(const StopAtSignal&) = delete;
    StopAtSignal& operator=(const StopAtSignal&) = delete;

  private:
    std::thread thread_;
};

}  // namespace angelia::cli
