// The rows about messaging.
#pragma once

#include "figures.h"

namespace angelia::bench {

Result<Row> request_reply_in_process();
Result<Row> request_reply_three_processes(const Floors& floors, const std::string& folder,
                                          bool strict);
Result<Row> request_reply_exclusive(const std::string& folder, bool strict);
Result<Row> request_reply_saturated(const std::string& folder);
Result<Row> one_way(const std::string& folder, bool exclusive);
Result<Row> start_up(const std::string& folder, bool memory);

/// Roles of child processes: "serve ADDRESS" prints its URI; "responder STORE exclusive|broadcast"
/// prints ready.
int child_server(const std::string& address);
int child_responder(const std::string& store);

}  // namespace angelia::bench
