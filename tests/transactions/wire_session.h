// A session over the wire with a server that may be killed at any moment: a commit and a plain
// write without an answer are sent again until there is one, as drivers do.
#pragma once

#include "transactions/session.h"

#include <atomic>

namespace angelia::transactions {

struct WireCounts {
    std::atomic<int> commits_retried{0}, retried_and_committed{0}, retried_and_aborted{0};
};

std::unique_ptr<Session> wire_session(std::uint16_t port, std::int64_t number, WireCounts& counts);
/// One command without a session; waits for a server that is just starting. Errors: the server's.
Result<bson::Document> wire_command(std::uint16_t port, const bson::Document& command);

}  // namespace angelia::transactions
