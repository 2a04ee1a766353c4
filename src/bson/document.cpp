#include <angelia/bson/document.h>

#include "bson/decimal.h"

#include <cmath>

namespace angelia::bson {
namespace {

constexpr std::uint8_t kEmptyDocument[5] = {5, 0, 0, 0, 0};

std::int32_t load_int32(const std::uint8_t* at) {
    std::int32_t v;
    std::memcpy(&v, at, sizeof v);
    return v;
}

}  // namespace

std::size_t value_size(Type type, const std::uint8_t* data) {
    switch (type) {
        case Type::Missing:
        case Type::Undefined:
        case Type::Null:
        case Type::MinKey:
        case Type::MaxKey:
            return 0;
        case Type::Bool:
            return 1;
        case Type::Int32:
            return 4;
        case Type::Double:
        case Type::Date:
        case Type::Timestamp:
        case Type::Int64:
            return 8;
        case Type::ObjectId:
            return 12;
        case Type::Decimal128:
            return 16;
        case Type::String:
        case Type::JavaScript:
        case Type::Symbol:
            return 4 + static_cast<std::size_t>(load_int32(data));
        case Type::Document:
        case Type::Array:
        case Type::JavaScriptWithScope:
            return static_cast<std::size_t>(load_int32(data));
        case Type::Binary:
            return 5 + static_cast<std::size_t>(load_int32(data));
        case Type::DbPointer:
            return 4 + static_cast<std::size_t>(load_int32(data)) + 12;
        case Type::Regex: {
            const auto* text = reinterpret_cast<const char*>(data);
            const auto pattern = std::strlen(text) + 1;
            return pattern + std::strlen(text + pattern) + 1;
        }
    }
    ANGELIA_CHECK(false);
}

std::string_view type_alias(Type type) noexcept {
    switch (type) {
        case Type::Missing:
            return "missing";
        case Type::Double:
            return "double";
        case Type::String:
            return "string";
        case Type::Document:
            return "object";
        case Type::Array:
            return "array";
        case Type::Binary:
            return "binData";
        case Type::Undefined:
            return "undefined";
        case Type::ObjectId:
            return "objectId";
        case Type::Bool:
            return "bool";
        case Type::Date:
            return "date";
        case Type::Null:
            return "null";
        case Type::Regex:
            return "regex";
        case Type::DbPointer:
            return "dbPointer";
        case Type::JavaScript:
            return "javascript";
        case Type::Symbol:
            return "symbol";
        case Type::JavaScriptWithScope:
            return "javascriptWithScope";
        case Type::Int32:
            return "int";
        case Type::Timestamp:
            return "timestamp";
        case Type::Int64:
            return "long";
        case Type::Decimal128:
            return "decimal";
        case Type::MaxKey:
            return "maxKey";
        case Type::MinKey:
            return "minKey";
    }
    return "unknown";
}

// ---- ValueView

Decimal128 ValueView::as_decimal128() const {
    need(Type::Decimal128);
    Decimal128 d;
    std::memcpy(&d.low, data_, 8);
    std::memcpy(&d.high, data_ + 8, 8);
    return d;
}

ObjectId ValueView::as_object_id() const {
    need(Type::ObjectId);
    ObjectId id;
    std::memcpy(id.bytes.data(), data_, 12);
    return id;
}

std::string_view ValueView::as_string() const {
    ANGELIA_CHECK(type_ == Type::String || type_ == Type::Symbol || type_ == Type::JavaScript);
    return {reinterpret_cast<const char*>(data_ + 4), size_ - 5};
}

DocumentView ValueView::as_document() const {
    ANGELIA_CHECK(is_container());
    return DocumentView(data_);
}

BinaryView ValueView::as_binary() const {
    need(Type::Binary);
    return {data_[4], {reinterpret_cast<const char*>(data_ + 5), size_ - 5}};
}

RegexView ValueView::as_regex() const {
    need(Type::Regex);
    const std::string_view pattern(reinterpret_cast<const char*>(data_));
    return {pattern, std::string_view(reinterpret_cast<const char*>(data_ + pattern.size() + 1))};
}

std::optional<std::string_view> ValueView::get_string() const {
    if (type_ != Type::String) return std::nullopt;
    return as_string();
}
std::optional<DocumentView> ValueView::get_document() const {
    if (type_ != Type::Document) return std::nullopt;
    return DocumentView(data_);
}
std::optional<DocumentView> ValueView::get_array() const {
    if (type_ != Type::Array) return std::nullopt;
    return DocumentView(data_);
}
std::optional<bool> ValueView::get_bool() const {
    if (type_ != Type::Bool) return std::nullopt;
    return as_bool();
}
std::optional<ObjectId> ValueView::get_object_id() const {
    if (type_ != Type::ObjectId) return std::nullopt;
    return as_object_id();
}
std::optional<Timestamp> ValueView::get_timestamp() const {
    if (type_ != Type::Timestamp) return std::nullopt;
    return as_timestamp();
}
std::optional<Date> ValueView::get_date() const {
    if (type_ != Type::Date) return std::nullopt;
    return as_date();
}

std::optional<std::int64_t> ValueView::to_int64() const {
    switch (type_) {
        case Type::Int32:
            return as_int32();
        case Type::Int64:
            return as_int64();
        case Type::Double: {
            const double d = as_double();
            if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0) || d != std::trunc(d))
                return std::nullopt;
            return static_cast<std::int64_t>(d);
        }
        case Type::Decimal128:
            return decimal_to_int64(as_decimal128());
        default:
            return std::nullopt;
    }
}

