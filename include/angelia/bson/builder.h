// Writing BSON: Builder for streams of fields, make() and array() for literals.
//
//     auto d = bson::make("_id", id, "tags", bson::array("a", "b"), "at", bson::Date{ms});
//     bson::Builder b;  b.add("ok", 1.0).open("cursor").add("id",
//     std::int64_t{0}).open_array("firstBatch").close().close();
#pragma once

#include <angelia/bson/document.h>

#include <concepts>
#include <vector>

namespace angelia::bson {

/// An array as a value of its own.
class Array {
  public:
    Array() = default;
    explicit Array(Document elements) : elements_(std::move(elements)) {}
    DocumentView view() const& { return elements_.view(); }

  private:
    Document elements_;
};

/// Builds one document from front to back. Not thread-safe. Keys may not contain a zero byte
/// (checked).
class Builder {
  public:
    Builder();
    /// Continues in `buffer` (cleared first), so that its memory is used again; take() gives it
    /// away.
    explicit Builder(std::string buffer);

    Builder& add(std::string_view key, double v);
    Builder& add(std::string_view key, bool v);
    Builder& add(std::string_view key, std::int32_t v);
    Builder& add(std::string_view key, std::int64_t v);
    Builder& add(std::string_view key, std::string_view v);
    Builder& add(std::string_view key, const char* v) { return add(key, std::string_view(v)); }
    Builder& add(std::string_view key, const std::string& v) {
        return add(key, std::string_view(v));
    }
    Builder& add(std::string_view key, const ObjectId& v);
    Builder& add(std::string_view key, Date v);
    Builder& add(std::string_view key, Timestamp v);
    Builder& add(std::string_view key, Decimal128 v);
    Builder& add(std::string_view key, BinaryView v);
    Builder& add(std::string_view key, RegexView v);
    Builder& add(std::string_view key, Null);
    Builder& add(std::string_view key, Undefined);
    Builder& add(std::string_view key, MinKey);
    Builder& add(std::string_view key, MaxKey);
    Builder& add(std::string_view key, DocumentView v);
    Builder& add(std::string_view key, const Document& v) { return add(key, v.view()); }
    Builder& add(std::string_view key, const Array& v) { return add_array(key, v.view()); }
    Builder& add(std::string_view key, ValueView v);  ///< any type; a missing value adds nothing
    Builder& add(std::string_view key, const Value& v) { return add(key, v.view()); }
    /// Unsigned and other integers would pick a wrong overload: say which width is meant.
    template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, std::int32_t> &&
             !std::same_as<T, std::int64_t>) Builder& add(std::string_view key, T v) = delete;

    Builder& add_array(std::string_view key, DocumentView elements);
    /// All elements of `document`.
    Builder& add_all(DocumentView document);

    Builder& open(std::string_view key);        ///< begins a sub-document
    Builder& open_array(std::string_view key);  ///< begins an array: add to it with push()
    Builder& close();                           ///< ends the innermost open one

    /// Inside an array: keys are counted.
    template <class T>
    Builder& push(const T& value) {
        return add(next_index(), value);
    }
    Builder& push_document() { return open(next_index()); }
    Builder& push_array(DocumentView elements) { return add_array(next_index(), elements); }
    Builder& push_open_array() { return open_array(next_index()); }

    std::size_t size_bytes() const noexcept { return bytes_.size(); }
    /// Ends the document and gives it away; every open() must have been closed (checked).
    Document take();

  private:
    struct Level {
        std::size_t start;
        std::uint32_t index;
    };
    void key(Type type, std::string_view name);
    template <class T>
    Builder& number(Type type, std::string_view name, T v);
    std::string_view next_index();
    void begin();
    void end();

    std::string bytes_;
    std::vector<Level> levels_;
    char index_text_[12];
};

namespace detail {
inline void add_all_pairs(Builder&) {}
template <class T, class... Rest>
void add_all_pairs(Builder& b, std::string_view key, const T& value, const Rest&... rest) {
    b.add(key, value);
    add_all_pairs(b, rest...);
}
}  // namespace detail

/// make("a", 1, "b", "x"): keys and values in turn. Integers must be std::int32_t or std::int64_t.
template <class... Args>
Document make(const Args&... args) {
    Builder b;
    detail::add_all_pairs(b, args...);
    return b.take();
}

/// array(1, "x", make(...)).
template <class... Args>
Array array(const Args&... args) {
    Builder b;
    (b.push(args), ...);
    return Array(b.take());
}

/// An owned value from a C++ one: value(5), value("x"), value(ObjectId{...}).
template <class T>
Value value(const T& v) {
    Builder b;
    b.add("", v);
    auto d = b.take();
    return Value((*d.view().begin()).value);
}

}  // namespace angelia::bson
