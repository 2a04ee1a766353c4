// $size
#include "engine/query/filter/parse.h"

namespace angelia::engine::query::filter {
namespace {

class SizeTest final : public Test {
  public:
    explicit SizeTest(std::size_t size) : Test(Kind::Size), size_(size) {}
    bool matches_value(bson::ValueView value) const override {
        return value.is(bson::Type::Array) && value.as_document().count() == size_;
    }
    bool whole_arrays() const override { return true; }

  private:
    std::size_t size_;
};

}  // namespace

Result<TestPtr> parse_size(const FieldOperator& op) {
    if (!op.operand.is_number()) return bad_value("Failed to parse $size. Expected a number");
    const auto size = op.operand.to_int64();
    if (!size) return bad_value("Failed to parse $size. Expected an integer");
    if (*size < 0) return bad_value("Failed to parse $size. Expected a non-negative number");
    return TestPtr(std::make_unique<SizeTest>(static_cast<std::size_t>(*size)));
}

}  // namespace angelia::engine::query::filter
