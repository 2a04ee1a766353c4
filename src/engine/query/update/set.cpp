// $set and $setOnInsert
#include "engine/query/update/operator.h"

namespace angelia::engine::query::update {
namespace {

class SetOperator final : public Operator {
  public:
    explicit SetOperator(bson::ValueView operand) : operand_(operand) {}
    Result<void> apply(Target& target) const override { return target.set(operand_); }

  private:
    bson::ValueView operand_;
};

}  // namespace

Result<Operation> parse_set(const OperatorArguments& arguments) {
    return make_operation(arguments.path, std::make_unique<SetOperator>(arguments.operand));
}

Result<Operation> parse_set_on_insert(const OperatorArguments& arguments) {
    ANGELIA_TRY_ASSIGN(Operation operation, parse_set(arguments));
    operation.only_on_insert = true;
    return operation;
}

}  // namespace angelia::engine::query::update
