// What this machine can do at best, measured in the same run as everything else.
//   hops4: request -> server -> responder -> server -> requester, 2 KB frames over TCP loopback,
//   three processes, nothing stored sync:  one fdatasync after a 2 KB append to a growing file
#pragma once

#include "figures.h"

namespace angelia::bench {

Result<Floors> measure_floors(const std::string& folder);

/// Roles of child processes: "floor-server" (prints its port), "floor-responder PORT".
int floor_server();
int floor_responder(int port);

}  // namespace angelia::bench
