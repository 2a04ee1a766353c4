// Runs a shell command with text on its stdin and collects what it says: listen --exec.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/result.h>

#include <string>

namespace angelia::cli {

struct CommandOutcome {
    int exit_code = 0;       ///< 128 + signal when a signal ended it
    std::string out, err;    ///< at most 15 MiB and 64 KiB, the rest is dropped
    bool timed_out = false;  ///< killed after the time limit
};

/// /bin/sh -c `command`. Blocks the caller; safe from several threads. Errors: OperationFailed when
/// no process could be started.
Result<CommandOutcome> run_command(const std::string& command, const std::string& input,
                                   milliseconds timeout);

}  // namespace angelia::cli
