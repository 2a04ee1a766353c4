// A server over an engine: the one file of this folder that knows more of it than its commands.
#include "wire/server.h"

#include "engine/engine.h"

namespace angelia::wire {

Result<std::unique_ptr<Server>> Server::start(engine::Engine& engine, ServerOptions options) {
    std::shared_ptr<engine::command::CommandService> service =
        engine::command::CommandService::create(
            engine, {.enable_test_commands = options.enable_test_commands});
    ANGELIA_TRY_ASSIGN(auto server, open(std::move(service), std::move(options),
                                         engine.options().replica_set_name));
    ANGELIA_TRY(engine.storage().set_endpoint_note(server->uri()));
    return server;
}

}  // namespace angelia::wire
