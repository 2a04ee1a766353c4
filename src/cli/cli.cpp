#include "cli/commands.h"
#include "cli/output.h"

#include <angelia/angelia.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace angelia::cli {
namespace {

constexpr AddCommand kCommands[] = {
    add_serve, add_publish, add_listen,  add_request,   add_status,
    add_demo,  add_doctor,  add_version, add_demo_node,
};

std::string command_names(const CLI::App& app) {
    std::string names;
    for (const CLI::App* command :
         app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); })) {
        names += (names.empty() ? "" : ", ") + command->get_name();
    }
    return names;
}

}  // namespace

int run(int argc, char** argv) {
    hold_standard_streams();
    CLI::App app("Reliable messaging on the document database you already run", "angelia");
    app.require_subcommand(1);
    app.set_version_flag("--version", "angelia " + version());
    app.footer(
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 unreachable, 4 no answer in time, 128 + signal "
        "when one ended it early.\nHelp on a command: angelia COMMAND --help");
    Invocation invocation;
    for (const AddCommand add : kCommands) add(app, invocation);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& e) {
        return finish_output(app.exit(e));
    } catch (const CLI::ParseError& e) {
        if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
            say("angelia: no command '{}'; commands: {}\n", argv[1], command_names(app));
        } else {
            app.exit(e);
        }
        return kUsage;
    }
    return finish_output(invocation.run ? invocation.run() : static_cast<int>(kUsage));
}

}  // namespace angelia::cli
