// $bit
#include "engine/query/update/operator.h"

#include <fmt/format.h>

namespace angelia::engine::query::update {
namespace {

using bson::Type;
using bson::ValueView;

bool is_integer_type(ValueView v) { return v.is(Type::Int32) || v.is(Type::Int64); }

class BitOperator final : public Operator {
  public:
    struct Step {
        std::string_view name;  ///< and, or, xor
        ValueView operand;
    };
    explicit BitOperator(std::vector<Step> steps) : steps_(std::move(steps)) {}

    Result<void> apply(Target& target) const override {
        if (target.exists() && !is_integer_type(target.value())) {
            return bad_operand(fmt::format(
                "Cannot apply $bit to a value of non-integral type. {} has the field {} of "
                "non-integer type {}",
                target.id_text(), target.path().back(), bson::type_alias(target.value().type())));
        }
        bool wide = target.value().is(Type::Int64);
        std::int64_t bits = target.exists() ? *target.value().to_int64() : 0;
        for (const Step& step : steps_) {
            const std::int64_t operand = *step.operand.to_int64();
            wide = wide || step.operand.is(Type::Int64);
            if (step.name == "and") bits &= operand;
            if (step.name == "or") bits |= operand;
            if (step.name == "xor") bits ^= operand;
        }
        return target.set(wide ? bson::value(bits) : bson::value(static_cast<std::int32_t>(bits)));
    }

  private:
    std::vector<Step> steps_;
};

}  // namespace

Result<Operation> parse_bit(const OperatorArguments& arguments) {
    const auto clauses = arguments.operand.get_document();
    if (!clauses || clauses->empty()) {
        return bad_operand(
            fmt::format("The $bit modifier needs a document of 'and', 'or', 'xor': {}",
                        element_text(arguments.path, arguments.operand)));
    }
    std::vector<BitOperator::Step> steps;
    for (const bson::Element& e : *clauses) {
        if (e.key != "and" && e.key != "or" && e.key != "xor") {
            return bad_operand(fmt::format(
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{}'", e.key));
        }
        if (!is_integer_type(e.value)) {
            return bad_operand(
                fmt::format("The $bit modifier field must be an Integer(32/64 bit); a '{}' is not "
                            "supported here",
                            bson::type_alias(e.value.type())));
        }
        steps.push_back({e.key, e.value});
    }
    return make_operation(arguments.path, std::make_unique<BitOperator>(std::move(steps)));
}

}  // namespace angelia::engine::query::update
