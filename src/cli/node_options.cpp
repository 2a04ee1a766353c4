#include "cli/node_options.h"

#include "cli/duration.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace angelia::cli {

Result<messaging::Options> node_options(const CommonOptions& common, const QueueOptions& queue) {
    messaging::Options options;
    options.queue = queue.queue;
    options.id = queue.id;
    options.log = stderr_log(common.verbose);
    return options;
}

void add_message_options(CLI::App& command, MessageOptions& o) {
    command.add_option("topic", o.topic, "topic, 1 to 255 bytes");
    command.add_option("--text", o.text, "free text, field msg")->each([&o](const std::string&) {
        o.has_text = true;
    });
    command.add_option("--value", o.value, "free text, field value")
        ->each([&o](const std::string&) { o.has_value = true; });
    command.add_option("--file", o.file, "JSON object for map_value; - reads stdin");
    command.add_flag("--exclusive", o.exclusive, "exactly one node handles it (a work queue)");
    command.add_option("--to", o.to, "sender id of a recipient; may be given more than once");
    command.add_option("--priority", o.priority, "lower is more urgent")->capture_default_str();
    command.add_option("--ttl", o.ttl, "life time, e.g. 30s, 5m");
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
        std::string text;
        if (o.file == "-") {
            text.assign(std::istreambuf_iterator<char>(std::cin), {});
        } else {
            std::error_code ignored;  // what cannot be looked at cannot be opened either
            if (std::filesystem::is_directory(o.file, ignored))
                return {ErrorCode::FileNotOpen, fmt::format("{} is a folder, not a file", o.file)};
            std::ifstream in(o.file, std::ios::binary);
            if (!in)
                return {ErrorCode::FileNotOpen,
                        fmt::format("cannot read {}: {}", o.file, std::strerror(errno))};
            text.assign(std::istreambuf_iterator<char>(in), {});
        }
        auto document = bson::from_json(text);
        if (!document)
            return {document.error().code, fmt::format("{}: {}", o.file == "-" ? "stdin" : o.file,
                                                       document.error().message)};
        m.map_value = *std::move(document);
    }
    return m;
}

}  // namespace angelia::cli
