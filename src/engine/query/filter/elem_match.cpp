// $elemMatch: value form ({$gt: 1, $lt: 5}) and object form ({a: 1, $or: [...]})
#include "engine/query/filter/parse.h"

#include <algorithm>

namespace angelia::engine::query::filter {
bool ElemMatchValueTest::matches_element(bson::ValueView element) const {
    return std::all_of(children_.begin(), children_.end(),
                       [&](const TestPtr& child) { return child->matches_value(element); });
}

bool ElemMatchValueTest::matches_value(bson::ValueView value) const {
    if (!value.is(bson::Type::Array)) return false;
    const bson::DocumentView array = value.as_document();
    return std::any_of(array.begin(), array.end(),
                       [&](const bson::Element& e) { return matches_element(e.value); });
}

bool ElemMatchFieldsTest::matches_element(bson::ValueView element) const {
    // An array in the array counts as a document with fields "0", "1", ...
    return element.is_container() && condition_->matches(element.as_document());
}

bool ElemMatchFieldsTest::matches_value(bson::ValueView value) const {
    if (!value.is(bson::Type::Array)) return false;
    const bson::DocumentView array = value.as_document();
    return std::any_of(array.begin(), array.end(),
                       [&](const bson::Element& e) { return matches_element(e.value); });
}

Result<TestPtr> parse_elem_match(const FieldOperator& op) {
    const auto condition = op.operand.get_document();
    if (!condition) return bad_value("$elemMatch needs an Object");
    if (is_field_operator_document(op.operand)) {
        ANGELIA_TRY_ASSIGN(auto children, parse_field_operators(*condition, op.depth + 1));
        return TestPtr(std::make_unique<ElemMatchValueTest>(std::move(children)));
    }
    ANGELIA_TRY_ASSIGN(NodePtr fields, parse_filter(*condition, op.depth + 1));
    return TestPtr(std::make_unique<ElemMatchFieldsTest>(std::move(fields)));
}

}  // namespace angelia::engine::query::filter
