#include "cli/print_message.h"

#include "cli/message_json.h"
#include "cli/output.h"

#include <angelia/bson/json.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace angelia::cli {

bool print_message(const Message& m, bool json) {
    std::string line;
    if (json) {
        line = message_to_json(m);
    } else {
        const std::time_t seconds = m.timestamp / 1000;
        line = fmt::format("{:%H:%M:%S}.{:03}  {}  from {}", fmt::localtime(seconds),
                           m.timestamp % 1000, m.topic, m.sender);
        if (m.attempt > 1) line += fmt::format("  attempt {}", m.attempt);
        if (m.value) line += "  value " + *m.value;
        if (m.msg) line += "  msg " + *m.msg;
        if (m.map_value) line += "  " + bson::to_json(m.map_value->view());
    }
    line += '\n';
    // One call: lines of several threads do not mix.
    write_out(line);
    return !stdout_lost();
}

}  // namespace angelia::cli
