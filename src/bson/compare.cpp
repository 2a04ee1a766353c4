#include <angelia/bson/compare.h>

#include "bson/code_with_scope.h"
#include "bson/decimal.h"

#include <cmath>

namespace angelia::bson {
namespace {

template <class T>
int three_way(const T& a, const T& b) {
    return a < b ? -1 : (b < a ? 1 : 0);
}

int compare_bytes(std::string_view a, std::string_view b) { return three_way(a.compare(b), 0); }

int compare_doubles(double a, double b) {
    if (a < b) return -1;
    if (a > b) return 1;
    if (a == b) return 0;
    return static_cast<int>(std::isnan(b)) - static_cast<int>(std::isnan(a));
}

int compare_int_double(std::int64_t a, double b) {
    if (std::isnan(b)) return 1;
    if (b >= 9223372036854775808.0) return -1;
    if (b < -9223372036854775808.0) return 1;
    const double whole = std::trunc(b);  // in range, and exact as an integer
    const int order = three_way(a, static_cast<std::int64_t>(whole));
    return order != 0 ? order : three_way(whole, b);
}

bool is_integer(Type type) { return type == Type::Int32 || type == Type::Int64; }
std::int64_t integer_of(ValueView v) {
    return v.type() == Type::Int32 ? v.as_int32() : v.as_int64();
}

int compare_numbers(ValueView a, ValueView b) {
    if (is_integer(a.type())) {
        if (is_integer(b.type())) return three_way(integer_of(a), integer_of(b));
        if (b.type() == Type::Double) return compare_int_double(integer_of(a), b.as_double());
        return decimal_compare(decimal_from_int64(integer_of(a)), b.as_decimal128());
    }
    if (a.type() == Type::Double) {
        if (b.type() == Type::Double) return compare_doubles(a.as_double(), b.as_double());
        if (is_integer(b.type())) return -compare_int_double(integer_of(b), a.as_double());
        return -decimal_compare_double(b.as_decimal128(), a.as_double());
    }
    if (b.type() == Type::Decimal128) return decimal_compare(a.as_decimal128(), b.as_decimal128());
    if (b.type() == Type::Double) return decimal_compare_double(a.as_decimal128(), b.as_double());
    return decimal_compare(a.as_decimal128(), decimal_from_int64(integer_of(b)));
}

int compare_binary(BinaryView a, BinaryView b) {
    if (a.bytes.size() != b.bytes.size()) return three_way(a.bytes.size(), b.bytes.size());
    if (a.subtype != b.subtype) return three_way(a.subtype, b.subtype);
    return compare_bytes(a.bytes, b.bytes);
}

int compare_regex(RegexView a, RegexView b) {
    const int order = compare_bytes(a.pattern, b.pattern);
    return order != 0 ? order : compare_bytes(a.options, b.options);
}

/// Length first, then bytes: name and id together.
int compare_pointer(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return three_way(a.size(), b.size());
    return compare_bytes(a, b);
}

int compare_code_with_scope(ValueView a, ValueView b) {
    const CodeWithScope left = split_code_with_scope(a);
    const CodeWithScope right = split_code_with_scope(b);
    const int order = compare_bytes(left.code, right.code);
    return order != 0 ? order : compare(left.scope, right.scope);
}

/// `a` and `b` share a canonical position.
int compare_same_order(ValueView a, ValueView b);

int compare_elements(DocumentView a, DocumentView b, bool with_names) {
    auto left = a.begin();
    auto right = b.begin();
    for (; left != a.end() && right != b.end(); ++left, ++right) {
        const ValueView l = left->value;
        const ValueView r = right->value;
        if (l.type() != r.type()) {
            const int order = canonical_order(l.type()) - canonical_order(r.type());
            if (order != 0) return three_way(order, 0);
        }
        if (with_names) {
            const int order = compare_bytes(left->key, right->key);
            if (order != 0) return order;
        }
        const int order = compare_same_order(l, r);
        if (order != 0) return order;
    }
    return static_cast<int>(left != a.end()) - static_cast<int>(right != b.end());
}

int compare_same_order(ValueView a, ValueView b) {
    switch (a.type()) {
        case Type::Missing:
        case Type::Undefined:
        case Type::Null:
        case Type::MinKey:
        case Type::MaxKey:
            return 0;
        case Type::Double:
        case Type::Int32:
        case Type::Int64:
        case Type::Decimal128:
            return compare_numbers(a, b);
        case Type::String:
        case Type::Symbol:
        case Type::JavaScript:
            return compare_bytes(a.as_string(), b.as_string());
        case Type::Document:
            return compare_elements(a.as_document(), b.as_document(), true);
        case Type::Array:
            return compare_elements(a.as_document(), b.as_document(), false);
        case Type::Binary:
            return compare_binary(a.as_binary(), b.as_binary());
        case Type::ObjectId:
            return compare_bytes(a.bytes(), b.bytes());
        case Type::Bool:
            return three_way(a.as_bool(), b.as_bool());
        case Type::Date:
            return three_way(a.as_date().millis, b.as_date().millis);
        case Type::Timestamp:
            return three_way(a.as_timestamp().as_uint64(), b.as_timestamp().as_uint64());
        case Type::Regex:
            return compare_regex(a.as_regex(), b.as_regex());
        case Type::DbPointer:
            return compare_pointer(a.bytes(), b.bytes());
        case Type::JavaScriptWithScope:
            return compare_code_with_scope(a, b);
    }
    ANGELIA_CHECK(false);
}

}  // namespace

int canonical_order(Type type) noexcept {
    switch (type) {
        case Type::MinKey:
            return 1;
        case Type::Undefined:
            return 2;
        case Type::Missing:
        case Type::Null:
            return 3;
        case Type::Double:
        case Type::Int32:
        case Type::Int64:
        case Type::Decimal128:
            return 4;
        case Type::String:
        case Type::Symbol:
            return 5;
        case Type::Document:
            return 6;
        case Type::Array:
            return 7;
        case Type::Binary:
            return 8;
        case Type::ObjectId:
            return 9;
        case Type::Bool:
            return 10;
        case Type::Date:
            return 11;
        case Type::Timestamp:
            return 12;
        case Type::Regex:
            return 13;
        case Type::DbPointer:
            return 14;
        case Type::JavaScript:
            return 15;
        case Type::JavaScriptWithScope:
            return 16;
        case Type::MaxKey:
            return 17;
    }
    ANGELIA_CHECK(false);
}

int compare(ValueView a, ValueView b) {
    if (a.type() != b.type()) {
        const int order = canonical_order(a.type()) - canonical_order(b.type());
        if (order != 0) return three_way(order, 0);
    }
    return compare_same_order(a, b);
}

int compare(DocumentView a, DocumentView b) { return compare_elements(a, b, true); }

}  // namespace angelia::bson
