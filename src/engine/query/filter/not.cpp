// $not on a field
#include "engine/query/filter/parse.h"

namespace angelia::engine::query::filter {

Result<TestPtr> parse_not(const FieldOperator& op) {
    if (op.operand.is(bson::Type::Regex)) return bad_value("regular expressions are not supported");
    const auto operators = op.operand.get_document();
    if (!operators) return bad_value("$not needs a regex or a document");
    if (operators->empty()) return bad_value("$not cannot be empty");
    ANGELIA_TRY_ASSIGN(auto children, parse_field_operators(*operators, op.depth + 1));
    return TestPtr(std::make_unique<NotTest>(std::make_unique<AllOfTest>(std::move(children))));
}

}  // namespace angelia::engine::query::filter
