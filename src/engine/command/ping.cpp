#include "engine/command/commands.h"

namespace angelia::engine::command {
namespace {

Result<void> ping(const CallPtr& call) {
    call->succeed({});
    return {};
}

}  // namespace

extern const CommandEntry kPingCommand{.name = "ping",
                                       .handler = ping,
                                       .flags = kApiVersion1 | kReads | kWrites,
                                       .help = "answers, if the server is there"};

}  // namespace angelia::engine::command
