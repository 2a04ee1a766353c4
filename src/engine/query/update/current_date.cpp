// $currentDate
#include "engine/query/update/operator.h"

#include <fmt/format.h>

namespace angelia::engine::query::update {
namespace {

class CurrentDateOperator final : public Operator {
  public:
    explicit CurrentDateOperator(bool timestamp) : timestamp_(timestamp) {}
    Result<void> apply(Target& target) const override {
        if (timestamp_) return target.set(bson::value(target.context().timestamp));
        return target.set(bson::value(target.context().now));
    }

  private:
    bool timestamp_;
};

Result<bool> wants_timestamp(const OperatorArguments& arguments) {
    if (arguments.operand.is(bson::Type::Bool)) return false;
    const auto options = arguments.operand.get_document();
    if (!options) {
        return bad_operand(
            fmt::format("{} is not valid type for $currentDate. Please use a boolean ('true') or a "
                        "$type expression "
                        "({{$type: 'timestamp/date'}}).",
                        bson::type_alias(arguments.operand.type())));
    }
    std::optional<bool> timestamp;
    for (const bson::Element& e : *options) {
        if (e.key != "$type")
            return bad_operand(fmt::format("Unrecognized $currentDate option: {}", e.key));
        const auto kind = e.value.get_string();
        if (kind != "date" && kind != "timestamp") {
            return bad_operand(
                "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: "
                "{field : {$type: 'date'}}}");
        }
        timestamp = kind == "timestamp";
    }
    if (!timestamp)
        return bad_operand(
            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: "
            "{field : {$type: 'date'}}}");
    return *timestamp;
}

}  // namespace

Result<Operation> parse_current_date(const OperatorArguments& arguments) {
    ANGELIA_TRY_ASSIGN(const bool timestamp, wants_timestamp(arguments));
    return make_operation(arguments.path, std::make_unique<CurrentDateOperator>(timestamp));
}

}  // namespace angelia::engine::query::update
