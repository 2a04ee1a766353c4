// $pop
#include "engine/query/update/operator.h"

#include <fmt/format.h>

namespace angelia::engine::query::update {
namespace {

class PopOperator final : public Operator {
  public:
    explicit PopOperator(bool first) : first_(first) {}
    Result<void> apply(Target& target) const override {
        if (!target.exists()) return {};
        const auto array = target.value().get_array();
        if (!array) {
            return Error(
                ErrorCode::TypeMismatch,
                fmt::format("Path '{}' contains an element of non-array type '{}'",
                            target.path().dotted(), bson::type_alias(target.value().type())));
        }
        const std::size_t count = array->count();
        if (count == 0) return {};
        const std::size_t leaves = first_ ? 0 : count - 1;
        bson::Builder b;
        b.open_array("v");
        std::size_t at = 0;
        for (const bson::Element& e : *array) {
            if (at++ != leaves) b.push(e.value);
        }
        b.close();
        const bson::Document whole = b.take();
        return target.set(bson::Value(whole.find("v")));
    }

  private:
    bool first_;
};

}  // namespace

Result<Operation> parse_pop(const OperatorArguments& arguments) {
    const auto end = arguments.operand.to_int64();
    if (end != 1 && end != -1) {
        return Error(ErrorCode::FailedToParse,
                     fmt::format("$pop expects 1 or -1, found: {}",
                                 element_text(arguments.path, arguments.operand)));
    }
    return make_operation(arguments.path, std::make_unique<PopOperator>(end == -1));
}

}  // namespace angelia::engine::query::update
