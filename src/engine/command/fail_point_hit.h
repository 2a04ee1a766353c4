// What a command does that meets failCommand (contract 10.3): wait, then hang up, fail, or go on.
#pragma once

#include "engine/command/call.h"

#include <functional>

namespace angelia::engine::command {

/// False when no fail point means this command. Else the call is answered now or later, by the
/// fault or by `go_on`; neither is called under a lock.
bool meet_fail_point(const CallPtr& call, std::function<void(const CallPtr&)> go_on);

}  // namespace angelia::engine::command
