// libmongoc's log: one handler per process, so only a program's main() should set it.
#pragma once

#include <angelia/base/log.h>

namespace angelia::store::mongo {

/// Sends what libmongoc logs to `log` from now on; an empty function silences it. Threads: call it
/// before the first store is opened.
void set_driver_log(LogFunction log);

}  // namespace angelia::store::mongo
