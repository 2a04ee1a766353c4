// $eq $ne $lt $lte $gt $gte, and plain equality.
#include "engine/query/filter/parse.h"

#include <angelia/bson/compare.h>

#include <cmath>

namespace angelia::engine::query::filter {
namespace {

using bson::Type;
using bson::ValueView;

bool is_nothing(Type type) {
    return type == Type::Null || type == Type::Undefined || type == Type::Missing;
}

bool is_nan(ValueView v) {
    if (v.is(Type::Double)) return std::isnan(v.as_double());
    if (!v.is(Type::Decimal128)) return false;
    return std::isnan(*v.to_double());
}

Result<TestPtr> make_comparison(Test::Kind kind, ValueView operand) {
    if (operand.is(Type::Undefined)) return bad_value("cannot compare to undefined");
    if (operand.is(Type::Regex)) return bad_value("regular expressions are not supported");
    return TestPtr(std::make_unique<ComparisonTest>(kind, operand));
}

}  // namespace

bool ComparisonTest::matches_value(ValueView value) const {
    const bool or_equal = kind() == Kind::Eq || kind() == Kind::Lte || kind() == Kind::Gte;
    const bool less = kind() == Kind::Lt || kind() == Kind::Lte;
    // null, undefined and missing are one for null; nothing lies below or above them.
    if (operand_.is_null()) return is_nothing(value.type()) && or_equal;
    // MinKey and MaxKey are beyond every value of any type; also beyond none at all.
    if (operand_.is(Type::MinKey) || operand_.is(Type::MaxKey)) {
        if (value.type() == operand_.type()) return or_equal;
        return kind() != Kind::Eq && less == operand_.is(Type::MaxKey);
    }
    if (value.is_missing() ||
        bson::canonical_order(value.type()) != bson::canonical_order(operand_.type()))
        return false;
    // NaN equals itself and is neither above nor below any number here (its place in the order
    // counts only for sorting).
    if (is_nan(value) || is_nan(operand_)) return or_equal && is_nan(value) && is_nan(operand_);
    const int order = bson::compare(value, operand_);
    if (order == 0) return or_equal;
    return kind() != Kind::Eq && (order < 0) == less;
}

Result<TestPtr> parse_equality(ValueView operand) {
    return make_comparison(Test::Kind::Eq, operand);
}
Result<TestPtr> parse_eq(const FieldOperator& op) {
    return make_comparison(Test::Kind::Eq, op.operand);
}
Result<TestPtr> parse_lt(const FieldOperator& op) {
    return make_comparison(Test::Kind::Lt, op.operand);
}
Result<TestPtr> parse_lte(const FieldOperator& op) {
    return make_comparison(Test::Kind::Lte, op.operand);
}
Result<TestPtr> parse_gt(const FieldOperator& op) {
    return make_comparison(Test::Kind::Gt, op.operand);
}
Result<TestPtr> parse_gte(const FieldOperator& op) {
    return make_comparison(Test::Kind::Gte, op.operand);
}

Result<TestPtr> parse_ne(const FieldOperator& op) {
    ANGELIA_TRY_ASSIGN(TestPtr equal, make_comparison(Test::Kind::Eq, op.operand));
    return TestPtr(std::make_unique<NotTest>(std::move(equal)));
}

}  // namespace angelia::engine::query::filter
