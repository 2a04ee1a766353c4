// angelia request: ask and print the answers.
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/message_json.h"
#include "cli/node_options.h"
#include "cli/print_message.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace angelia::cli {
namespace {

struct RequestOptions {
    CommonOptions common;
    QueueOptions queue;
    MessageOptions message;
    std::string timeout = "5s";
    std::size_t answers = 1;
};

int request(const RequestOptions& o) {
    const auto timeout = parse_duration(o.timeout);
    if (!timeout) {
        fail(timeout.error());
        return kUsage;
    }
    auto message = build_message(o.message);
    if (!message) return fail(message.error());
    auto store = open_common_store(o.common);
    if (!store) return fail(store.error());
    auto options = node_options(o.common, o.queue);
    if (!options) return fail(options.error());
    Messaging node(*store, *std::move(options));
    if (auto started = node.start(); !started) return fail(started.error());
    node.wait_ready(std::min(*timeout, milliseconds(5000)));

    auto answers = node.request_all(*std::move(message), o.answers, *timeout);
    if (!answers) return fail(answers.error());
    for (const Message& answer : *answers) {
        if (!print_message(answer, o.common.json()))
            return fail(ErrorCode::FileStreamFailed, "cannot write to stdout");
    }
    if (auto stopped = node.stop(); !stopped) return fail(stopped.error());
    if (answers->size() >= std::max<std::size_t>(o.answers, 1)) return kOk;
    fmt::print(stderr, "angelia: {} of {} answers came within {}\n", answers->size(),
               std::max<std::size_t>(o.answers, 1), o.timeout);
    return kNoAnswer;
}

}  // namespace

void add_request(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<RequestOptions>();
    CLI::App* command = app.add_subcommand("request", "publish a message and wait for answers");
    add_common_options(*command, o->common);
    add_queue_options(*command, o->queue);
    add_message_options(*command, o->message);
    command->get_option("topic")->required();
    command->add_option("--timeout", o->timeout, "how long to wait")->capture_default_str();
    command
        ->add_option("--answers", o->answers,
                     "how many answers to wait for; 0: all that come in the time")
        ->capture_default_str();
    command->footer(
        "Examples:\n"
        "  angelia request user.lookup --value 4711 --timeout 5s\n"
        "  angelia request cluster.ping --answers 3 -o json\n"
        "Exit code 4: fewer answers than asked for.");
    command->callback([o, &invocation] { invocation.run = [o] { return request(*o); }; });
}

}  // namespace angelia::cli
