// $addToSet, with $each
#include "engine/query/update/operator.h"

#include <angelia/bson/compare.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query::update {
namespace {

using bson::ValueView;

class AddToSetOperator final : public Operator {
  public:
    explicit AddToSetOperator(std::vector<ValueView> values) : values_(std::move(values)) {}

    Result<void> apply(Target& target) const override {
        bson::DocumentView present;
        if (target.exists()) {
            const auto array = target.value().get_array();
            if (!array) {
                return bad_operand(
                    fmt::format("Cannot apply $addToSet to non-array field. Field named '{}' has "
                                "non-array type {}",
                                target.path().back(), bson::type_alias(target.value().type())));
            }
            present = *array;
        }
        std::vector<ValueView> added;
        for (const ValueView v : values_) {
            const bool there =
                std::any_of(present.begin(), present.end(),
                            [&](const bson::Element& e) { return bson::equal(e.value, v); });
            if (!there) added.push_back(v);
        }
        if (added.empty() && target.exists()) return {};
        bson::Builder b;
        b.open_array("v");
        for (const bson::Element& e : present) b.push(e.value);
        for (const ValueView v : added) b.push(v);
        b.close();
        const bson::Document whole = b.take();
        return target.set(bson::Value(whole.find("v")));
    }

  private:
    std::vector<ValueView> values_;  ///< without duplicates
};

}  // namespace

Result<Operation> parse_add_to_set(const OperatorArguments& arguments) {
    std::vector<ValueView> values;
    const auto clauses = arguments.operand.get_document();
    if (clauses && !clauses->empty() && clauses->begin()->key == "$each") {
        const ValueView each = clauses->begin()->value;
        if (!each.is(bson::Type::Array)) {
            return Error(
                ErrorCode::TypeMismatch,
                fmt::format(
                    "The argument to $each in $addToSet must be an array but it was of type {}",
                    bson::type_alias(each.type())));
        }
        if (clauses->count() > 1) {
            return bad_operand(fmt::format("Found unexpected fields after $each in $addToSet: {}",
                                           element_text(arguments.path, arguments.operand)));
        }
        for (const bson::Element& e : each.as_document()) {
            const bool twice = std::any_of(values.begin(), values.end(), [&](const ValueView& v) {
                return bson::equal(v, e.value);
            });
            if (!twice) values.push_back(e.value);
        }
    } else {
        values.push_back(arguments.operand);
    }
    return make_operation(arguments.path, std::make_unique<AddToSetOperator>(std::move(values)));
}

}  // namespace angelia::engine::query::update
