// The byte format; the layout is described in docs/formats/index_keys.md.
#include "engine/query/key_encoding.h"

#include "bson/decimal.h"

#include <angelia/base/check.h>

#include <cmath>
#include <limits>

namespace angelia::engine::query {
namespace {

using bson::Type;
using bson::ValueView;

/// First byte of a value: its canonical position, spread so that a later format has room between
/// two of them. Never 0, which ends documents and arrays.
std::uint8_t key_type_byte(Type type) {
    switch (type) {
        case Type::MinKey:
            return 0x08;
        case Type::Undefined:
            return 0x10;
        case Type::Missing:
        case Type::Null:
            return 0x18;
        case Type::Double:
        case Type::Int32:
        case Type::Int64:
        case Type::Decimal128:
            return 0x20;
        case Type::String:
        case Type::Symbol:
            return 0x28;
        case Type::Document:
            return 0x30;
        case Type::Array:
            return 0x38;
        case Type::Binary:
            return 0x40;
        case Type::ObjectId:
            return 0x48;
        case Type::Bool:
            return 0x50;
        case Type::Date:
            return 0x58;
        case Type::Timestamp:
            return 0x60;
        case Type::Regex:
            return 0x68;
        case Type::DbPointer:
            return 0x70;
        case Type::JavaScript:
            return 0x78;
        case Type::JavaScriptWithScope:
            return 0x80;
        case Type::MaxKey:
            return 0x88;
    }
    ANGELIA_CHECK(false);
}

template <class T>
void put_big_endian(std::string& out, T value) {
    for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
        out.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> shift)));
    }
}

/// Any bytes, self-delimiting: 00 becomes 00 FF, the end is 00 01.
void put_escaped(std::string& out, std::string_view bytes) {
    std::size_t from = 0;
    for (;;) {
        const auto zero = bytes.find('\0', from);
        out.append(bytes.substr(from, zero - from));
        if (zero == std::string_view::npos) break;
        out.append("\0\xFF", 2);
        from = zero + 1;
    }
    out.append("\0\x01", 2);
}

// ---- numbers
//
// Eight bytes of the double nearest towards zero, order-preserving; then 00 when the number is
// exactly that double, else 01 and the number's decimal digits. Everything a double cannot hold
// (int64 beyond 2^53, most decimals) has at most 34 digits, so equal numbers of different types
// meet in the same digits. Negative numbers are the complement of their absolute value.

__extension__ using Uint128 = unsigned __int128;

/// An absolute value that no double holds: digits without trailing zeros, `exponent` of the first
/// digit.
struct Digits {
    std::string digits;
    int exponent = 0;
};

Digits digits_of(Uint128 coefficient, int exponent_of_last) {
    Digits d;
    while (coefficient != 0) {
        d.digits.insert(d.digits.begin(),
                        static_cast<char>('0' + static_cast<int>(coefficient % 10)));
        coefficient /= 10;
    }
    d.exponent = exponent_of_last + static_cast<int>(d.digits.size()) - 1;
    while (!d.digits.empty() && d.digits.back() == '0') d.digits.pop_back();
    return d;
}

/// Source: IEEE 754-2008, decimal128, binary integer significand; BSON decimal128 specification.
Digits digits_of(bson::Decimal128 v) {
    const bool large =
        ((v.high >> 61) & 3) == 3;  // these coefficients are beyond 34 digits and count as zero
    if (large) return {};
    const int exponent = static_cast<int>((v.high >> 49) & 0x3FFF) - 6176;
    const Uint128 coefficient = (static_cast<Uint128>(v.high & 0x1FFFFFFFFFFFFULL) << 64) | v.low;
    return digits_of(coefficient, exponent);
}

void put_number(std::string& out, double towards_zero, const Digits* rest) {
    const std::size_t start = out.size();
    std::uint64_t bits;
    const double absolute = std::fabs(towards_zero);
    std::memcpy(&bits, &absolute, sizeof bits);
    put_big_endian(out, bits | (std::uint64_t{1} << 63));
    if (rest == nullptr) {
        out.push_back('\0');
    } else {
        out.push_back('\x01');
        put_big_endian(out, static_cast<std::uint16_t>(rest->exponent + 0x4000));
        out.append(rest->digits);
        out.push_back('\0');
    }
    if (std::signbit(towards_zero)) {
        for (std::size_t i = start; i < out.size(); ++i) out[i] = static_cast<char>(~out[i]);
    }
}

void put_double(std::string& out, double v) {
    if (std::isnan(v)) {
        out.append(
            9, '\0');  // below -infinity, whose first byte is 00 too but whose next ones are not
        return;
    }
    put_number(out, v == 0 ? 0.0 : v, nullptr);
}

