// Views on BSON bytes, and documents and values that own them.
//
// Views trust their bytes: whatever comes from outside goes through `validate` (validate.h) once,
// at the door.
#pragma once

#include <angelia/base/check.h>
#include <angelia/bson/types.h>

#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

namespace angelia::bson {

class DocumentView;
class Document;

/// One value inside a document, not owned. `is_missing()` when a look-up found nothing.
/// as_*() demand exactly that type and abort otherwise: ask `type()` first, or use the get_*() and
/// to_*() forms.
class ValueView {
  public:
    ValueView() = default;
    /// `data` points at the value bytes (after the key), `size` is their exact length.
    ValueView(Type type, const std::uint8_t* data, std::size_t size)
        : type_(type), size_(static_cast<std::uint32_t>(size)), data_(data) {}

    Type type() const noexcept { return type_; }
    bool is_missing() const noexcept { return type_ == Type::Missing; }
    explicit operator bool() const noexcept { return !is_missing(); }
    bool is(Type type) const noexcept { return type_ == type; }
    bool is_null() const noexcept { return type_ == Type::Null; }
    bool is_number() const noexcept {
        return type_ == Type::Int32 || type_ == Type::Int64 || type_ == Type::Double ||
               type_ == Type::Decimal128;
    }
    bool is_container() const noexcept { return type_ == Type::Document || type_ == Type::Array; }

    double as_double() const { return load<double>(Type::Double); }
    std::int32_t as_int32() const { return load<std::int32_t>(Type::Int32); }
    std::int64_t as_int64() const { return load<std::int64_t>(Type::Int64); }
    bool as_bool() const {
        need(Type::Bool);
        return data_[0] != 0;
    }
    Date as_date() const { return {load<std::int64_t>(Type::Date)}; }
    Timestamp as_timestamp() const {
        return Timestamp::from_uint64(load<std::uint64_t>(Type::Timestamp));
    }
    Decimal128 as_decimal128() const;
    ObjectId as_object_id() const;
    std::string_view as_string() const;  ///< String, Symbol or JavaScript, without the closing zero
    DocumentView as_document() const;    ///< Document or Array
    BinaryView as_binary() const;
    RegexView as_regex() const;

    std::optional<std::string_view> get_string() const;  ///< only for Type::String
    std::optional<DocumentView> get_document() const;    ///< only for Type::Document
    std::optional<DocumentView> get_array() const;       ///< only for Type::Array
    std::optional<bool> get_bool() const;                ///< only for Type::Bool
    std::optional<ObjectId> get_object_id() const;
    std::optional<Timestamp> get_timestamp() const;
    std::optional<Date> get_date() const;

    /// A number of any BSON type, if it is integral and fits.
    std::optional<std::int64_t> to_int64() const;
    /// A number of any BSON type as double (int64 and decimal may round).
    std::optional<double> to_double() const;
    /// MongoDB's truthiness: false, 0, null, undefined and missing are false, all else true.
    bool truthy() const;

    /// The value's bytes as they stand in the document (no type, no key).
    std::string_view bytes() const noexcept {
        return {reinterpret_cast<const char*>(data_), size_};
    }
    const std::uint8_t* data() const noexcept { return data_; }

    /// Same type and same bytes. Not MongoDB's equality: that is compare.h.
    bool identical(const ValueView& other) const noexcept {
        return type_ == other.type_ && bytes() == other.bytes();
    }

  private:
    void need(Type type) const { ANGELIA_CHECK(type_ == type); }
    template <class T>
    T load(Type type) const {
        need(type);
        T v;
        std::memcpy(&v, data_, sizeof v);
        return v;
    }
    Type type_ = Type::Missing;
    std::uint32_t size_ = 0;
    const std::uint8_t* data_ = nullptr;
};

struct Element {
    std::string_view key;
    ValueView value;
};

/// A document or array inside somebody else's buffer. Pass it by value, do not store it.
class DocumentView {
  public:
    /// The empty document.
    DocumentView();
    /// Trusts `bytes`: exactly one well-formed document.
    explicit DocumentView(std::string_view bytes)
        : data_(reinterpret_cast<const std::uint8_t*>(bytes.data())) {}
    explicit DocumentView(const std::uint8_t* data) : data_(data) {}

