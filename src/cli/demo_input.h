// The real messages that the demo plays.
#pragma once

#include <angelia/base/result.h>
#include <angelia/messaging/message.h>

#include <string>
#include <vector>

namespace angelia::cli::demo {

struct Input {
    std::string source;               ///< for people: "329 messages of webhooks.ndjson"
    std::vector<Message> messages;    ///< never empty
    std::vector<std::string> topics;  ///< distinct, sorted
};

/// `file`: lines as `publish --messages` takes them. Empty: the commit history of the git
/// repository in the current folder; outside of one, a handful of orders that come with the
/// program. Errors: FileNotOpen, FailedToParse and BadValue with the line, BadValue when empty.
Result<Input> load_input(const std::string& file);

}  // namespace angelia::cli::demo
