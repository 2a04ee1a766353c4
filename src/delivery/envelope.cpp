#include "delivery/envelope.h"

#include <angelia/bson/json.h>
#include <angelia/bson/validate.h>

#include <algorithm>
#include <limits>

namespace angelia::delivery {
namespace {

using bson::Type;
using bson::ValueView;

Error malformed(const char* reason) { return {ErrorCode::BadValue, reason}; }

bool absent(ValueView v) { return v.is_missing() || v.is_null() || v.is(Type::Undefined); }

std::optional<std::int64_t> millis_of(ValueView v) {
    if (v.is(Type::Date)) return v.as_date().millis;
    if (auto whole = v.to_int64()) return whole;
    if (auto number = v.to_double(); number && *number > -9.0e18 && *number < 9.0e18)
        return static_cast<std::int64_t>(*number);
    return std::nullopt;
}

/// Free text: other languages also store numbers there.
std::optional<std::string> text_of(ValueView v) {
    if (absent(v)) return std::nullopt;
    if (auto s = v.get_string()) return std::string(*s);
    return bson::to_json(v);
}

Result<bool> flag_of(ValueView v, bool otherwise, const char* reason) {
    if (absent(v)) return otherwise;
    if (auto b = v.get_bool()) return *b;
    if (v.is_number()) return v.truthy();
    return malformed(reason);
}

Result<std::vector<std::string>> strings_of(ValueView v, const char* reason) {
    std::vector<std::string> out;
    if (auto one = v.get_string()) {
        out.emplace_back(*one);
        return out;
    }
    auto list = v.get_array();
    if (!list) return malformed(reason);
    for (const auto& element : *list) {
        auto s = element.value.get_string();
        if (!s) return malformed(reason);
        out.emplace_back(*s);
    }
    return out;
}

Result<void> check_name(std::string_view text, std::size_t bytes_max, const char* what) {
    const std::string prefix = std::string(what) + " ";
    if (text.empty())
        return {ErrorCode::BadValue,
                prefix + "is empty; allowed are 1 to " + std::to_string(bytes_max) + " bytes"};
    if (text.size() > bytes_max) {
        return {ErrorCode::BadValue, prefix + "has " + std::to_string(text.size()) +
                                         " bytes; allowed are 1 to " + std::to_string(bytes_max)};
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        // C0 controls, DEL, and C1 controls (U+0080 to U+009F, two bytes in UTF-8).
        const bool c1 =
            c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
        if (c < 0x20 || c == 0x7F || c1) {
            return {ErrorCode::BadValue, prefix + "has a control character at byte " +
                                             std::to_string(i) +
                                             "; allowed is UTF-8 text without them"};
        }
    }
    if (!bson::is_utf8(text)) return {ErrorCode::BadValue, prefix + "is not UTF-8"};
    return {};
}

}  // namespace

bool Envelope::marked_by(std::string_view id) const {
    return std::find(message.processed_by.begin(), message.processed_by.end(), id) !=
           message.processed_by.end();
}

bool Envelope::addressed_to(std::string_view id) const {
    return std::find(message.recipients.begin(), message.recipients.end(), id) !=
           message.recipients.end();
}

Message Message::copy() const {
    Message m;
    m.topic = topic;
    m.msg = msg;
    m.value = value;
    if (map_value) m.map_value = map_value->copy();
    if (additional) m.additional = bson::Array(bson::Document(additional->view()));
    m.exclusive = exclusive;
    m.recipients = recipients;
    m.priority = priority;
    m.ttl = ttl;
    m.timing_out = timing_out;
    m.delete_after_processing = delete_after_processing;
    m.delete_after_processing_time = delete_after_processing_time;
    m.in_answer_to = in_answer_to;
    m.id = id;
    m.sender = sender;
    m.sender_host = sender_host;
    m.timestamp = timestamp;
    m.delete_at = delete_at;
    m.processed_by = processed_by;
    m.leased_by = leased_by;
    m.leased_until = leased_until;
    m.attempt = attempt;
    m.last_error = last_error;
    return m;
}

Result<void> check_topic(std::string_view topic) {
    return check_name(topic, kTopicBytesMax, "topic");
}
Result<void> check_sender(std::string_view id) {
    return check_name(id, kSenderBytesMax, "sender id");
}

Result<Envelope> decode(bson::DocumentView document) {
    Envelope e;
    Message& m = e.message;
    bool have_id = false;
    ValueView name, timing_out, processed_by;
    for (const auto& [key, value] : document) {
        if (key == "_id") {
            auto id = value.get_object_id();
            if (!id) return malformed("_id is not an ObjectId");
            m.id = *id;
            have_id = true;
        } else if (key == "topic") {
            if (absent(value)) continue;
            auto s = value.get_string();
            if (!s) return malformed("topic is not a string");
            m.topic = *s;
        } else if (key == "name") {
            name = value;
        } else if (key == "sender") {
            auto s = value.get_string();
            if (!s) return malformed("sender is not a string");
            m.sender = *s;
        } else if (key == "sender_host") {
            if (auto s = value.get_string()) m.sender_host = *s;
        } else if (key == "msg") {
            m.msg = text_of(value);
        } else if (key == "value") {
            m.value = text_of(value);
        } else if (key == "map_value") {
            if (absent(value)) continue;
            auto map = value.get_document();
            if (!map) return malformed("map_value is not a document");
            m.map_value = bson::Document(*map);
        } else if (key == "additional") {
            if (absent(value)) continue;
            auto list = value.get_array();
            if (!list) return malformed("additional is not an array");
            m.additional = bson::Array(bson::Document(*list));
        } else if (key == "recipients") {
            if (absent(value)) continue;
            ANGELIA_TRY_ASSIGN(m.recipients,
                               strings_of(value, "recipients is not a list of strings"));
            e.addressed = true;
        } else if (key == "in_answer_to") {
            if (absent(value)) continue;
            auto id = value.get_object_id();
            if (!id) return malformed("in_answer_to is not an ObjectId");
            m.in_answer_to = *id;
        } else if (key == "processed_by") {
            processed_by = value;
        } else if (key == "timestamp") {
            if (absent(value)) continue;
            auto t = millis_of(value);
            if (!t) return malformed("timestamp is not a number");
            m.timestamp = *t;
        } else if (key == "ttl") {
            if (absent(value)) continue;
            auto t = millis_of(value);
            if (!t) return malformed("ttl is not a number");
            m.ttl = std::chrono::milliseconds(*t);
        } else if (key == "delete_at") {
            if (absent(value)) continue;
            auto at = value.get_date();
            if (!at) return malformed("delete_at is not a date");
            m.delete_at = *at;
        } else if (key == "timing_out") {
            timing_out = value;
        } else if (key == "delete_after_processing") {
            ANGELIA_TRY_ASSIGN(m.delete_after_processing,
                               flag_of(value, false, "delete_after_processing is not a bool"));
        } else if (key == "delete_after_processing_time") {
            if (absent(value)) continue;
            auto t = millis_of(value);
            if (!t) return malformed("delete_after_processing_time is not a number");
            m.delete_after_processing_time = std::chrono::milliseconds(*t);
        } else if (key == "priority") {
            if (absent(value)) continue;
            auto p = millis_of(value);
            if (!p || value.is(Type::Date)) return malformed("priority is not a number");
            m.priority = static_cast<std::int32_t>(
                std::clamp<std::int64_t>(*p, std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::int32_t>::max()));
        } else if (key == "exclusive") {
            ANGELIA_TRY_ASSIGN(m.exclusive, flag_of(value, false, "exclusive is not a bool"));
        } else if (key == "leased_by") {
            if (auto s = value.get_string()) m.leased_by = *s;
        } else if (key == "leased_until") {
            m.leased_until = value.get_date();
        } else if (key == "attempt") {
            if (auto n = value.to_int64();
                n && *n > 0 && *n < std::numeric_limits<std::int32_t>::max())
                m.attempt = static_cast<std::int32_t>(*n);
        } else if (key == "last_error") {
            if (auto s = value.get_string()) m.last_error = std::string(*s);
        }
    }
    if (!have_id) return malformed("_id is missing");
    if (m.topic.empty()) {
        auto legacy = name.get_string();
        if (!legacy || legacy->empty()) return malformed("topic and name are missing");
        m.topic = *legacy;
    }
    if (m.sender.empty()) return malformed("sender is missing");
    if (absent(processed_by)) {
        e.marks_are_null = true;
    } else {
        if (!processed_by.is(Type::Array)) return malformed("processed_by is not an array");
        ANGELIA_TRY_ASSIGN(m.processed_by,
                           strings_of(processed_by, "processed_by is not a list of strings"));
    }
    ANGELIA_TRY_ASSIGN(m.timing_out,
                       flag_of(timing_out, m.delete_at.has_value(), "timing_out is not a bool"));
    if (!m.delete_after_processing) m.delete_after_processing = false;
    return e;
}

bson::Document encode(const Message& m) {
    bson::Builder b;
    const auto text = [&b](std::string_view key, const std::optional<std::string>& v) {
        v ? b.add(key, *v) : b.add(key, bson::Null{});
    };
    b.add("_id", m.id).add("class_name", kClassName);
    b.add("sender", m.sender).add("sender_host", m.sender_host);
    b.add("topic", m.topic).add("name", m.topic);
    text("msg", m.msg);
    text("value", m.value);
    m.additional ? b.add("additional", *m.additional) : b.add("additional", bson::Null{});
    m.map_value ? b.add("map_value", *m.map_value) : b.add("map_value", bson::Null{});
    if (m.recipients.empty()) {
        b.add("recipients", bson::Null{});
    } else {
        b.open_array("recipients");
        for (const auto& r : m.recipients) b.push(r);
        b.close();
    }
    m.in_answer_to ? b.add("in_answer_to", *m.in_answer_to) : b.add("in_answer_to", bson::Null{});
    b.open_array("processed_by");
    for (const auto& p : m.processed_by) b.push(p);
    b.close();
    b.add("timestamp", m.timestamp);
    b.add("ttl", std::int64_t{m.ttl ? m.ttl->count() : 0});
    m.delete_at ? b.add("delete_at", *m.delete_at) : b.add("delete_at", bson::Null{});
    b.add("timing_out", m.timing_out.value_or(true));
    b.add("delete_after_processing", m.delete_after_processing.value_or(false));
    b.add("delete_after_processing_time",
          static_cast<std::int32_t>(m.delete_after_processing_time.count()));
    b.add("priority", m.priority);
    b.add("exclusive", m.exclusive);
    return b.take();
}

Result<void> complete(Message& m, const SendDefaults& defaults) {
    using std::chrono::milliseconds;
    constexpr milliseconds kTtlMax = std::chrono::hours(24 * 366 * 10);
    ANGELIA_TRY(check_topic(m.topic));
    for (const auto& r : m.recipients) ANGELIA_TRY(check_sender(r));
    if (m.ttl && (*m.ttl < milliseconds(1) || *m.ttl > kTtlMax)) {
        return {ErrorCode::BadValue, "ttl is " + std::to_string(m.ttl->count()) +
                                         " ms; allowed are 1 ms to 10 years, or none"};
    }
    if (m.ttl && m.timing_out && !*m.timing_out)
        return {ErrorCode::BadValue, "ttl is given and timing_out is false; give one of them"};
    if (m.delete_after_processing_time < milliseconds(0) ||
        m.delete_after_processing_time.count() > std::numeric_limits<std::int32_t>::max()) {
        return {ErrorCode::BadValue, "delete_after_processing_time is " +
                                         std::to_string(m.delete_after_processing_time.count()) +
                                         " ms; allowed are 0 to 2147483647"};
    }
    const auto utf8 = [](const std::optional<std::string>& text) {
        return !text || bson::is_utf8(*text);
    };
    if (!utf8(m.msg)) return {ErrorCode::BadValue, "msg is not UTF-8"};
    if (!utf8(m.value)) return {ErrorCode::BadValue, "value is not UTF-8"};

    if (m.id == bson::ObjectId{}) m.id = bson::ObjectId::generate();
    m.sender = defaults.sender;
    m.sender_host = defaults.sender_host;
    if (!m.timing_out)
        m.timing_out = !m.exclusive || m.ttl.has_value() || defaults.exclusive_times_out;
    if (!m.delete_after_processing)
        m.delete_after_processing = m.exclusive && defaults.exclusive_is_deleted;
    m.timestamp = defaults.now_millis;
    if (*m.timing_out) {
        if (!m.ttl) m.ttl = defaults.default_ttl;
        m.delete_at = bson::Date{defaults.now_millis + m.ttl->count()};
    } else {
        m.ttl = milliseconds(0);
        m.delete_at.reset();
    }
    m.leased_by.clear();
    m.leased_until.reset();
    m.attempt = 0;
    m.last_error.reset();
    return {};
}

Message answer_to(const Message& request) {
    Message answer;
    answer.topic = request.topic;
    answer.in_answer_to = request.id;
    answer.recipients = {request.sender};
    constexpr std::int32_t kMoreUrgent = 10;  // Morphium's offset
    answer.priority = request.priority < std::numeric_limits<std::int32_t>::min() + kMoreUrgent
                          ? request.priority
                          : request.priority - kMoreUrgent;
    return answer;
}

}  // namespace angelia::delivery
