#include "cli/node_options.h"

#include "cli/duration.h"
#include "cli/input.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace angelia::cli {

Result<messaging::Options> node_options(const CommonOptions& common, const QueueOptions& queue) {
    messaging::Options options;
    options.queue = queue.queue;
    options.id = queue.id;
    options.log = stderr_log(common.verbose);
    ANGELIA_TRY(messaging::check_options(options));
    return options;
}

void add_message_options(CLI::App& command, MessageOptions& o) {
    add_topic_option(command, o.topic, "topic, 1 to 255 bytes");
    add_text_option(command, "--text", o.text, "free text, field msg")
        ->each([&o](const std::string&) { o.has_text = true; });
    add_text_option(command, "--value", o.value, "free text, field value")
        ->each([&o](const std::string&) { o.has_value = true; });
    command.add_option("--file", o.file, "JSON object for map_value; - reads stdin");
    command.add_flag("--exclusive", o.exclusive, "exactly one node handles it (a work queue)");
    add_text_option(command, "--to", o.to, "sender id of a recipient; may be given more than once");
    command.add_option("--priority", o.priority, "lower is more urgent")->capture_default_str();
    add_duration_option(command, "--ttl", o.ttl, "life time, e.g. 30s, 5m");
}

Result<void> apply_message_options(const MessageOptions& o, Message& m) {
    if (!o.topic.empty()) m.topic = o.topic;
    m.exclusive = m.exclusive || o.exclusive;
    if (!o.to.empty()) m.recipients = o.to;
    if (o.priority != delivery::kPriorityDefault) m.priority = o.priority;
    if (!o.ttl.empty()) {
        ANGELIA_TRY_ASSIGN(m.ttl, parse_duration(o.ttl));
    }
    return {};
}

Result<Message> build_message(const MessageOptions& o) {
    Message m;
    ANGELIA_TRY(apply_message_options(o, m));
    if (o.has_text) m.msg = o.text;
    if (o.has_value) m.value = o.value;
    if (!o.file.empty()) {
        ANGELIA_TRY_ASSIGN(Input input, Input::open(o.file));
        ANGELIA_TRY_ASSIGN(const std::string text, input.read_all());
        auto document = bson::from_json(text);
        if (!document)
            return {document.error().code,
                    fmt::format("{}: {}", input.name(), document.error().message)};
        m.map_value = *std::move(document);
    }
    return m;
}

}  // namespace angelia::cli
