// $mod
#include "engine/query/filter/parse.h"

#include <cmath>

namespace angelia::engine::query::filter {
namespace {

using bson::ValueView;

/// Towards zero, as MongoDB reads both operands and values; nothing for NaN, infinities and numbers
/// beyond int64.
std::optional<std::int64_t> truncated(ValueView v) {
    if (const auto exact = v.to_int64()) return exact;
    const auto number = v.to_double();
    if (!number) return std::nullopt;
    const double whole = std::trunc(*number);
    if (!(whole >= -9223372036854775808.0 && whole < 9223372036854775808.0)) return std::nullopt;
    return static_cast<std::int64_t>(whole);
}

class ModTest final : public Test {
  public:
    ModTest(std::int64_t divisor, std::int64_t remainder)
        : Test(Kind::Mod), divisor_(divisor), remainder_(remainder) {}
    bool matches_value(ValueView value) const override {
        const auto number = truncated(value);
        if (!number) return false;
        const std::int64_t rest =
            divisor_ == -1 ? 0 : *number % divisor_;  // INT64_MIN % -1 is undefined in C++
        return rest == remainder_;
    }

  private:
    std::int64_t divisor_;
    std::int64_t remainder_;
};

}  // namespace

Result<TestPtr> parse_mod(const FieldOperator& op) {
    const auto list = op.operand.get_array();
    if (!list) return bad_value("malformed mod, needs to be an array");
    std::vector<ValueView> operands;
    for (const bson::Element& e : *list) operands.push_back(e.value);
    if (operands.size() < 2) return bad_value("malformed mod, not enough elements");
    if (operands.size() > 2) return bad_value("malformed mod, too many elements");
    if (!operands[0].is_number()) return bad_value("malformed mod, divisor not a number");
    if (!operands[1].is_number()) return bad_value("malformed mod, remainder not a number");
    const auto divisor = truncated(operands[0]);
    const auto remainder = truncated(operands[1]);
    if (!divisor) return bad_value("malformed mod, divisor value is invalid");
    if (!remainder) return bad_value("malformed mod, remainder value is invalid");
    if (*divisor == 0) return bad_value("divisor cannot be 0");
    return TestPtr(std::make_unique<ModTest>(*divisor, *remainder));
}

}  // namespace angelia::engine::query::filter
