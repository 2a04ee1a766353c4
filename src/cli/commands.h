// The commands of the program: one file each, one row in the table of cli.cpp.
#pragma once

#include "cli/common.h"

namespace angelia::cli {

void add_demo(CLI::App& app, Invocation& invocation);
void add_demo_node(CLI::App& app,
                   Invocation& invocation);  // hidden: the processes that demo starts
void add_doctor(CLI::App& app, Invocation& invocation);
void add_listen(CLI::App& app, Invocation& invocation);
void add_publish(CLI::App& app, Invocation& invocation);
void add_request(CLI::App& app, Invocation& invocation);
void add_serve(CLI::App& app, Invocation& invocation);
void add_status(CLI::App& app, Invocation& invocation);
void add_version(CLI::App& app, Invocation& invocation);

/// Reads the command line, runs the command, returns the exit code.
int run(int argc, char** argv);

}  // namespace angelia::cli
