// The duplicate key error: drivers parse its code and the two documents, people grep its text.
#include "engine/collection/records.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>

namespace angelia::engine {

namespace {

void message_text(std::string& out, bson::ValueView value);

void message_fields(std::string& out, bson::DocumentView document, bool with_names) {
    bool first = true;
    for (const auto& element : document) {
        out += first ? " " : ", ";
        first = false;
        if (with_names) out += fmt::format("{}: ", element.key);
        message_text(out, element.value);
    }
    out += first ? "" : " ";
}

void message_text(std::string& out, bson::ValueView value) {
    switch (value.type()) {
        case bson::Type::String:
            out += fmt::format("\"{}\"", value.as_string());
            break;
        case bson::Type::ObjectId:
            out += fmt::format("ObjectId('{}')", value.as_object_id().to_hex());
            break;
        case bson::Type::Date:
            out += fmt::format("new Date({})", value.as_date().millis);
            break;
        case bson::Type::Timestamp:
            out += fmt::format("Timestamp({}, {})", value.as_timestamp().seconds,
                               value.as_timestamp().increment);
            break;
        case bson::Type::Int32:
            out += fmt::format("{}", value.as_int32());
            break;
        case bson::Type::Int64:
            out += fmt::format("{}", value.as_int64());
            break;
        case bson::Type::Double: {
            // Doubles show a fraction, so that 1.0 is told from 1.
            auto text = fmt::format("{}", value.as_double());
            if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
            out += text;
            break;
        }
        case bson::Type::Bool:
            out += value.as_bool() ? "true" : "false";
            break;
        case bson::Type::Null:
            out += "null";
            break;
        case bson::Type::Undefined:
            out += "undefined";
            break;
        case bson::Type::MinKey:
            out += "MinKey";
            break;
        case bson::Type::MaxKey:
            out += "MaxKey";
            break;
        case bson::Type::Regex:
            out += fmt::format("/{}/{}", value.as_regex().pattern, value.as_regex().options);
            break;
        case bson::Type::Document:
            out += "{";
            message_fields(out, value.as_document(), true);
            out += "}";
            break;
        case bson::Type::Array:
            out += "[";
            message_fields(out, value.as_document(), false);
            out += "]";
            break;
        case bson::Type::Binary: {
            const auto binary = value.as_binary();
            if (binary.subtype == 4 && binary.bytes.size() == 16) {
                std::string hex;
                for (std::size_t i = 0; i < 16; ++i) {
                    if (i == 4 || i == 6 || i == 8 || i == 10) hex += '-';
                    hex += fmt::format("{:02x}", static_cast<std::uint8_t>(binary.bytes[i]));
                }
                out += fmt::format("UUID(\"{}\")", hex);
                break;
            }
            std::string hex;
            for (char c : binary.bytes) hex += fmt::format("{:02X}", static_cast<std::uint8_t>(c));
            out += fmt::format("BinData({}, {})", binary.subtype, hex);
            break;
        }
        default:
            out += bson::to_json(value);
            break;
    }
}

}  // namespace

std::string to_message_text(bson::DocumentView document) {
    std::string out = "{";
    message_fields(out, document, true);
    return out + "}";
}

Error duplicate_key_error(const Collection& collection, const Index& index,
                          bson::DocumentView document, std::string_view encoded_key) {
    const auto values = query::key_values(index.pattern, document, encoded_key);
    Error error(ErrorCode::DuplicateKey,
                fmt::format("E11000 duplicate key error collection: {} index: {} dup key: {}",
                            collection.ns.full(), index.spec.name, to_message_text(values)));
    error.details_bson = bson::make("keyPattern", index.spec.key, "keyValue", values).take_bytes();
    return error;
}

}  // namespace angelia::engine
