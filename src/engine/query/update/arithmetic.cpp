#include "engine/query/update/arithmetic.h"

#include "bson/decimal.h"

#include <angelia/bson/builder.h>

#include <limits>

namespace angelia::engine::query::update {
namespace {

using bson::Type;
using bson::ValueView;

bson::Decimal128 as_decimal(ValueView v) {
    switch (v.type()) {
        case Type::Decimal128:
            return v.as_decimal128();
        case Type::Double:
            return bson::decimal_from_double_15_digits(v.as_double());
        case Type::Int64:
            return bson::decimal_from_int64(v.as_int64());
        default:
            return bson::decimal_from_int64(v.as_int32());
    }
}

std::int64_t as_integer(ValueView v) { return v.is(Type::Int32) ? v.as_int32() : v.as_int64(); }

template <class OnDecimals, class OnDoubles, class OnIntegers>
std::optional<bson::Value> combine(ValueView a, ValueView b, OnDecimals decimals, OnDoubles doubles,
                                   OnIntegers integers) {
    if (a.is(Type::Decimal128) || b.is(Type::Decimal128))
        return bson::value(decimals(as_decimal(a), as_decimal(b)));
    if (a.is(Type::Double) || b.is(Type::Double))
        return bson::value(doubles(*a.to_double(), *b.to_double()));
    std::int64_t result;
    if (integers(as_integer(a), as_integer(b), &result)) return std::nullopt;
    const bool both_small = a.is(Type::Int32) && b.is(Type::Int32);
    const bool fits = result >= std::numeric_limits<std::int32_t>::min() &&
                      result <= std::numeric_limits<std::int32_t>::max();
    if (both_small && fits) return bson::value(static_cast<std::int32_t>(result));
    return bson::value(result);
}

}  // namespace

std::optional<bson::Value> add_numbers(ValueView a, ValueView b) {
    return combine(
        a, b, bson::decimal_add, [](double x, double y) { return x + y; },
        [](std::int64_t x, std::int64_t y, std::int64_t* r) {
            return __builtin_add_overflow(x, y, r);
        });
}

std::optional<bson::Value> multiply_numbers(ValueView a, ValueView b) {
    return combine(
        a, b, bson::decimal_multiply, [](double x, double y) { return x * y; },
        [](std::int64_t x, std::int64_t y, std::int64_t* r) {
            return __builtin_mul_overflow(x, y, r);
        });
}

}  // namespace angelia::engine::query::update
