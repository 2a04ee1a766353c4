// $unset
#include "engine/query/update/operator.h"

namespace angelia::engine::query::update {
namespace {

class UnsetOperator final : public Operator {
  public:
    Result<void> apply(Target& target) const override {
        target.unset();
        return {};
    }
};

}  // namespace

Result<Operation> parse_unset(const OperatorArguments& arguments) {
    return make_operation(arguments.path, std::make_unique<UnsetOperator>());
}

}  // namespace angelia::engine::query::update
