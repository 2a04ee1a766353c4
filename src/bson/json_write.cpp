// BSON to Extended JSON.
#include <angelia/bson/json.h>

#include "bson/code_with_scope.h"
#include "bson/decimal.h"
#include "bson/json_date.h"

#include <angelia/base/base64.h>

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>

namespace angelia::bson {
namespace {

class JsonWriter {
  public:
    JsonWriter(JsonMode mode, bool pretty) : relaxed_(mode == JsonMode::Relaxed), pretty_(pretty) {}

    void document(DocumentView v) { elements(v, '{', '}', true); }

    void value(ValueView v) {
        switch (v.type()) {
            case Type::Missing:
            case Type::Null:
                out_ += "null";
                return;
            case Type::Bool:
                out_ += v.as_bool() ? "true" : "false";
                return;
            case Type::String:
                quote(v.as_string());
                return;
            case Type::Document:
                document(v.as_document());
                return;
            case Type::Array:
                elements(v.as_document(), '[', ']', false);
                return;
            case Type::Double:
                number_double(v.as_double());
                return;
            case Type::Int32:
                integer("$numberInt", v.as_int32());
                return;
            case Type::Int64:
                integer("$numberLong", v.as_int64());
                return;
            case Type::Decimal128:
                wrapped("$numberDecimal", decimal_to_string(v.as_decimal128()));
                return;
            case Type::ObjectId:
                wrapped("$oid", v.as_object_id().to_hex());
                return;
            case Type::Date:
                date(v.as_date());
                return;
            case Type::Binary:
                binary(v.as_binary());
                return;
            case Type::Timestamp:
                timestamp(v.as_timestamp());
                return;
            case Type::Regex:
                regex(v.as_regex());
                return;
            case Type::Symbol:
                wrapped("$symbol", v.as_string());
                return;
            case Type::JavaScript:
                wrapped("$code", v.as_string());
                return;
            case Type::JavaScriptWithScope:
                code_with_scope(v);
                return;
            case Type::DbPointer:
                db_pointer(v);
                return;
            case Type::Undefined:
                out_ += R"({"$undefined":true})";
                return;
            case Type::MinKey:
                out_ += R"({"$minKey":1})";
                return;
            case Type::MaxKey:
                out_ += R"({"$maxKey":1})";
                return;
        }
        ANGELIA_CHECK(false);
    }

    std::string take() { return std::move(out_); }

  private:
    void elements(DocumentView v, char open, char close, bool with_names) {
        out_ += open;
        if (v.empty()) {
            out_ += close;
            return;
        }
        ++level_;
        bool first = true;
        for (const Element& e : v) {
            if (!first) out_ += ',';
            first = false;
            new_line();
            if (with_names) {
                quote(e.key);
                out_ += pretty_ ? ": " : ":";
            }
            value(e.value);
        }
        --level_;
        new_line();
        out_ += close;
    }

    void new_line() {
        if (!pretty_) return;
        out_ += '\n';
        out_.append(2 * level_, ' ');
    }

    void quote(std::string_view text) {
        out_ += '"';
        std::size_t plain_from = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const auto c = static_cast<unsigned char>(text[i]);
            if (c >= 0x20 && c != '"' && c != '\\') continue;
            out_.append(text, plain_from, i - plain_from);
            plain_from = i + 1;
            escape(c);
        }
        out_.append(text, plain_from);
        out_ += '"';
    }

    void escape(unsigned char c) {
        switch (c) {
            case '"':
                out_ += "\\\"";
                return;
            case '\\':
                out_ += "\\\\";
                return;
            case '\b':
                out_ += "\\b";
                return;
            case '\f':
                out_ += "\\f";
                return;
            case '\n':
                out_ += "\\n";
                return;
            case '\r':
                out_ += "\\r";
                return;
            case '\t':
                out_ += "\\t";
                return;
            default:
                fmt::format_to(std::back_inserter(out_), "\\u{:04x}", c);
        }
    }

    /// {"name":"text"} with text quoted.
    void wrapped(std::string_view name, std::string_view text) {
        out_ += "{\"";
        out_ += name;
        out_ += "\":";
        quote(text);
        out_ += '}';
    }

    void integer(std::string_view name, std::int64_t v) {
        if (relaxed_) {
            fmt::format_to(std::back_inserter(out_), "{}", v);
        } else {
            wrapped(name, fmt::format("{}", v));
        }
    }

    static std::string double_text(double v) {
        if (std::isnan(v)) return "NaN";
        if (std::isinf(v)) return v > 0 ? "Infinity" : "-Infinity";
        char buffer[32];
        std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
        if (text.find_first_of(".e") == std::string::npos) text += ".0";
        return text;
    }

    void number_double(double v) {
        if (relaxed_ && std::isfinite(v)) {
            out_ += double_text(v);
        } else {
            wrapped("$numberDouble", double_text(v));
        }
    }

    void date(Date v) {
        if (relaxed_ && has_iso_form(v)) {
            wrapped("$date", format_iso_date(v));
        } else {
            fmt::format_to(std::back_inserter(out_), R"({{"$date":{{"$numberLong":"{}"}}}})",
                           v.millis);
        }
    }

    void binary(BinaryView v) {
        // Old binary data repeats its length inside; the specification prints what is behind it.
        const std::string_view bytes =
            v.subtype == 2 && v.bytes.size() >= 4 ? v.bytes.substr(4) : v.bytes;
        fmt::format_to(std::back_inserter(out_),
                       R"({{"$binary":{{"base64":"{}","subType":"{:02x}"}}}})",
                       base64_encode(bytes), v.subtype);
    }

    void timestamp(Timestamp v) {
        fmt::format_to(std::back_inserter(out_), R"({{"$timestamp":{{"t":{},"i":{}}}}})", v.seconds,
                       v.increment);
    }

    void regex(RegexView v) {
        out_ += R"({"$regularExpression":{"pattern":)";
        quote(v.pattern);
        out_ += R"(,"options":)";
        quote(v.options);
        out_ += "}}";
    }

    void code_with_scope(ValueView v) {
        const CodeWithScope parts = split_code_with_scope(v);
        out_ += R"({"$code":)";
        quote(parts.code);
        out_ += R"(,"$scope":)";
        document(parts.scope);
        out_ += '}';
    }

    void db_pointer(ValueView v) {
        const auto bytes = v.bytes();
        ObjectId id;
        std::memcpy(id.bytes.data(), bytes.data() + bytes.size() - 12, 12);
        out_ += R"({"$dbPointer":{"$ref":)";
        quote(bytes.substr(4, bytes.size() - 4 - 1 - 12));
        out_ += R"(,"$id":)";
        wrapped("$oid", id.to_hex());
        out_ += "}}";
    }

    const bool relaxed_;
    const bool pretty_;
    std::size_t level_ = 0;
    std::string out_;
};

}  // namespace

std::string to_json(DocumentView document, JsonMode mode) {
    JsonWriter writer(mode, false);
    writer.document(document);
    return writer.take();
}

std::string to_json(ValueView value, JsonMode mode) {
    JsonWriter writer(mode, false);
    writer.value(value);
    return writer.take();
}

std::string to_json_pretty(DocumentView document, JsonMode mode) {
    JsonWriter writer(mode, true);
    writer.document(document);
    return writer.take();
}

}  // namespace angelia::bson
