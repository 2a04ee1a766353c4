// The rows of the command table; each is defined in the file of its name.
#pragma once

#include "engine/command/command_table.h"

namespace angelia::engine::command {

extern const CommandEntry kBuildInfoCommand;
extern const CommandEntry kHelloCommand;
extern const CommandEntry kPingCommand;

}  // namespace angelia::engine::command
