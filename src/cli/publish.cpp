// angelia publish: one message, or many from lines.
#include "cli/commands.h"
#include "cli/message_json.h"
#include "cli/node_options.h"
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

struct Counts {
    std::uint64_t published = 0;
    microseconds elapsed{0};
};

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

/// Publishes batch by batch; what stands before a bad line is published, and the error says so.
Result<void> publish_lines(const PublishOptions& o, Messaging& node, Counts& counts) {
    ANGELIA_TRY_ASSIGN(LineReader reader,
                       LineReader::open(o.messages.empty() ? o.lines : o.messages));
    Progress progress("publishing", 0);
    std::vector<Message> batch;
    std::size_t batch_bytes = 0;
    const auto flush = [&]() -> Result<void> {
        if (batch.empty()) return {};
        const std::size_t n = batch.size();
        ANGELIA_TRY(node.publish(std::exchange(batch, {})));
        counts.published += n;
        batch_bytes = 0;
        progress.update(counts.published, reader.bytes_read(), reader.bytes_total());
        return {};
    };
    std::string line;
    for (;;) {
        ANGELIA_TRY_ASSIGN(const bool more, reader.next(line));
        if (!more) break;
        auto message = message_of_line(o, line);
        if (!message) {
            ANGELIA_TRY(flush());
            return reader.at_line(std::move(message).error());
        }
        batch.push_back(*std::move(message));
        batch_bytes += line.size();
        if (batch.size() >= kBatchMessages || batch_bytes >= kBatchBytes) ANGELIA_TRY(flush());
    }
    return flush();
}

int publish(const PublishOptions& o) {
    auto store = open_common_store(o.common);
    if (!store) return fail(store.error());
    auto options = node_options(o.common, o.queue);
    if (!options) return fail(options.error());
    Messaging node(*store, *std::move(options));

    const bool many = !o.lines.empty() || !o.messages.empty();
    const auto start = real_clock().steady_now();
    Counts counts;
    if (many) {
        const auto result = publish_lines(o, node, counts);
        counts.elapsed = real_clock().steady_now() - start;
        if (!result) {
            fmt::print(stderr, "angelia: {} messages were published before this error\n",
                       counts.published);
            return fail(result.error());
        }
        const double seconds = static_cast<double>(counts.elapsed.count()) / 1e6;
        if (o.common.json()) {
            fmt::print("{{\"published\": {}, \"seconds\": {:.3f}}}\n", counts.published, seconds);
        } else {
            fmt::print("published {} messages in {:.2f} s\n", counts.published, seconds);
        }
        return kOk;
    }
    auto message = build_message(o.message);
    if (!message) return fail(message.error());
    auto id = node.publish(*std::move(message));
    if (!id) return fail(id.error());
    if (o.common.json()) {
        fmt::print("{{\"published\": 1, \"_id\": {{\"$oid\": \"{}\"}}}}\n", id->to_hex());
    } else {
        fmt::print("published {}\n", id->to_hex());
    }
    return kOk;
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
