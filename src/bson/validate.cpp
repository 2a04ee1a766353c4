// One pass over untrusted bytes, without recursion: a stack of the places where the open documents
// end. Inside it is bools instead of Results: every value of every message passes here, and an
// Error costs more to carry than most values to check.
#include <angelia/bson/validate.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace angelia::bson {
namespace {

constexpr int kLevelsMax = 256;
constexpr std::size_t kSmallestDocument = 5;
constexpr std::uint8_t kBinaryWithInnerLength = 2;

class Validator {
  public:
    Validator(std::string_view bytes, const ValidateLimits& limits)
        : start_(reinterpret_cast<const std::uint8_t*>(bytes.data())),
          at_(start_),
          nesting_max_(std::min(limits.nesting_max, kLevelsMax)),
          text_utf8_(limits.text_utf8) {}

    /// The outermost document, already known to end at `size`. False: see take_error().
    bool run(std::size_t size) {
        if (nesting_max_ < 1) return too_deep();
        ends_[static_cast<std::size_t>(levels_++)] = start_ + size;
        at_ += 4;
        while (levels_ > 0) {
            const std::uint8_t* last =
                ends_[static_cast<std::size_t>(levels_) - 1] - 1;  // where the closing zero stands
            if (at_ == last) {
                if (*at_ != 0) return broken("document does not end with a zero byte");
                ++at_;
                --levels_;
                continue;
            }
            last_ = last;
            if (!element()) return false;
        }
        return true;
    }

    Error take_error() { return std::move(error_); }

  private:
    std::size_t left() const { return static_cast<std::size_t>(last_ - at_); }

    bool broken(std::string_view what) {
        error_ = {ErrorCode::InvalidBSON,
                  fmt::format("invalid BSON at byte {}: {}", at_ - start_, what)};
        return false;
    }
    bool too_deep() {
        error_ = {ErrorCode::Overflow,
                  fmt::format("BSON at byte {} exceeds the maximum nesting of {} levels",
                              at_ - start_, nesting_max_)};
        return false;
    }

    std::int32_t peek_int32() const {
        std::int32_t v;
        std::memcpy(&v, at_, sizeof v);
        return v;
    }

    bool element() {
        const auto type = static_cast<Type>(*at_);
        if (type == Type::Missing) return broken("closing zero before the end of the document");
        const std::uint8_t* type_at = at_++;
        if (!zero_terminated("field name")) return false;
        switch (type) {
            case Type::Undefined:
            case Type::Null:
            case Type::MinKey:
            case Type::MaxKey:
                return true;
            case Type::Bool:
                return boolean();
            case Type::Int32:
                return fixed(4);
            case Type::Double:
            case Type::Date:
            case Type::Timestamp:
            case Type::Int64:
                return fixed(8);
            case Type::ObjectId:
                return fixed(12);
            case Type::Decimal128:
                return fixed(16);
            case Type::String:
            case Type::JavaScript:
            case Type::Symbol:
                return string();
            case Type::Document:
            case Type::Array:
                return open_document();
            case Type::Binary:
                return binary();
            case Type::Regex:
                if (!zero_terminated("regular expression")) return false;
                return zero_terminated("regular expression options");
            case Type::DbPointer:
                if (!string()) return false;
                return fixed(12);
            case Type::JavaScriptWithScope:
                return code_with_scope();
            case Type::Missing:
                break;
        }
        const auto number = *type_at;
        at_ = type_at;
        return broken(fmt::format("unknown type 0x{:02x}", number));
    }

    bool fixed(std::size_t size) {
        if (left() < size) return broken("value reaches beyond the end of the document");
        at_ += size;
        return true;
    }

    bool boolean() {
        if (left() < 1) return broken("value reaches beyond the end of the document");
        if (*at_ > 1) return broken("bool is neither 0 nor 1");
        ++at_;
        return true;
    }

    bool zero_terminated(std::string_view what) {
        const auto* zero = static_cast<const std::uint8_t*>(std::memchr(at_, 0, left()));
        if (zero == nullptr) return broken(fmt::format("{} without a closing zero", what));
        if (text_utf8_ &&
            !is_utf8({reinterpret_cast<const char*>(at_), static_cast<std::size_t>(zero - at_)})) {
            return broken(fmt::format("{} is not UTF-8", what));
        }
        at_ = zero + 1;
        return true;
    }

