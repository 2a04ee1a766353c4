// Extended JSON to BSON: one buffer grows with the events; an object that turns out to spell a type
// when it closes is replaced by that value in place.
#include <angelia/bson/json.h>
#include <angelia/bson/validate.h>

#include "bson/json_lexer.h"
#include "bson/json_wrappers.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

namespace angelia::bson {
namespace {

/// Objects that spell types nest deeper in JSON than in BSON; what BSON allows is checked at the
/// end.
constexpr std::size_t kJsonNestingMax = 2 * kNestingMax + 8;
/// While reading, text stands where values will: twice the limit is never needed by a document that
/// fits.
constexpr std::size_t kGrowingBytesMax = 2 * kDocumentBytesMax;

Error nesting_error() {
    return {ErrorCode::Overflow,
            fmt::format("JSON nests deeper than the {} levels that BSON allows", kNestingMax)};
}

Error size_error() {
    return {ErrorCode::BSONObjectTooLarge,
            fmt::format("JSON makes a document larger than the {} bytes that BSON allows",
                        kDocumentBytesMax)};
}

class DocumentReader final : public JsonEvents {
  public:
    Result<void> null() override { return append(Type::Null, {}); }
    Result<void> boolean(bool v) override {
        return append_raw(Type::Bool, static_cast<std::uint8_t>(v));
    }
    Result<void> integer(std::int64_t v) override {
        if (v < std::numeric_limits<std::int32_t>::min() ||
            v > std::numeric_limits<std::int32_t>::max())
            return append_raw(Type::Int64, v);
        return append_raw(Type::Int32, static_cast<std::int32_t>(v));
    }
    Result<void> number(double v) override { return append_raw(Type::Double, v); }

    Result<void> string(std::string_view v) override {
        ANGELIA_TRY(begin_value(Type::String, v.size() + 5));
        append_size(v.size() + 1);
        bytes_.append(v).push_back('\0');
        return {};
    }

    Result<void> key(std::string_view name) override {
        if (name.find('\0') != std::string_view::npos)
            return {ErrorCode::FailedToParse, "a field name must not contain a zero byte"};
        key_ = name;
        if (!name.empty() && name[0] == '$') frames_.back().has_dollar = true;
        return {};
    }

    Result<void> start_object() override { return open(Type::Document); }
    Result<void> start_array() override { return open(Type::Array); }
    Result<void> end_array() override {
        close();
        return {};
    }

    Result<void> end_object() override {
        const Frame frame = frames_.back();
        close();
        if (!frame.has_dollar) return {};
        ANGELIA_TRY_ASSIGN(
            const std::optional<Value> value,
            read_json_wrapper(DocumentView(std::string_view(bytes_).substr(frame.start))));
        if (!value) return {};
        if (frames_.empty())
            return {ErrorCode::FailedToParse,
                    "a document is wanted at the top, not the value that this object spells"};
        bytes_.resize(frame.start);
        bytes_.append(value->view().bytes());
        bytes_[frame.type_at] = static_cast<char>(value->type());
        return {};
    }

    std::string take() { return std::move(bytes_); }

  private:
    struct Frame {
        std::size_t start;
        std::size_t type_at;
        bool is_array;
        bool has_dollar = false;
        std::uint32_t next_index = 0;
    };

    /// Type and name; `size` is what the value will add.
    Result<void> begin_value(Type type, std::size_t size) {
        if (frames_.empty()) return {ErrorCode::FailedToParse, "an object is wanted"};
        if (bytes_.size() + key_.size() + size > kGrowingBytesMax) return size_error();
        bytes_.push_back(static_cast<char>(type));
        if (Frame& frame = frames_.back(); frame.is_array) {
            char text[12];
            bytes_.append(text, std::to_chars(text, text + sizeof text, frame.next_index++).ptr);
        } else {
            bytes_.append(key_);
        }
        bytes_.push_back('\0');
        return {};
    }

    Result<void> append(Type type, std::string_view value) {
        ANGELIA_TRY(begin_value(type, value.size()));
        bytes_.append(value);
        return {};
    }

    template <class T>
    Result<void> append_raw(Type type, T v) {
        return append(type, {reinterpret_cast<const char*>(&v), sizeof v});
    }

    void append_size(std::size_t size) {
        const auto v = static_cast<std::int32_t>(size);
        bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
    }

    Result<void> open(Type type) {
        if (frames_.size() >= kJsonNestingMax) return nesting_error();
        const std::size_t type_at = bytes_.size();
        if (!frames_.empty() || type == Type::Array) ANGELIA_TRY(begin_value(type, 5));
        frames_.push_back(
            {.start = bytes_.size(), .type_at = type_at, .is_array = type == Type::Array});
        append_size(0);
        return {};
    }

    void close() {
        bytes_.push_back('\0');
        const std::size_t start = frames_.back().start;
        const auto size = static_cast<std::int32_t>(bytes_.size() - start);
        std::memcpy(bytes_.data() + start, &size, sizeof size);
        frames_.pop_back();
    }

    std::string bytes_;
    std::string key_;
    std::vector<Frame> frames_;
};

}  // namespace

Result<Document> from_json(std::string_view text) {
    DocumentReader reader;
    ANGELIA_TRY(lex_json(text, reader));
    std::string bytes = reader.take();
    const auto checked = validate(bytes, {.bytes_max = kDocumentBytesMax});
    if (!checked) {
        switch (checked.error().code) {
            case ErrorCode::Overflow:
                return nesting_error();
            case ErrorCode::BSONObjectTooLarge:
                return size_error();
            default:
                return checked.error();
        }
    }
    return Document::from_trusted_bytes(std::move(bytes));
}

}  // namespace angelia::bson
