// $pull and $pullAll
#include "engine/query/update/operator.h"

#include <angelia/bson/compare.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query::update {
namespace {

using bson::ValueView;

/// Removes the elements for which `leaves(element)` holds.
template <class Leaves>
Result<void> cull_array(Target& target, std::string_view name, const Leaves& leaves) {
    if (!target.exists()) return {};
    const auto array = target.value().get_array();
    if (!array) return bad_operand(fmt::format("Cannot apply {} to a non-array value", name));
    bson::Builder b;
    b.open_array("v");
    bool any = false;
    for (const bson::Element& e : *array) {
        if (leaves(e.value)) {
            any = true;
        } else {
            b.push(e.value);
        }
    }
    if (!any) return {};
    b.close();
    const bson::Document whole = b.take();
    return target.set(bson::Value(whole.find("v")));
}

class PullOperator final : public Operator {
  public:
    explicit PullOperator(ValueMatcher condition) : condition_(std::move(condition)) {}
    Result<void> apply(Target& target) const override {
        return cull_array(target, "$pull", [&](ValueView v) { return condition_.matches(v); });
    }

  private:
    ValueMatcher condition_;
};

class PullAllOperator final : public Operator {
  public:
    explicit PullAllOperator(std::vector<ValueView> values) : values_(std::move(values)) {}
    Result<void> apply(Target& target) const override {
        return cull_array(target, "$pullAll", [&](ValueView v) {
            return std::any_of(values_.begin(), values_.end(),
                               [&](const ValueView& w) { return bson::equal(v, w); });
        });
    }

  private:
    std::vector<ValueView> values_;
};

}  // namespace

Result<Operation> parse_pull(const OperatorArguments& arguments) {
    ANGELIA_TRY_ASSIGN(ValueMatcher condition, ValueMatcher::parse(arguments.operand));
    return make_operation(arguments.path, std::make_unique<PullOperator>(std::move(condition)));
}

Result<Operation> parse_pull_all(const OperatorArguments& arguments) {
    const auto list = arguments.operand.get_array();
    if (!list)
        return bad_operand(fmt::format("$pullAll requires an array argument but was given a {}",
                                       bson::type_alias(arguments.operand.type())));
    std::vector<ValueView> values;
    for (const bson::Element& e : *list) values.push_back(e.value);
    return make_operation(arguments.path, std::make_unique<PullAllOperator>(std::move(values)));
}

}  // namespace angelia::engine::query::update
