// angelia version
#include "cli/commands.h"
#include "cli/output.h"

#include <angelia/angelia.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace angelia::cli {

void add_version(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<std::string>("table");
    CLI::App* command = app.add_subcommand("version", "print the version");
    command->add_option("-o,--output", *options, "table or json")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    command->callback([options, &invocation] {
        invocation.run = [options] {
            write_out(*options == "json" ? fmt::format("{{\"version\": \"{}\"}}\n", version())
                                         : fmt::format("angelia {}\n", version()));
            return static_cast<int>(kOk);
        };
    });
}

}  // namespace angelia::cli
