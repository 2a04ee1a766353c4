// angelia listen: prints messages, answers them, or hands each to a command.
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/message_json.h"
#include "cli/node_options.h"
#include "cli/print_message.h"
#include "cli/run_command.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <atomic>

namespace angelia::cli {
namespace {

struct ListenOptionsCli {
    CommonOptions common;
    QueueOptions queue;
    std::vector<std::string> topics;
    std::uint64_t count = 0;
    std::string answer;
    bool has_answer = false;
    std::string exec;
    std::string exec_timeout = "10m";
    std::size_t threads = 1;
};

std::string trimmed(std::string text) {
    const auto end = text.find_last_not_of(" \t\r\n");
    text.erase(end == std::string::npos ? 0 : end + 1);
    return text;
}

/// stdout empty: no answer; a JSON object: map_value; else msg. Non-zero: rejected, stderr is the
/// reason.
Reply reply_of(const Result<CommandOutcome>& outcome) {
    if (!outcome) return reject(outcome.error().message);
    if (outcome->timed_out) return reject("the command took too long and was killed");
    if (outcome->exit_code != 0) {
        const std::string reason = trimmed(outcome->err);
        return reject(reason.empty() ? fmt::format("the command ended with {}", outcome->exit_code)
                                     : reason);
    }
    const std::string text = trimmed(outcome->out);
    if (text.empty()) return no_answer();
    if (text.front() == '{') {
        if (auto map = bson::from_json(text))
            return Reply::make_answer(std::nullopt).with_map(*std::move(map));
    }
    return answer(text);
}

int listen(const ListenOptionsCli& o) {
    const SignalWatch signals;
    const auto exec_timeout = parse_duration(o.exec_timeout);
    if (!exec_timeout) {
        fail(exec_timeout.error());
        return kUsage;
    }
    auto store = open_common_store(o.common);
    if (!store) return fail(store.error());
    auto options = node_options(o.common, o.queue);
    if (!options) return fail(options.error());
    options->threads = o.threads;
    Messaging node(*store, *std::move(options));

    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> finished{0};
    std::atomic<bool> output_lost{false};
    const auto handler = [&](const Message& m) -> Reply {
        // With --count the surplus goes back to the queue untouched.
        if (const auto n = taken.fetch_add(1); o.count > 0 && n >= o.count)
            return reject("this listener has had its --count");
        Reply reply;
        if (o.exec.empty()) {
            if (!print_message(m, o.common.json())) {  // nobody saw it: back to the queue
                output_lost = true;
                SignalWatch::notify();
                return reject("the listener's output is gone");
            }
            if (o.has_answer) reply = answer(o.answer);
        } else {
            auto outcome = run_command(o.exec, message_to_json(m) + "\n", *exec_timeout);
            if (outcome && !outcome->err.empty()) fmt::print(stderr, "{}", outcome->err);
            reply = reply_of(outcome);
        }
        if (finished.fetch_add(1) + 1 == o.count) SignalWatch::notify();
        return reply;
    };
    for (const std::string& topic : o.topics) {
        if (auto added = node.listen(topic, handler); !added) return fail(added.error());
    }
    if (auto started = node.start(); !started) return fail(started.error());
    if (!o.common.json() && stderr_is_terminal())
        fmt::print(stderr, "listening as {}; Ctrl-C ends\n", node.id());
    signals.wait();
    if (auto stopped = node.stop(); !stopped) return fail(stopped.error());
    if (output_lost)
        return fail(ErrorCode::FileStreamFailed,
                    "cannot write to stdout; the messages went back to the queue");
    return kOk;
}

}  // namespace

void add_listen(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<ListenOptionsCli>();
    CLI::App* command =
        app.add_subcommand("listen", "print messages, answer them, or run a command for each");
    add_common_options(*command, o->common);
    add_queue_options(*command, o->queue);
    command->add_option("topic", o->topics, "topics")->required();
    command->add_option("--count", o->count, "end after so many messages");
    command->add_option("--answer", o->answer, "answer every message with this text")
        ->each([o = o.get()](const std::string&) { o->has_answer = true; });
    command
        ->add_option("--exec", o->exec,
                     "shell command per message: the message as one line of JSON on stdin; stdout: "
                     "nothing = no answer, an object = map_value, "
                     "else msg; non-zero = rejected with stderr as reason")
        ->excludes("--answer");
    command
        ->add_option("--exec-timeout", o->exec_timeout,
                     "a command that runs longer is killed and the message rejected")
        ->capture_default_str();
    command->add_option("--threads", o->threads, "messages handled side by side")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->footer(
        "Examples:\n"
        "  angelia listen user.created order.paid\n"
        "  angelia listen user.lookup --answer ok\n"
        "  angelia listen invoice.run --exec ./make-invoice.sh --threads 4");
    command->callback([o, &invocation] { invocation.run = [o] { return listen(*o); }; });
}

}  // namespace angelia::cli
