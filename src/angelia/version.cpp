#include <angelia/angelia.h>

#ifndef ANGELIA_VERSION
#error "ANGELIA_VERSION comes from CMake's project()"
#endif

namespace angelia {

std::string version() { return ANGELIA_VERSION; }

}  // namespace angelia
