// $inc and $mul
#include "engine/query/update/arithmetic.h"
#include "engine/query/update/operator.h"

#include <fmt/format.h>

namespace angelia::engine::query::update {
namespace {

class ArithmeticOperator final : public Operator {
  public:
    using Combine = std::optional<bson::Value> (*)(bson::ValueView, bson::ValueView);
    ArithmeticOperator(std::string_view name, bson::ValueView operand, Combine combine)
        : name_(name), operand_(operand), combine_(combine) {}

    Result<void> apply(Target& target) const override {
        if (!target.exists()) {
            if (name_ == "$inc") return target.set(operand_);
            const bson::Value zero = bson::value(std::int32_t{0});
            auto of_operands_type = multiply_numbers(operand_, zero.view());
            return target.set(std::move(*of_operands_type));
        }
        if (!target.value().is_number()) {
            return Error(ErrorCode::TypeMismatch,
                         fmt::format("Cannot apply {} to a value of non-numeric type. {} has the "
                                     "field '{}' of non-numeric type {}",
                                     name_, target.id_text(), target.path().back(),
                                     bson::type_alias(target.value().type())));
        }
        auto result = combine_(target.value(), operand_);
        if (!result) {
            return bad_operand(fmt::format(
                "Failed to apply {} operations to current value ({}) for document {}", name_,
                element_text(target.path().back(), target.value()), target.id_text()));
        }
        return target.set(std::move(*result));
    }

  private:
    std::string_view name_;  ///< of the parser's caller, which is a literal
    bson::ValueView operand_;
    Combine combine_;
};

Result<Operation> parse_arithmetic(const OperatorArguments& arguments, std::string_view name,
                                   ArithmeticOperator::Combine combine) {
    if (!arguments.operand.is_number()) {
        return Error(ErrorCode::TypeMismatch,
                     fmt::format("Cannot {} with non-numeric argument: {}",
                                 name == "$inc" ? "increment" : "multiply",
                                 element_text(arguments.path, arguments.operand)));
    }
    return make_operation(arguments.path,
                          std::make_unique<ArithmeticOperator>(name, arguments.operand, combine));
}

}  // namespace

Result<Operation> parse_inc(const OperatorArguments& arguments) {
    return parse_arithmetic(arguments, "$inc", add_numbers);
}
Result<Operation> parse_mul(const OperatorArguments& arguments) {
    return parse_arithmetic(arguments, "$mul", multiply_numbers);
}

}  // namespace angelia::engine::query::update
