// One message on stdout.
#pragma once

#include <angelia/messaging/message.h>

namespace angelia::cli {

/// A line for people ("12:00:01  topic  from sender  value  msg  {...}") or one JSON object. Whole
/// lines also from several threads.
/// False when it could not be written: nobody saw the message.
[[nodiscard]] bool print_message(const Message& message, bool json);

}  // namespace angelia::cli
