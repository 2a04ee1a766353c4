// $min and $max
#include "engine/query/update/operator.h"

#include <angelia/bson/compare.h>

namespace angelia::engine::query::update {
namespace {

class ExtremeOperator final : public Operator {
  public:
    ExtremeOperator(bson::ValueView operand, int wanted_order)
        : operand_(operand), wanted_order_(wanted_order) {}
    Result<void> apply(Target& target) const override {
        if (target.exists() && bson::compare(operand_, target.value()) * wanted_order_ <= 0)
            return {};
        return target.set(operand_);
    }

  private:
    bson::ValueView operand_;
    int wanted_order_;  ///< sign of compare(operand, present) that makes the operand win
};

}  // namespace

Result<Operation> parse_min(const OperatorArguments& arguments) {
    return make_operation(arguments.path, std::make_unique<ExtremeOperator>(arguments.operand, -1));
}
Result<Operation> parse_max(const OperatorArguments& arguments) {
    return make_operation(arguments.path, std::make_unique<ExtremeOperator>(arguments.operand, 1));
}

}  // namespace angelia::engine::query::update
