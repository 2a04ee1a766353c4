#include "bson/json_wrappers.h"

#include "bson/decimal.h"
#include "bson/json_date.h"

#include <angelia/base/base64.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace angelia::bson {
namespace {

using Wrapped = Result<std::optional<Value>>;

/// The fields of the object that may be a wrapper.
struct Fields {
    DocumentView object;
    ValueView main;  ///< the value of the name that made it a wrapper
    std::size_t count;
};

Error wrong(std::string_view what) { return {ErrorCode::FailedToParse, std::string(what)}; }

template <class T>
Wrapped wrap(const T& v) {
    return std::optional<Value>(value(v));
}

Wrapped ordinary() { return std::optional<Value>(); }

template <class T>
std::optional<T> parse_whole(std::string_view text) {
    T v;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return v;
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool has_zero(std::string_view text) { return text.find('\0') != std::string_view::npos; }

Wrapped read_oid(const Fields& f) {
    const auto text = f.main.get_string();
    const auto id = text ? ObjectId::from_hex(*text) : std::nullopt;
    if (!id) return wrong("$oid must be a string of 24 hexadecimal digits");
    return wrap(*id);
}

Wrapped read_int(const Fields& f) {
    const auto text = f.main.get_string();
    const auto v = text ? parse_whole<std::int32_t>(*text) : std::nullopt;
    if (!v) return wrong("$numberInt must be a string that holds a 32-bit integer");
    return wrap(*v);
}

Wrapped read_long(const Fields& f) {
    const auto text = f.main.get_string();
    const auto v = text ? parse_whole<std::int64_t>(*text) : std::nullopt;
    if (!v) return wrong("$numberLong must be a string that holds a 64-bit integer");
    return wrap(*v);
}

std::optional<double> parse_double(std::string_view text) {
    if (text == "NaN") return std::nan("");
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    // from_chars would also take "inf" and "nan(...)".
    if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
    return parse_whole<double>(text);
}

Wrapped read_double(const Fields& f) {
    const auto text = f.main.get_string();
    const auto v = text ? parse_double(*text) : std::nullopt;
    if (!v)
        return wrong(
            R"($numberDouble must be a string that holds a number, "NaN", "Infinity" or "-Infinity")");
    return wrap(*v);
}

Wrapped read_decimal(const Fields& f) {
    const auto text = f.main.get_string();
    const auto v = text ? decimal_from_string(*text) : std::nullopt;
    if (!v)
        return wrong(
            "$numberDecimal must be a string that holds a decimal number of at most 34 digits");
    return wrap(*v);
}

Wrapped read_date(const Fields& f) {
    if (f.main.is(Type::Int64)) return wrap(Date{f.main.as_int64()});
    if (f.main.is(Type::Int32)) return wrap(Date{f.main.as_int32()});
    const auto text = f.main.get_string();
    const auto date = text ? parse_iso_date(*text) : std::nullopt;
    if (!date)
        return wrong(
            R"($date must be an ISO 8601 string such as "2026-03-01T12:00:00.000Z" or {"$numberLong": "<milliseconds>"})");
    return wrap(*date);
}

/// -1 when it is none.
int parse_subtype(ValueView v) {
    if (v.is(Type::Int32)) return v.as_int32() >= 0 && v.as_int32() <= 0xFF ? v.as_int32() : -1;
    const auto text = v.get_string().value_or("");
    if (text.empty() || text.size() > 2) return -1;
    int number = 0;
    for (const char c : text) {
        if (hex_value(c) < 0) return -1;
        number = number * 16 + hex_value(c);
    }
    return number;
}

Wrapped make_binary(std::uint8_t subtype, std::string bytes) {
    if (subtype == 2) {  // repeats its length inside
        const auto size = static_cast<std::int32_t>(bytes.size());
        bytes.insert(0, reinterpret_cast<const char*>(&size), sizeof size);
    }
    return wrap(BinaryView{subtype, bytes});
}

Wrapped read_binary(const Fields& f) {
    std::optional<std::string_view> base64;
    ValueView subtype_value;
    if (const auto form = f.main.get_document(); form && f.count == 1 && form->count() == 2) {
        base64 = form->find("base64").get_string();
        subtype_value = form->find("subType");
        if (!subtype_value.is(Type::String)) subtype_value = {};
    } else if (f.count == 2) {  // the old form, where it may also be a number
        base64 = f.main.get_string();
        subtype_value = f.object.find("$type");
    }
    const int subtype = parse_subtype(subtype_value);
    auto bytes = base64 ? base64_decode(*base64) : std::nullopt;
    if (!bytes || subtype < 0)
        return wrong(
            R"($binary must be {"base64": "<base64>", "subType": "<one or two hexadecimal digits>"})");
    return make_binary(static_cast<std::uint8_t>(subtype), std::move(*bytes));
}

Wrapped read_uuid(const Fields& f) {
    const auto text = f.main.get_string();
    std::string bytes;
    bool good = text && text->size() == 36;
    for (std::size_t i = 0; good && i < 36; ++i) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            good = (*text)[i] == '-';
            continue;
        }
        const int high = hex_value((*text)[i]);
        const int low = hex_value((*text)[++i]);
        good = high >= 0 && low >= 0;
        bytes.push_back(static_cast<char>(high * 16 + low));
    }
    if (!good)
        return wrong("$uuid must be a string of the form 01234567-89ab-cdef-0123-456789abcdef");
    return make_binary(4, std::move(bytes));
}

