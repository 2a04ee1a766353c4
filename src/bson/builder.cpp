#include <angelia/bson/builder.h>

#include <charconv>

namespace angelia::bson {
namespace {

template <class T>
void append_raw(std::string& out, T v) {
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

}  // namespace

Builder::Builder() { begin(); }

Builder::Builder(std::string buffer) : bytes_(std::move(buffer)) {
    bytes_.clear();
    begin();
}

void Builder::begin() {
    levels_.push_back({bytes_.size(), 0});
    bytes_.append(4, '\0');
}

void Builder::end() {
    bytes_.push_back('\0');
    const auto start = levels_.back().start;
    const auto size = static_cast<std::int32_t>(bytes_.size() - start);
    std::memcpy(bytes_.data() + start, &size, sizeof size);
    levels_.pop_back();
}

void Builder::key(Type type, std::string_view name) {
    ANGELIA_CHECK(name.find('\0') == std::string_view::npos);
    bytes_.push_back(static_cast<char>(type));
    bytes_.append(name);
    bytes_.push_back('\0');
}

template <class T>
Builder& Builder::number(Type type, std::string_view name, T v) {
    key(type, name);
    append_raw(bytes_, v);
    return *this;
}

std::string_view Builder::next_index() {
    const auto end =
        std::to_chars(index_text_, index_text_ + sizeof index_text_, levels_.back().index++).ptr;
    return {index_text_, static_cast<std::size_t>(end - index_text_)};
}

Builder& Builder::add(std::string_view name, double v) { return number(Type::Double, name, v); }
Builder& Builder::add(std::string_view name, bool v) {
    return number(Type::Bool, name, static_cast<std::uint8_t>(v));
}
Builder& Builder::add(std::string_view name, std::int32_t v) {
    return number(Type::Int32, name, v);
}
Builder& Builder::add(std::string_view name, std::int64_t v) {
    return number(Type::Int64, name, v);
}
Builder& Builder::add(std::string_view name, Date v) { return number(Type::Date, name, v.millis); }
Builder& Builder::add(std::string_view name, Timestamp v) {
    return number(Type::Timestamp, name, v.as_uint64());
}

Builder& Builder::add(std::string_view name, std::string_view v) {
    key(Type::String, name);
    append_raw(bytes_, static_cast<std::int32_t>(v.size() + 1));
    bytes_.append(v);
    bytes_.push_back('\0');
    return *this;
}

Builder& Builder::add(std::string_view name, const ObjectId& v) {
    key(Type::ObjectId, name);
    bytes_.append(reinterpret_cast<const char*>(v.bytes.data()), v.bytes.size());
    return *this;
}

Builder& Builder::add(std::string_view name, Decimal128 v) {
    key(Type::Decimal128, name);
    append_raw(bytes_, v.low);
    append_raw(bytes_, v.high);
    return *this;
}

Builder& Builder::add(std::string_view name, BinaryView v) {
    key(Type::Binary, name);
    append_raw(bytes_, static_cast<std::int32_t>(v.bytes.size()));
    bytes_.push_back(static_cast<char>(v.subtype));
    bytes_.append(v.bytes);
    return *this;
}

Builder& Builder::add(std::string_view name, RegexView v) {
    ANGELIA_CHECK(v.pattern.find('\0') == std::string_view::npos &&
                  v.options.find('\0') == std::string_view::npos);
    key(Type::Regex, name);
    bytes_.append(v.pattern).push_back('\0');
    bytes_.append(v.options).push_back('\0');
    return *this;
}

Builder& Builder::add(std::string_view name, Null) {
    key(Type::Null, name);
    return *this;
}
Builder& Builder::add(std::string_view name, Undefined) {
    key(Type::Undefined, name);
    return *this;
}
Builder& Builder::add(std::string_view name, MinKey) {
    key(Type::MinKey, name);
    return *this;
}
Builder& Builder::add(std::string_view name, MaxKey) {
    key(Type::MaxKey, name);
    return *this;
}

Builder& Builder::add(std::string_view name, DocumentView v) {
    key(Type::Document, name);
    bytes_.append(v.bytes());
    return *this;
}

Builder& Builder::add_array(std::string_view name, DocumentView elements) {
    key(Type::Array, name);
    bytes_.append(elements.bytes());
    return *this;
}

Builder& Builder::add(std::string_view name, ValueView v) {
    if (v.is_missing()) return *this;
    key(v.type(), name);
    bytes_.append(v.bytes());
    return *this;
}

Builder& Builder::add_all(DocumentView document) {
    const auto bytes = document.bytes();
    bytes_.append(bytes.substr(4, bytes.size() - 5));
    return *this;
}

Builder& Builder::open(std::string_view name) {
    key(Type::Document, name);
    begin();
    return *this;
}

Builder& Builder::open_array(std::string_view name) {
    key(Type::Array, name);
    begin();
    return *this;
}

Builder& Builder::close() {
    ANGELIA_CHECK(levels_.size() > 1);
    end();
    return *this;
}

Document Builder::take() {
    ANGELIA_CHECK(levels_.size() == 1);
    end();
    return Document::from_trusted_bytes(std::move(bytes_));
}

}  // namespace angelia::bson