void put_int64(std::string& out, std::int64_t v) {
    double d = static_cast<double>(v);
    // 2^63 is the one result that does not fit back.
    const bool fits = d < 9223372036854775808.0;
    if (fits && static_cast<std::int64_t>(d) == v) return put_double(out, d);
    const std::uint64_t absolute =
        v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
    const bool beyond =
        !fits || (v < 0 ? static_cast<std::int64_t>(d) < v : static_cast<std::int64_t>(d) > v);
    if (beyond) d = std::nextafter(d, 0.0);
    const Digits rest = digits_of(absolute, 0);
    put_number(out, d, &rest);
}

void put_decimal(std::string& out, bson::Decimal128 v) {
    if (bson::decimal_is_nan(v)) return put_double(out, std::numeric_limits<double>::quiet_NaN());
    double d = bson::decimal_to_double(v);
    const bool infinite = ((v.high >> 58) & 0x1F) == 0x1E;
    if (infinite) return put_double(out, d);
    const Digits rest = digits_of(v);
    if (rest.digits.empty()) return put_double(out, 0.0);
    const bool negative = (v.high >> 63) != 0;
    if (std::isinf(d)) {
        d = std::numeric_limits<double>::max();
    } else {
        const int order = bson::decimal_compare_double(v, d);
        if (order == 0) return put_double(out, d);
        if (negative ? order > 0 : order < 0) d = std::nextafter(d, 0.0);
    }
    put_number(out, std::copysign(d, negative ? -1.0 : 1.0), &rest);
}

// ---- values

void put_value(std::string& out, ValueView value);

void put_fields(std::string& out, bson::DocumentView document, bool with_names) {
    for (const bson::Element& e : document) {
        out.push_back(static_cast<char>(key_type_byte(e.value.type())));
        if (with_names) put_escaped(out, e.key);
        put_value(out, e.value);
    }
    out.push_back('\0');
}

/// Everything behind the type byte.
void put_value(std::string& out, ValueView value) {
    switch (value.type()) {
        case Type::MinKey:
        case Type::Undefined:
        case Type::Missing:
        case Type::Null:
        case Type::MaxKey:
            return;
        case Type::Double:
            return put_double(out, value.as_double());
        case Type::Int32:
            return put_double(out, value.as_int32());
        case Type::Int64:
            return put_int64(out, value.as_int64());
        case Type::Decimal128:
            return put_decimal(out, value.as_decimal128());
        case Type::String:
        case Type::Symbol:
        case Type::JavaScript:
            return put_escaped(out, value.as_string());
        case Type::Document:
            return put_fields(out, value.as_document(), true);
        case Type::Array:
            return put_fields(out, value.as_document(), false);
        case Type::Binary: {
            const bson::BinaryView b = value.as_binary();
            put_big_endian(out, static_cast<std::uint32_t>(b.bytes.size()));
            out.push_back(static_cast<char>(b.subtype));
            out.append(b.bytes);
            return;
        }
        case Type::ObjectId:
            out.append(value.bytes());
            return;
        case Type::Bool:
            out.push_back(value.as_bool() ? '\x01' : '\0');
            return;
        case Type::Date:
            put_big_endian(
                out, static_cast<std::uint64_t>(value.as_date().millis) ^ (std::uint64_t{1} << 63));
            return;
        case Type::Timestamp:
            put_big_endian(out, value.as_timestamp().as_uint64());
            return;
        case Type::Regex: {
            const bson::RegexView r = value.as_regex();
            put_escaped(out, r.pattern);
            put_escaped(out, r.options);
            return;
        }
        case Type::DbPointer:
            put_big_endian(out, static_cast<std::uint32_t>(value.bytes().size()));
            out.append(value.bytes());
            return;
        case Type::JavaScriptWithScope: {
            std::int32_t
                code_bytes;  // behind the total length: length of the code, code, zero, scope
            std::memcpy(&code_bytes, value.data() + 4, sizeof code_bytes);
            const auto size = static_cast<std::size_t>(code_bytes);
            put_escaped(out, {reinterpret_cast<const char*>(value.data() + 8), size - 1});
            put_fields(out, bson::DocumentView(value.data() + 8 + size), true);
            return;
        }
    }
    ANGELIA_CHECK(false);
}

}  // namespace

void append_key(std::string& out, ValueView value, bool descending) {
    const std::size_t start = out.size();
    out.push_back(static_cast<char>(key_type_byte(value.type())));
    put_value(out, value);
    if (!descending) return;
    for (std::size_t i = start; i < out.size(); ++i) out[i] = static_cast<char>(~out[i]);
}

}  // namespace angelia::engine::query