std::optional<std::uint32_t> unsigned_32(ValueView v) {
    const auto number = v.is(Type::Int32) || v.is(Type::Int64) ? v.to_int64() : std::nullopt;
    if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max())
        return std::nullopt;
    return static_cast<std::uint32_t>(*number);
}

Wrapped read_timestamp(const Fields& f) {
    const auto parts = f.main.get_document();
    const auto t = parts ? unsigned_32(parts->find("t")) : std::nullopt;
    const auto i = parts ? unsigned_32(parts->find("i")) : std::nullopt;
    if (!t || !i || parts->count() != 2)
        return wrong(
            R"($timestamp must be {"t": <seconds>, "i": <increment>} of unsigned 32-bit integers)");
    return wrap(Timestamp{*t, *i});
}

Wrapped make_regex(std::string_view pattern, std::string_view options) {
    if (has_zero(pattern) || has_zero(options))
        return wrong("a regular expression must not contain a zero byte");
    std::string sorted(options);  // BSON stores them in alphabetical order
    std::sort(sorted.begin(), sorted.end());
    return wrap(RegexView{pattern, sorted});
}

Wrapped read_regex(const Fields& f) {
    const auto parts = f.main.get_document();
    const auto pattern = parts ? parts->find("pattern").get_string() : std::nullopt;
    const auto options = parts ? parts->find("options").get_string() : std::nullopt;
    if (!pattern || !options || parts->count() != 2)
        return wrong(R"($regularExpression must be {"pattern": "<text>", "options": "<letters>"})");
    return make_regex(*pattern, *options);
}

/// The old form, which the query operator $regex looks like: only two strings and nothing else are
/// a value.
Wrapped read_old_regex(const Fields& f) {
    const auto pattern = f.main.get_string();
    const auto options = f.object.find("$options").get_string();
    if (!pattern || !options || f.count != 2) return ordinary();
    return make_regex(*pattern, *options);
}

template <class Key>
Wrapped read_key(const Fields& f, std::string_view complaint) {
    if (!f.main.is(Type::Int32) || f.main.as_int32() != 1) return wrong(complaint);
    return wrap(Key{});
}
Wrapped read_min_key(const Fields& f) { return read_key<MinKey>(f, "$minKey must be 1"); }
Wrapped read_max_key(const Fields& f) { return read_key<MaxKey>(f, "$maxKey must be 1"); }