    bool string() {
        if (left() < 5) return broken("string reaches beyond the end of the document");
        const std::int32_t size = peek_int32();  // with the closing zero
        if (size < 1 || static_cast<std::size_t>(size) > left() - 4)
            return broken(fmt::format("string length {} does not fit", size));
        const auto text_size = static_cast<std::size_t>(size) - 1;
        if (at_[4 + text_size] != 0) return broken("string does not end with a zero byte");
        if (text_utf8_ && !is_utf8({reinterpret_cast<const char*>(at_ + 4), text_size}))
            return broken("string is not UTF-8");
        at_ += 4 + text_size + 1;
        return true;
    }

    bool binary() {
        if (left() < 5) return broken("binary data reaches beyond the end of the document");
        const std::int32_t size = peek_int32();
        if (size < 0 || static_cast<std::size_t>(size) > left() - 5)
            return broken(fmt::format("binary length {} does not fit", size));
        const std::uint8_t subtype = at_[4];
        at_ += 5;
        if (subtype == kBinaryWithInnerLength && (size < 4 || peek_int32() != size - 4)) {
            return broken("inner length of old binary data (subtype 2) does not fit");
        }
        at_ += size;
        return true;
    }

    /// Enters the document at at_, which must end at or before the closing zero of its parent.
    bool open_document() {
        if (left() < kSmallestDocument)
            return broken("document reaches beyond the end of its parent");
        const std::int32_t size = peek_int32();
        if (size < static_cast<std::int32_t>(kSmallestDocument) ||
            static_cast<std::size_t>(size) > left()) {
            return broken(fmt::format("document length {} does not fit", size));
        }
        if (levels_ >= nesting_max_) return too_deep();
        ends_[static_cast<std::size_t>(levels_++)] = at_ + size;
        at_ += 4;
        return true;
    }

    bool code_with_scope() {
        constexpr std::size_t kSmallest = 4 + 5 + kSmallestDocument;
        if (left() < kSmallest)
            return broken("code with scope reaches beyond the end of the document");
        const std::int32_t size = peek_int32();
        if (size < static_cast<std::int32_t>(kSmallest) ||
            static_cast<std::size_t>(size) > left()) {
            return broken(fmt::format("code with scope length {} does not fit", size));
        }
        const std::uint8_t* end = at_ + size;
        at_ += 4;
        last_ = end;  // neither code nor scope may pass the end that the value states
        if (!string()) return false;
        if (left() < kSmallestDocument || peek_int32() != end - at_)
            return broken("scope does not fill the code with scope");
        return open_document();
    }

    const std::uint8_t* const start_;
    const std::uint8_t* at_;
    const std::uint8_t* last_ = nullptr;  ///< values of the current element end here or before
    const int nesting_max_;
    const bool text_utf8_;
    int levels_ = 0;
    Error error_;
    std::array<const std::uint8_t*, kLevelsMax> ends_;
};

}  // namespace

Result<DocumentView> validate(std::string_view bytes, const ValidateLimits& limits) {
    if (bytes.size() < kSmallestDocument) {
        return {
            ErrorCode::InvalidBSON,
            fmt::format("invalid BSON: {} bytes are too few for a document, which has at least 5",
                        bytes.size())};
    }
    std::int32_t size;
    std::memcpy(&size, bytes.data(), sizeof size);
    if (size > 0 && static_cast<std::size_t>(size) > limits.bytes_max) {
        return {ErrorCode::BSONObjectTooLarge,
                fmt::format("BSON document of {} bytes is larger than the {} bytes allowed", size,
                            limits.bytes_max)};
    }
    if (size < static_cast<std::int32_t>(kSmallestDocument) ||
        static_cast<std::size_t>(size) > bytes.size()) {
        return {ErrorCode::InvalidBSON,
                fmt::format("invalid BSON at byte 0: document length {} does not fit into {} bytes",
                            size, bytes.size())};
    }
    Validator validator(bytes, limits);
    if (!validator.run(static_cast<std::size_t>(size))) return validator.take_error();
    return DocumentView(bytes);
}

}  // namespace angelia::bson
