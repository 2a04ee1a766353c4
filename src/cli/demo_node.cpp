// angelia demo-node: one of the processes that `demo` starts. It reads its topics from stdin, says
// "ready", works until stdin ends (so it dies with its parent, however that dies), then stops in
// order.
#include "cli/commands.h"
#include "cli/demo_records.h"
#include "cli/node_options.h"
#include "cli/output.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <iostream>

#include <poll.h>
#include <unistd.h>

namespace angelia::cli {
namespace {

struct DemoNodeOptions {
    std::string store, id, role;
    std::int64_t lease_ms = 2000;
    bool record_payload = false;
};

/// Until stdin ends.
void wait_for_parent_to_go() {
    char byte;
    while (::read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR) errno = 0;
}

int demo_node(const DemoNodeOptions& o) {
    ::signal(SIGINT, SIG_IGN);  // Ctrl-C is the parent's affair
    std::vector<std::string> topics;
    for (std::string line; std::getline(std::cin, line) && !line.empty();) topics.push_back(line);

    CommonOptions common;
    common.store = o.store;
    auto store = open_common_store(common);
    if (!store) return fail(store.error());
    auto options = node_options(common, {});
    if (!options) return fail(options.error());
    options->id = o.id;
    options->lease = milliseconds(o.lease_ms);
    Messaging node(*store, *std::move(options));

    const auto effects = store->collection(demo::kEffects);
    const auto handler = [&](const Message& m) -> Reply {
        const auto effect =
            demo::effect_document(m, o.id, real_clock().system_millis(), o.record_payload);
        if (auto inserted = store->insert(effects, effect); !inserted)
            return reject(inserted.error().message);
        return o.role == "request" ? answer("done").with("by", o.id) : no_answer();
    };
    for (const std::string& topic : topics) {
        if (auto added = node.listen(topic, handler); !added) return fail(added.error());
    }
    if (auto started = node.start(); !started) return fail(started.error());
    if (!node.wait_ready(milliseconds(20'000)))
        return fail(ErrorCode::ExceededTimeLimit, o.id + " was not ready within 20 s");
    const auto record = bson::make("_id", o.id, "role", o.role);
    if (auto inserted = store->insert(store->collection(demo::kNodes), record); !inserted)
        return fail(inserted.error());
    print("ready\n");
    std::fflush(stdout);

    wait_for_parent_to_go();
    if (auto stopped = node.stop(milliseconds(5000)); !stopped) return fail(stopped.error());
    return kOk;
}

}  // namespace

void add_demo_node(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<DemoNodeOptions>();
    CLI::App* command = app.add_subcommand("demo-node", "a process of demo")->group("");
    command->add_option("--store", o->store)->required();
    command->add_option("--id", o->id)->required();
    command->add_option("--role", o->role)->required();
    command->add_option("--lease-ms", o->lease_ms);
    command->add_flag("--record-payload", o->record_payload);
    command->callback([o, &invocation] { invocation.run = [o] { return demo_node(*o); }; });
}

}  // namespace angelia::cli
