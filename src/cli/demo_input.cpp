#include "cli/demo_input.h"

#include "cli/message_json.h"
#include "cli/run_command.h"

#include <angelia/bson/validate.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

namespace angelia::cli::demo {
namespace {

constexpr std::size_t kMessagesMax = 100'000;

Result<void> load_file(const std::string& file, Input& input) {
    ANGELIA_TRY_ASSIGN(LineReader reader, LineReader::open(file));
    std::string line;
    for (;;) {
        ANGELIA_TRY_ASSIGN(const bool more, reader.next(line));
        if (!more || input.messages.size() == kMessagesMax) break;
        auto message = message_from_json(line);
        if (!message) return reader.at_line(std::move(message).error());
        input.messages.push_back(*std::move(message));
    }
    if (input.messages.empty())
        return {ErrorCode::BadValue, fmt::format("{} holds no message", file)};
    input.source = fmt::format("{} messages of {}", input.messages.size(), file);
    return {};
}

/// One commit a message; fields separated by 0x1f.
bool load_history(Input& input) {
    const auto log = CommandRunner().run("git log -n 2000 --format='%H%x1f%an%x1f%at%x1f%s'", "",
                                         milliseconds(10'000));
    if (!log || log->exit_code != 0) return false;
    std::istringstream lines(log->out);
    for (std::string line; std::getline(lines, line);) {
        if (!bson::is_utf8(line)) continue;  // from times of other encodings
        std::vector<std::string> part;
        std::istringstream fields(line);
        for (std::string field; std::getline(fields, field, '\x1f');) part.push_back(field);
        if (part.size() != 4) continue;
        Message m;
        m.topic = "git.commit";
        m.value = part[0];
        m.map_value =
            bson::make("author", part[1], "at", bson::Date{std::atoll(part[2].c_str()) * 1000},
                       "subject", part[3]);
        input.messages.push_back(std::move(m));
    }
    input.source = fmt::format("{} commits of this repository", input.messages.size());
    return !input.messages.empty();
}

void load_orders(Input& input) {
    static constexpr const char* states[] = {"created", "paid", "packed", "shipped", "delivered"};
    for (std::int32_t order = 1; order <= 10; ++order) {
        for (const char* state : states) {
            Message m;
            m.topic = std::string("order.") + state;
            m.value = std::to_string(4700 + order);
            m.map_value = bson::make("order", 4700 + order, "state", state, "cents",
                                     std::int64_t{1999} * order);
            input.messages.push_back(std::move(m));
        }
    }
    input.source = "50 made-up order events (no input file, no git history here)";
}

}  // namespace

Result<Input> load_input(const std::string& file) {
    Input input;
    if (!file.empty()) {
        ANGELIA_TRY(load_file(file, input));
    } else if (!load_history(input)) {
        load_orders(input);
    }
    std::set<std::string> topics;
    for (const Message& m : input.messages) topics.insert(m.topic);
    input.topics.assign(topics.begin(), topics.end());
    return input;
}

}  // namespace angelia::cli::demo
