// $in $nin
#include "engine/query/filter/parse.h"

#include <angelia/bson/compare.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query::filter {
namespace {

using bson::Type;
using bson::ValueView;

bool value_before(const ValueView& a, const ValueView& b) { return bson::compare(a, b) < 0; }

Result<std::unique_ptr<InTest>> make_in(const FieldOperator& op) {
    const auto list = op.operand.get_array();
    if (!list) return bad_value(fmt::format("{} needs an array", op.name));
    std::vector<ValueView> values;
    for (const bson::Element& e : *list) {
        if (is_operator_document(e.value))
            return bad_value(fmt::format("cannot nest $ under {}", op.name));
        if (e.value.is(Type::Undefined))
            return bad_value(fmt::format("{} cannot hold undefined", op.name));
        if (e.value.is(Type::Regex)) return bad_value("regular expressions are not supported");
        values.push_back(e.value);
    }
    return std::make_unique<InTest>(std::move(values));
}

}  // namespace

InTest::InTest(std::vector<ValueView> values) : Test(Kind::In), values_(std::move(values)) {
    std::stable_sort(values_.begin(), values_.end(), value_before);
    values_.erase(
        std::unique(values_.begin(), values_.end(),
                    [](const ValueView& a, const ValueView& b) { return bson::equal(a, b); }),
        values_.end());
    has_null_ =
        std::any_of(values_.begin(), values_.end(), [](const ValueView& v) { return v.is_null(); });
}

bool InTest::matches_value(ValueView value) const {
    if (value.is_missing() || value.is(Type::Undefined)) return has_null_;
    return std::binary_search(values_.begin(), values_.end(), value, value_before);
}

Result<TestPtr> parse_in(const FieldOperator& op) {
    ANGELIA_TRY_ASSIGN(auto test, make_in(op));
    return TestPtr(std::move(test));
}

Result<TestPtr> parse_nin(const FieldOperator& op) {
    ANGELIA_TRY_ASSIGN(auto test, make_in(op));
    return TestPtr(std::make_unique<NotTest>(std::move(test)));
}

}  // namespace angelia::engine::query::filter
