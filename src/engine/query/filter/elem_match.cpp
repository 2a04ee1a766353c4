// $elemMatch: value form ({$gt: 1, $lt: 5}) and object form ({a: 1, $or: [...]})
#include "engine/query/filter/parse.h"

namespace angelia::engine::query::filter {
bool ElemMatchValueTest::matches_value(bson::ValueView value) const {
    if (!value.is(bson::Type::Array)) return false;
    for (const bson::Element& e : value.as_document()) {
        bool all = true;
        for (const TestPtr& child : children_) {
            if (child->matches_value(e.value)) continue;
            all = false;
            break;
        }
        if (all) return true;
    }
    return false;
}

bool ElemMatchFieldsTest::matches_value(bson::ValueView value) const {
    if (!value.is(bson::Type::Array)) return false;
    for (const bson::Element& e : value.as_document()) {
        // An array in the array counts as a document with fields "0", "1", ...
        if (e.value.is_container() && condition_->matches(e.value.as_document())) return true;
    }
    return false;
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
