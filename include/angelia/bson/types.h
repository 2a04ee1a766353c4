// The types of BSON (bsonspec.org, version 1.1) and the small value classes that have no C++ twin.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace angelia::bson {

enum class Type : std::uint8_t {
    Missing = 0x00,  ///< no value at all (a field that is not there); never stored
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Bool = 0x08,
    Date = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    JavaScript = 0x0D,
    Symbol = 0x0E,
    JavaScriptWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
};

/// The alias that `$type` uses: "double", "string", "object", ... ; "missing" for Type::Missing.
std::string_view type_alias(Type type) noexcept;

/// 12 bytes: seconds (4, big endian), process-unique value (5), counter (3).
struct ObjectId {
    std::array<std::uint8_t, 12> bytes{};

    /// A new id. Threads: safe. Source: MongoDB ObjectID specification.
    static ObjectId generate();
    static std::optional<ObjectId> from_hex(std::string_view hex);
    std::string to_hex() const;
    auto operator<=>(const ObjectId&) const = default;
};

/// MongoDB's logical time: seconds since 1970 and an increment within the second.
struct Timestamp {
    std::uint32_t seconds = 0;
    std::uint32_t increment = 0;

    constexpr std::uint64_t as_uint64() const { return (std::uint64_t{seconds} << 32) | increment; }
    static constexpr Timestamp from_uint64(std::uint64_t v) {
        return {static_cast<std::uint32_t>(v >> 32), static_cast<std::uint32_t>(v)};
    }
    constexpr auto operator<=>(const Timestamp&) const = default;
};

/// Milliseconds since 1970, UTC.
struct Date {
    std::int64_t millis = 0;
    auto operator<=>(const Date&) const = default;
};

/// IEEE 754-2008 decimal128, binary integer significand encoding, as BSON stores it (little endian:
/// low, high).
struct Decimal128 {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Decimal128&) const = default;  ///< same bits, not same number
};

struct Null {};
struct Undefined {};
struct MinKey {};
struct MaxKey {};

struct BinaryView {
    std::uint8_t subtype = 0;  ///< 0 generic, 4 UUID
    std::string_view bytes;
};
struct RegexView {
    std::string_view pattern;
    std::string_view options;
};

/// Limits of MongoDB ("MongoDB Limits and Thresholds").
inline constexpr std::size_t kDocumentBytesMax = 16 * 1024 * 1024;
inline constexpr std::size_t kDocumentBytesInternalMax = kDocumentBytesMax + 16 * 1024;
inline constexpr int kNestingMax = 200;

}  // namespace angelia::bson

template <>
struct std::hash<angelia::bson::ObjectId> {
    std::size_t operator()(const angelia::bson::ObjectId& id) const noexcept {
        return std::hash<std::string_view>{}(
            {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
    }
};