std::optional<double> ValueView::to_double() const {
    switch (type_) {
        case Type::Int32:
            return as_int32();
        case Type::Int64:
            return static_cast<double>(as_int64());
        case Type::Double:
            return as_double();
        case Type::Decimal128:
            return decimal_to_double(as_decimal128());
        default:
            return std::nullopt;
    }
}

bool ValueView::truthy() const {
    switch (type_) {
        case Type::Missing:
        case Type::Null:
        case Type::Undefined:
            return false;
        case Type::Bool:
            return as_bool();
        case Type::Int32:
            return as_int32() != 0;
        case Type::Int64:
            return as_int64() != 0;
        case Type::Double:
            return as_double() != 0;
        case Type::Decimal128:
            return decimal_compare(as_decimal128(), decimal_from_int64(0)) !=
                   0;  // a double would lose tiny ones
        default:
            return true;
    }
}

// ---- DocumentView

DocumentView::DocumentView() : data_(kEmptyDocument) {}

void DocumentView::Iterator::parse() {
    const auto type = static_cast<Type>(*at_);
    if (type == Type::Missing) {  // the closing zero
        at_ = nullptr;
        return;
    }
    const auto* name = reinterpret_cast<const char*>(at_ + 1);
    const std::size_t name_size = std::strlen(name);
    const std::uint8_t* value = at_ + 1 + name_size + 1;
    element_ = {{name, name_size}, ValueView(type, value, value_size(type, value))};
}

std::size_t DocumentView::count() const {
    std::size_t n = 0;
    for (auto it = begin(); it != end(); ++it) ++n;
    return n;
}

ValueView DocumentView::find(std::string_view key) const {
    for (const Element& e : *this) {
        if (e.key == key) return e.value;
    }
    return {};
}

ValueView DocumentView::find_path(std::string_view dotted_path) const {
    DocumentView at = *this;
    for (;;) {
        const auto dot = dotted_path.find('.');
        const ValueView v = at.find(dotted_path.substr(0, dot));
        if (dot == std::string_view::npos) return v;
        if (!v.is_container()) return {};
        at = v.as_document();
        dotted_path.remove_prefix(dot + 1);
    }
}

Document::Document()
    : bytes_(reinterpret_cast<const char*>(kEmptyDocument), sizeof kEmptyDocument) {}

}  // namespace angelia::bson
