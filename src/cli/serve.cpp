// angelia serve: an embedded store for MongoDB clients.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/output.h"

#include <angelia/angelia.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace angelia::cli {
namespace {

struct ServeOptions {
    std::string data = "./data";
    std::string bind = "127.0.0.1";
    std::uint16_t port = 27027;
    bool memory = false;
    std::string durability = "strict";
    bool enable_test_commands = false;
    bool verbose = false;
};

int serve(const ServeOptions& o) {
    const SignalWatch signals;
    const std::string address =
        o.memory ? "embedded::memory:"
                 : fmt::format("embedded:{}?durability={}", o.data, o.durability);
    store::OpenOptions open;
    open.log = stderr_log(o.verbose);
    auto opened = open_store(address, open);
    if (!opened) return fail(opened.error());
    Store store = *std::move(opened);

    ServerOptions server_options;
    server_options.bind = o.bind;
    server_options.port = o.port;
    server_options.enable_test_commands = o.enable_test_commands;
    server_options.log = open.log;
    auto server = Server::start(store, server_options);
    if (!server) return fail(server.error());
    print("angelia {} serves {} at {}\n", version(), o.memory ? "memory" : o.data,
          (*server)->uri());
    // Somebody waits for this line, and would wait for ever.
    if (!stdout_lost()) signals.wait();
    (*server)->stop();
    if (auto closed = store.close(); !closed) return fail(closed.error());
    return kOk;
}

}  // namespace

void add_serve(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<ServeOptions>();
    CLI::App* command = app.add_subcommand("serve", "serve an embedded store to MongoDB clients");
    command->add_option("--data", options->data, "data folder, made if absent")
        ->capture_default_str();
    command
        ->add_option("--bind", options->bind,
                     "address to listen on; only loopback, until there is authentication")
        ->capture_default_str();
    command->add_option("--port", options->port, "port; 0 takes a free one")->capture_default_str();
    command->add_flag("--memory", options->memory, "keep nothing on disk");
    command
        ->add_option("--durability", options->durability,
                     "strict: answered = synced; periodic: synced every 100 ms")
        ->check(CLI::IsMember({"strict", "periodic"}))
        ->capture_default_str();
    command->add_flag("--enable-test-commands", options->enable_test_commands,
                      "allow configureFailPoint (for driver tests)");
    command->add_flag("-v,--verbose", options->verbose, "say more on stderr");
    command->footer("Examples:\n  angelia serve --data ./data\n  angelia serve --memory --port 0");
    command->callback(
        [options, &invocation] { invocation.run = [options] { return serve(*options); }; });
}

}  // namespace angelia::cli
