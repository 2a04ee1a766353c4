// Blocking sockets over loopback, as the floors and the least of clients use them.
#pragma once

#include <cstddef>

namespace angelia::bench {

/// False when the other side is gone.
bool read_all(int fd, char* data, std::size_t n);
bool write_all(int fd, const char* data, std::size_t n);
/// To 127.0.0.1, without Nagle's delay; -1 when nobody accepts (errno says why).
int connect_to(int port);

}  // namespace angelia::bench
