// angelia publish: one message, or many from lines.
#include "cli/commands.h"
#include "cli/message_json.h"
#include "cli/node_options.h"
#include "cli/output.h"
#include "cli/progress.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace angelia::cli {
namespace {

constexpr std::size_t kBatchMessages = 500;
constexpr std::size_t kBatchBytes = 4 * 1024 * 1024;

struct PublishOptions {
    CommonOptions common;
    QueueOptions queue;
    MessageOptions message;
    std::string lines, messages;
};

/// What the store has acknowledged, also of a batch that failed in part.
std::uint64_t published_count(const Messaging& node) {
    return static_cast<std::uint64_t>(node.status().counters["published"]);
}

Result<Message> message_of_line(const PublishOptions& o, const std::string& line) {
    Message m;
    if (!o.messages.empty()) {
        ANGELIA_TRY_ASSIGN(m, message_from_json(line));
    } else {
        ANGELIA_TRY_ASSIGN(m.map_value, bson::from_json(line));
    }
    ANGELIA_TRY(apply_message_options(o.message, m));
    return m;
}

/// How far `--lines` or `--messages` came.
struct Way {
    std::size_t line_sent = 0;   ///< up to here everything was given to the store
    std::size_t line_known = 0;  ///< up to here the store has answered
};

/// Publishes batch by batch; what stands before a bad line is published, and the error says so.
Result<void> publish_lines(const PublishOptions& o, Messaging& node, const SignalWatch& signals,
                           Way& way) {
    ANGELIA_TRY_ASSIGN(LineReader reader,
                       LineReader::open(o.messages.empty() ? o.lines : o.messages, &signals));
    Progress progress("publishing", 0);
    std::vector<Message> batch;
    std::size_t batch_bytes = 0;
    const auto flush = [&](std::size_t line) -> Result<void> {
        if (batch.empty()) return {};
        if (signals.stopped()) return {ErrorCode::Interrupted, "stopped"};
        way.line_sent = line;
        ANGELIA_TRY(node.publish(std::exchange(batch, {})));
        way.line_known = line;
        batch_bytes = 0;
        progress.update(published_count(node), reader.bytes_read(), reader.bytes_total());
        return {};
    };
    std::string line;
    for (;;) {
        auto more = reader.next(line);
        if (!more) {
            if (more.error().code != ErrorCode::Interrupted)
                ANGELIA_TRY(flush(reader.line_number()));
            return std::move(more).error();
        }
        if (!*more) break;
        auto message = message_of_line(o, line);
        if (!message) {
            ANGELIA_TRY(flush(reader.line_number() - 1));
            return reader.at_line(std::move(message).error());
        }
        batch.push_back(*std::move(message));
        batch_bytes += line.size();
        if (batch.size() >= kBatchMessages || batch_bytes >= kBatchBytes)
            ANGELIA_TRY(flush(reader.line_number()));
    }
    return flush(reader.line_number());
}

int publish_many(const PublishOptions& o, Messaging& node) {
    const SignalWatch signals;
    const auto start = real_clock().steady_now();
    Way way;
    const auto result = publish_lines(o, node, signals, way);
    const microseconds elapsed = real_clock().steady_now() - start;
    const std::uint64_t published = published_count(node);
    if (result) {
        const double seconds = static_cast<double>(elapsed.count()) / 1e6;
        if (o.common.json()) {
            print("{{\"published\": {}, \"seconds\": {:.3f}}}\n", published, seconds);
        } else {
            print("published {} messages in {:.2f} s\n", published, seconds);
        }
        if (stdout_lost()) say("angelia: published {} messages\n", published);
        return kOk;
    }
    const bool interrupted = result.error().code == ErrorCode::Interrupted;
    say("angelia: {} messages were published before {}", published,
        interrupted ? fmt::format("signal {}, up to line {}", signals.signal(), way.line_known)
                    : std::string("this error"));
    const int code = exit_code_of(result.error());
    if (code == kUnreachable && way.line_sent > way.line_known) {
        say("; of lines {} to {} it is not known", way.line_known + 1, way.line_sent);
    }
    say("\n");
    return interrupted ? exit_code_of_signal(signals.signal()) : fail(result.error());
}

int publish_one(const PublishOptions& o, Messaging& node) {
    auto message = build_message(o.message);
    if (!message) return fail(message.error());
    auto id = node.publish(*std::move(message));
    if (!id) return fail_arguments(id.error());
    if (o.common.json()) {
        print("{{\"published\": 1, \"_id\": {{\"$oid\": \"{}\"}}}}\n", id->to_hex());
    } else {
        print("published {}\n", id->to_hex());
    }
    if (stdout_lost()) say("angelia: published {}\n", id->to_hex());  // not to be sent again
    return kOk;
}

int publish(const PublishOptions& o) {
    auto options = node_options(o.common, o.queue);
    if (!options) return fail_arguments(options.error());
    auto store = open_common_store(o.common);
    if (!store) return fail_arguments(store.error());
    Messaging node(*store, *std::move(options));
    const bool many = !o.lines.empty() || !o.messages.empty();
    return many ? publish_many(o, node) : publish_one(o, node);
}

}  // namespace

void add_publish(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<PublishOptions>();
    CLI::App* command = app.add_subcommand("publish", "publish messages");
    add_common_options(*command, o->common);
    add_queue_options(*command, o->queue);
    add_message_options(*command, o->message);
    auto* lines = command->add_option(
        "--lines", o->lines,
        "NDJSON file: each object becomes the map_value of one message; - reads stdin");
    command
        ->add_option("--messages", o->messages,
                     "NDJSON file of whole messages {topic, value, msg, map_value, exclusive, "
                     "...}; - reads stdin")
        ->excludes(lines);
    command->footer(
        "Examples:\n"
        "  angelia publish user.created --value 4711 --text created\n"
        "  angelia publish invoice.run --exclusive --file invoice.json\n"
        "  angelia publish sensor.read --lines readings.ndjson\n"
        "  angelia publish --messages all.ndjson --exclusive");
    command->callback([o, &invocation] {
        if (o->message.topic.empty() && o->messages.empty()) throw CLI::RequiredError("topic");
        const bool many = !o->lines.empty() || !o->messages.empty();
        if (many && (o->message.has_text || o->message.has_value || !o->message.file.empty())) {
            throw CLI::ExcludesError("--lines and --messages", "--text, --value, --file");
        }
        invocation.run = [o] { return publish(*o); };
    });
}

}  // namespace angelia::cli
