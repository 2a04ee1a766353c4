// angelia request: ask and print the answers.
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/message_json.h"
#include "cli/node_options.h"
#include "cli/output.h"
#include "cli/print_message.h"
#include "cli/stop_at_signal.h"

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
    const milliseconds timeout = parse_duration(o.timeout).value_or_throw();
    auto message = build_message(o.message);
    if (!message) return fail(message.error());
    auto options = node_options(o.common, o.queue);
    if (!options) return fail_arguments(options.error());
    auto store = open_common_store(o.common);
    if (!store) return fail_arguments(store.error());
    Messaging node(*store, *std::move(options));
    if (auto started = node.start(); !started) return fail_arguments(started.error());
    const SignalWatch signals;
    const StopAtSignal stopper(signals, node);
    node.wait_ready(std::min(timeout, milliseconds(5000)));

    auto answers = node.request_all(*std::move(message), o.answers, timeout);
    if (!answers && signals.signal() != 0) {
        say("angelia: stopped before the answer came\n");
        return exit_code_of_signal(signals.signal());
    }
    if (!answers) return fail_arguments(answers.error());
    for (const Message& answer : *answers) {
        if (!print_message(answer, o.common.json())) return kFailed;
    }
    if (auto stopped = node.stop(); !stopped) return fail(stopped.error());
    if (answers->size() >= std::max<std::size_t>(o.answers, 1)) return kOk;
    say("angelia: {} of {} answers came within {}\n", answers->size(),
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
    add_duration_option(*command, "--timeout", o->timeout, "how long to wait")
        ->capture_default_str();
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