Wrapped read_undefined(const Fields& f) {
    if (!f.main.get_bool().value_or(false)) return wrong("$undefined must be true");
    return wrap(Undefined{});
}

std::string raw_size(std::size_t size) {
    const auto v = static_cast<std::int32_t>(size);
    return std::string(reinterpret_cast<const char*>(&v), sizeof v);
}

std::optional<Value> raw_value(Type type, std::string_view bytes) {
    return Value(
        ValueView(type, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
}

Wrapped read_symbol(const Fields& f) {
    if (!f.main.is(Type::String)) return wrong("$symbol must be a string");
    return raw_value(Type::Symbol, f.main.bytes());
}

Wrapped read_code(const Fields& f) {
    if (!f.main.is(Type::String)) return wrong("$code must be a string");
    if (f.count == 1) return raw_value(Type::JavaScript, f.main.bytes());
    const auto scope = f.object.find("$scope").get_document();
    if (!scope || f.count != 2)
        return wrong("beside $code only $scope may stand, and it must be an object");
    std::string bytes = raw_size(4 + f.main.bytes().size() + scope->size_bytes());
    bytes.append(f.main.bytes()).append(scope->bytes());
    return raw_value(Type::JavaScriptWithScope, bytes);
}

Wrapped read_db_pointer(const Fields& f) {
    const auto parts = f.main.get_document();
    const ValueView ref = parts ? parts->find("$ref") : ValueView{};
    const ValueView id = parts ? parts->find("$id") : ValueView{};
    if (!ref.is(Type::String) || !id.is(Type::ObjectId) || parts->count() != 2) {
        return wrong(R"($dbPointer must be {"$ref": "<namespace>", "$id": {"$oid": "…"}})");
    }
    return raw_value(Type::DbPointer, std::string(ref.bytes()).append(id.bytes()));
}

struct WrapperRow {
    std::string_view name;
    std::size_t fields_max;  ///< an object with this name and more fields is an error
    Wrapped (*read)(const Fields&);
};

constexpr std::size_t kAnyCount = std::numeric_limits<std::size_t>::max();

constexpr std::array<WrapperRow, 17> kWrappers = {{
    {"$binary", 2, read_binary},
    {"$code", 2, read_code},
    {"$date", 1, read_date},
    {"$dbPointer", 1, read_db_pointer},
    {"$maxKey", 1, read_max_key},
    {"$minKey", 1, read_min_key},
    {"$numberDecimal", 1, read_decimal},
    {"$numberDouble", 1, read_double},
    {"$numberInt", 1, read_int},
    {"$numberLong", 1, read_long},
    {"$oid", 1, read_oid},
    {"$regex", kAnyCount, read_old_regex},
    {"$regularExpression", 1, read_regex},
    {"$symbol", 1, read_symbol},
    {"$timestamp", 1, read_timestamp},
    {"$undefined", 1, read_undefined},
    {"$uuid", 1, read_uuid},
}};

const WrapperRow* find_wrapper(std::string_view name) {
    if (name.empty() || name[0] != '$') return nullptr;
    const auto found = std::find_if(kWrappers.begin(), kWrappers.end(),
                                    [name](const WrapperRow& row) { return row.name == name; });
    return found == kWrappers.end() ? nullptr : &*found;
}

}  // namespace

Result<std::optional<Value>> read_json_wrapper(DocumentView object) {
    const WrapperRow* wrapper = nullptr;
    Fields fields{object, {}, 0};
    for (const Element& e : object) {
        ++fields.count;
        if (wrapper != nullptr) continue;
        wrapper = find_wrapper(e.key);
        fields.main = e.value;
    }
    if (wrapper == nullptr) return ordinary();
    if (fields.count > wrapper->fields_max)
        return wrong(fmt::format("other fields beside {} are not allowed", wrapper->name));
    return wrapper->read(fields);
}

}  // namespace angelia::bson
