// The built-in listener on the status topic: who is there, and how they are.
#pragma once

#include <angelia/messaging/messaging.h>

#include <functional>

namespace angelia::messaging {

/// The answer to one status request. `value` of the request selects the level; PING is empty, all
/// else MESSAGING_ONLY. `now_millis`: server time; `pause`, `window`, `multithreaded` as
/// configured.
Reply status_reply(const Message& request, const Status& status, std::int64_t now_millis,
                   const Options& options, std::size_t threads);

}  // namespace angelia::messaging
