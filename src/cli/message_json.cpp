#include "cli/message_json.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>

#include <utility>

namespace angelia::cli {
namespace {

constexpr std::string_view kFields =
    "topic, value, msg, map_value, additional, exclusive, recipients, priority, ttl, timing_out, "
    "delete_after_processing, delete_after_processing_time";

Error wrong(std::string_view field, std::string_view expected, bson::ValueView got) {
    return {ErrorCode::BadValue, fmt::format("field '{}' must be {}, not {}", field, expected,
                                             bson::type_alias(got.type()))};
}

Result<std::optional<std::string>> text_field(std::string_view field, bson::ValueView v) {
    const auto text = v.get_string();
    if (!text) return wrong(field, "a string or null", v);
    return std::optional<std::string>(*text);
}

Result<std::int64_t> integer_field(std::string_view field, bson::ValueView v, std::int64_t least,
                                   std::int64_t most) {
    const auto n = v.to_int64();
    if (!n || *n < least || *n > most)
        return wrong(field, fmt::format("an integer from {} to {}", least, most), v);
    return *n;
}

Result<bool> bool_field(std::string_view field, bson::ValueView v) {
    const auto b = v.get_bool();
    if (!b) return wrong(field, "true or false", v);
    return *b;
}

Result<void> set_field(Message& m, std::string_view key, bson::ValueView v) {
    constexpr std::int64_t year_ms = std::int64_t{366} * 86'400'000;
    if (key == "topic") {
        if (!v.get_string()) return wrong(key, "a string", v);
        m.topic = *v.get_string();
    } else if (key == "value") {
        ANGELIA_TRY_ASSIGN(m.value, text_field(key, v));
    } else if (key == "msg") {
        ANGELIA_TRY_ASSIGN(m.msg, text_field(key, v));
    } else if (key == "map_value") {
        if (!v.get_document()) return wrong(key, "an object or null", v);
        m.map_value = bson::Document(*v.get_document());
    } else if (key == "additional") {
        if (!v.get_array()) return wrong(key, "an array or null", v);
        m.additional = bson::Array(bson::Document(*v.get_array()));
    } else if (key == "exclusive") {
        ANGELIA_TRY_ASSIGN(m.exclusive, bool_field(key, v));
    } else if (key == "recipients") {
        if (!v.get_array()) return wrong(key, "an array of strings or null", v);
        for (const bson::DocumentView recipients = *v.get_array();
             const bson::Element& e : recipients) {
            if (!e.value.get_string())
                return wrong("recipients." + std::string(e.key), "a string", e.value);
            m.recipients.emplace_back(*e.value.get_string());
        }
    } else if (key == "priority") {
        ANGELIA_TRY_ASSIGN(const std::int64_t n, integer_field(key, v, INT32_MIN, INT32_MAX));
        m.priority = static_cast<std::int32_t>(n);
    } else if (key == "ttl") {
        ANGELIA_TRY_ASSIGN(const std::int64_t n, integer_field(key, v, 1, 100 * year_ms));
        m.ttl = milliseconds(n);
    } else if (key == "timing_out") {
        ANGELIA_TRY_ASSIGN(m.timing_out, bool_field(key, v));
    } else if (key == "delete_after_processing") {
        ANGELIA_TRY_ASSIGN(m.delete_after_processing, bool_field(key, v));
    } else if (key == "delete_after_processing_time") {
        ANGELIA_TRY_ASSIGN(const std::int64_t n, integer_field(key, v, 0, INT32_MAX));
        m.delete_after_processing_time = milliseconds(n);
    } else {
        return {ErrorCode::BadValue, fmt::format("unknown field '{}'; allowed: {}", key, kFields)};
    }
    return {};
}

}  // namespace

Result<Message> message_from_document(bson::DocumentView document) {
    Message m;
    for (const bson::Element& e : document) {
        if (e.value.is_null()) continue;
        ANGELIA_TRY(set_field(m, e.key, e.value));
    }
    if (m.topic.empty())
        return {ErrorCode::BadValue, "field 'topic' is missing; it must be a non-empty string"};
    return m;
}

Result<Message> message_from_json(std::string_view line) {
    ANGELIA_TRY_ASSIGN(const bson::Document document, bson::from_json(line));
    return message_from_document(document.view());
}

std::string message_to_json(const Message& m) {
    bson::Builder b;
    b.add("_id", m.id).add("topic", m.topic).add("sender", m.sender);
    if (m.msg) b.add("msg", *m.msg);
    if (m.value) b.add("value", *m.value);
    if (m.map_value) b.add("map_value", *m.map_value);
    if (m.additional) b.add("additional", *m.additional);
    b.add("exclusive", m.exclusive)
        .add("priority", m.priority)
        .add("timestamp", bson::Date{m.timestamp});
    if (!m.recipients.empty()) {
        b.open_array("recipients");
        for (const auto& r : m.recipients) b.push(r);
        b.close();
    }
    if (m.in_answer_to) b.add("in_answer_to", *m.in_answer_to);
    if (m.ttl) b.add("ttl", static_cast<std::int64_t>(m.ttl->count()));
    if (m.attempt > 0) b.add("attempt", m.attempt);
    if (m.last_error) b.add("last_error", *m.last_error);
    const bson::Document document = b.take();
    return bson::to_json(document.view());
}

Result<LineReader> LineReader::open(const std::string& name, const SignalWatch* signals) {
    ANGELIA_TRY_ASSIGN(Input input, Input::open(name, signals));
    return LineReader(std::move(input));
}

Result<bool> LineReader::next(std::string& line) {
    std::size_t looked = 0;  // how much of what is there holds no end of line
    for (;;) {
        const auto end = buffer_.find('\n', begin_ + looked);
        const bool last = end == std::string::npos && ended_ && begin_ < buffer_.size();
        if (end != std::string::npos || last) {
            line.assign(buffer_, begin_, (last ? buffer_.size() : end) - begin_);
            begin_ = last ? buffer_.size() : end + 1;
            ++number_;
            bytes_ += line.size() + 1;
            looked = 0;
            if (line.find_first_not_of(" \t\r") != std::string::npos) return true;
            continue;
        }
        if (ended_) return false;
        buffer_.erase(0, std::exchange(begin_, 0));
        looked = buffer_.size();
        if (looked > Input::kBytesMax)
            return {ErrorCode::InvalidLength,
                    fmt::format("{} line {} is longer than {} MiB; allowed is one JSON object a "
                                "line, of a document's size",
                                name(), number_ + 1, Input::kBytesMax >> 20)};
        auto more = input_.read_some(buffer_);
        if (!more)
            return {more.error().code,
                    fmt::format("{} behind line {}", more.error().message, number_)};
        ended_ = !*more;
    }
}

Error LineReader::at_line(Error error) const {
    error.message = fmt::format("{} line {}: {}", name(), number_, error.message);
    return error;
}

}  // namespace angelia::cli
