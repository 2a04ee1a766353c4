// angelia listen: prints messages, answers them, or hands each to a command.
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/message_json.h"
#include "cli/node_options.h"
#include "cli/output.h"
#include "cli/print_message.h"
#include "cli/run_command.h"

#include <angelia/bson/json.h>
#include <angelia/bson/validate.h>

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
/// reason. What cannot be passed on whole is rejected, too.
Reply reply_of(const Result<CommandOutcome>& outcome, const Message& message,
               const std::string& time_limit) {
    using End = CommandOutcome::End;
    if (!outcome) return reject(outcome.error().message);
    const auto too_long = [](std::string_view what, std::string_view more) {
        return reject(fmt::format("{} than {} MiB{}; an answer has at most that", what,
                                  kCommandOutBytesMax >> 20, more));
    };
    switch (outcome->end) {
        case End::Itself:
            break;
        case End::TimedOut:
            return reject(fmt::format(
                "the command took longer than {} and was ended; --exec-timeout allows more",
                time_limit));
        case End::OutputTooLong:
            return too_long("the command wrote more", " to stdout and was ended");
        case End::RunnerStopping: {
            auto stopped = reject("the listener was stopped");
            // Back at once and no failure; a broadcast stays unmarked for the next start.
            return message.exclusive ? std::move(stopped).and_give_up() : std::move(stopped);
        }
    }
    if (outcome->exit_code != 0) {
        const std::string reason = trimmed(outcome->err);
        return reject(reason.empty() ? fmt::format("the command ended with {}", outcome->exit_code)
                                     : reason);
    }
    const std::string text = trimmed(outcome->out);
    if (text.empty()) return no_answer();
    if (!bson::is_utf8(text))
        return reject("what the command wrote to stdout is not UTF-8; an answer has to be");
    if (text.front() == '{') {
        auto map = bson::from_json(text);
        if (map && map->view().size_bytes() <= kCommandOutBytesMax)
            return Reply::make_answer(std::nullopt).with_map(*std::move(map));
        if (map || map.error().code == ErrorCode::BSONObjectTooLarge)
            return too_long("the object that the command wrote is longer", " as BSON");
        if (map.error().code != ErrorCode::FailedToParse)
            return reject("the object that the command wrote: " + map.error().message);
    }
    return answer(text);
}

int listen(const ListenOptionsCli& o) {
    const SignalWatch signals;
    SignalWatch::at_second_interrupt(&CommandRunner::kill_all);
    auto options = node_options(o.common, o.queue);
    if (!options) return fail_arguments(options.error());
    auto store = open_common_store(o.common);
    if (!store) return fail_arguments(store.error());
    options->threads = o.threads;
    const milliseconds exec_timeout = parse_duration(o.exec_timeout).value_or_throw();
    CommandRunner commands;
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
            auto outcome = commands.run(o.exec, message_to_json(m) + "\n", exec_timeout);
            if (outcome) write_err(outcome->err);
            reply = reply_of(outcome, m, o.exec_timeout);
            if (outcome && outcome->end == CommandOutcome::End::RunnerStopping) return reply;
        }
        if (finished.fetch_add(1) + 1 == o.count) SignalWatch::notify();
        return reply;
    };
    for (const std::string& topic : o.topics) {
        if (auto added = node.listen(topic, handler); !added) return fail_arguments(added.error());
    }
    if (auto started = node.start(); !started) return fail_arguments(started.error());
    if (!o.common.json() && stderr_is_terminal()) say("listening as {}; Ctrl-C ends\n", node.id());
    signals.wait();
    commands.stop();
    if (auto stopped = node.stop(); !stopped) return fail(stopped.error());
    if (output_lost) {
        say("angelia: the messages that could not be printed went back to the queue\n");
        return kFailed;
    }
    if (commands.stopped_count() > 0)
        say("angelia: {} running commands were ended; their messages went back to the queue\n",
            commands.stopped_count());
    const bool short_of_count = o.count > 0 && finished < o.count;
    if (short_of_count) say("angelia: stopped after {} of {} messages\n", finished, o.count);
    if (commands.stopped_count() > 0 || short_of_count)
        return signals.signal() != 0 ? exit_code_of_signal(signals.signal()) : kFailed;
    return kOk;
}

}  // namespace

void add_listen(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<ListenOptionsCli>();
    CLI::App* command =
        app.add_subcommand("listen", "print messages, answer them, or run a command for each");
    add_common_options(*command, o->common);
    add_queue_options(*command, o->queue);
    add_topic_option(*command, o->topics, "topics")->required();
    command->add_option("--count", o->count, "end after so many messages");
    add_text_option(*command, "--answer", o->answer, "answer every message with this text")
        ->each([o = o.get()](const std::string&) { o->has_answer = true; });
    command
        ->add_option("--exec", o->exec,
                     "shell command per message: the message as one line of JSON on stdin; stdout: "
                     "nothing = no answer, an object = map_value, "
                     "else msg; non-zero = rejected with stderr as reason")
        ->excludes("--answer");
    add_duration_option(*command, "--exec-timeout", o->exec_timeout,
                        "a command that runs longer is ended and the message rejected")
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
