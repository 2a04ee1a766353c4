// $all
#include "engine/query/filter/parse.h"

namespace angelia::engine::query::filter {
namespace {

bool is_elem_match(bson::ValueView value) {
    const auto document = value.get_document();
    return document && !document->empty() && document->begin()->key == "$elemMatch";
}

}  // namespace

Result<TestPtr> parse_all(const FieldOperator& op) {
    const auto list = op.operand.get_array();
    if (!list) return bad_value("$all needs an array");
    if (list->empty()) return TestPtr(std::make_unique<NeverTest>());
    std::vector<TestPtr> children;
    const bool elem_matches = is_elem_match(list->begin()->value);
    for (const bson::Element& e : *list) {
        if (elem_matches) {
            if (!is_elem_match(e.value)) return bad_value("$all/$elemMatch has to be consistent");
            const FieldOperator inner{"$elemMatch", e.value.as_document().begin()->value,
                                      e.value.as_document(), op.depth + 1};
            ANGELIA_TRY_ASSIGN(TestPtr child, parse_elem_match(inner));
            children.push_back(std::move(child));
            continue;
        }
        if (is_operator_document(e.value)) return bad_value("no $ expressions in $all");
        ANGELIA_TRY_ASSIGN(TestPtr child, parse_equality(e.value));
        children.push_back(std::move(child));
    }
    return TestPtr(std::make_unique<AllOfTest>(std::move(children)));
}

}  // namespace angelia::engine::query::filter
