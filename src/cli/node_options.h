// From command line to a node.
#pragma once

#include "cli/common.h"

#include <angelia/messaging/messaging.h>

namespace angelia::cli {

Result<messaging::Options> node_options(const CommonOptions& common, const QueueOptions& queue);

/// The options of one message that publish and request share.
struct MessageOptions {
    std::string topic;
    std::string text, value, file;
    bool has_text = false, has_value = false;
    bool exclusive = false;
    std::vector<std::string> to;
    std::int32_t priority = 1000;
    std::string ttl;
};
void add_message_options(CLI::App& command, MessageOptions& options);
/// Without map_value from a file of lines; `--file` is read here. Errors: FileNotOpen,
/// FailedToParse with the place.
Result<Message> build_message(const MessageOptions& options);
/// What the options say about a message that came from elsewhere: topic, exclusive, to, priority,
/// ttl.
Result<void> apply_message_options(const MessageOptions& options, Message& message);

}  // namespace angelia::cli
