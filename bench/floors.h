// What this machine can do at best, measured in the same run as everything else.
//   hops4: request -> server -> responder -> server -> requester, 2 KB frames over TCP loopback,
//   three processes, nothing stored
//   hops2: request -> server -> requester, the same with two processes
//   sync:  one fdatasync after a 2 KB append to a growing file
#pragma once

#include "figures.h"

namespace angelia::bench {

Result<Floors> measure_floors(const std::string& folder);

/// Roles of child processes: "floor-server" (prints its port), "floor-responder PORT".
int floor_server();
int floor_responder(int port);
/// "floor-echo" (prints its port): answers one client with its own frames.
int floor_echo();

}  // namespace angelia::bench