    std::size_t size_bytes() const noexcept {
        std::int32_t n;
        std::memcpy(&n, data_, sizeof n);
        return static_cast<std::size_t>(n);
    }
    const std::uint8_t* data() const noexcept { return data_; }
    std::string_view bytes() const noexcept {
        return {reinterpret_cast<const char*>(data_), size_bytes()};
    }
    bool empty() const noexcept { return data_[4] == 0; }
    std::size_t count() const;  ///< number of elements; walks the document

    class Iterator {
      public:
        using value_type = Element;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::input_iterator_tag;
        using pointer = const Element*;
        using reference = const Element&;

        Iterator() = default;
        explicit Iterator(const std::uint8_t* at) : at_(at) { parse(); }
        const Element& operator*() const { return element_; }
        const Element* operator->() const { return &element_; }
        Iterator& operator++() {
            at_ = element_.value.data() + element_.value.bytes().size();
            parse();
            return *this;
        }
        Iterator operator++(int) {
            auto old = *this;
            ++*this;
            return old;
        }
        bool operator==(const Iterator& other) const { return at_ == other.at_; }

      private:
        void parse();
        const std::uint8_t* at_ = nullptr;  ///< nullptr at the end
        Element element_;
    };
    Iterator begin() const { return Iterator(data_ + 4); }
    Iterator end() const { return Iterator(); }

    /// First element with exactly this key (dots mean nothing here); missing if there is none.
    ValueView find(std::string_view key) const;
    ValueView operator[](std::string_view key) const { return find(key); }
    bool has(std::string_view key) const { return !find(key).is_missing(); }
    /// Walks plain sub-documents along a dotted path; arrays are entered only by numeric parts.
    ValueView find_path(std::string_view dotted_path) const;

    bool identical(DocumentView other) const noexcept { return bytes() == other.bytes(); }

  private:
    const std::uint8_t* data_;
};

/// Owns the bytes of one document. Move it; copying is explicit.
class Document {
  public:
    Document();  ///< the empty document
    explicit Document(DocumentView view) : bytes_(view.bytes()) {}
    /// Trusts `bytes`: exactly one well-formed document.
    static Document from_trusted_bytes(std::string bytes) {
        Document d(Raw{}, std::move(bytes));
        return d;
    }
    Document(Document&&) noexcept = default;
    Document& operator=(Document&&) noexcept = default;
    Document copy() const { return Document(view()); }

    /// Valid as long as this object lives and is not moved from (short documents live inside the
    /// object).
    DocumentView view() const& { return DocumentView(std::string_view(bytes_)); }
    DocumentView view() const&& = delete;
    /// As an argument also from a temporary: the view then ends with the full expression.
    operator DocumentView() const { return DocumentView(std::string_view(bytes_)); }

    ValueView find(std::string_view key) const& { return view().find(key); }
    ValueView operator[](std::string_view key) const& { return view().find(key); }
    bool has(std::string_view key) const { return view().has(key); }
    bool empty() const { return view().empty(); }
    std::size_t size_bytes() const noexcept { return bytes_.size(); }
    std::string_view bytes() const& noexcept { return bytes_; }
    std::string take_bytes() && { return std::move(bytes_); }

  private:
    struct Raw {};
    Document(Raw, std::string bytes) : bytes_(std::move(bytes)) {}
    std::string bytes_;
};

/// An owned value; copying copies the bytes.
class Value {
  public:
    Value() = default;  ///< missing
    explicit Value(ValueView view) : type_(view.type()), bytes_(view.bytes()) {}
    Type type() const noexcept { return type_; }
    ValueView view() const& {
        return {type_, reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size()};
    }
    ValueView view() const&& = delete;
    bool is_missing() const noexcept { return type_ == Type::Missing; }

  private:
    Type type_ = Type::Missing;
    std::string bytes_;
};

/// Byte length of the value of `type` at `data`. Trusts the bytes.
std::size_t value_size(Type type, const std::uint8_t* data);

}  // namespace angelia::bson
