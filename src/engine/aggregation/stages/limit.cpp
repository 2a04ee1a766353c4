// $limit
#include "engine/aggregation/stage.h"

namespace angelia::engine::aggregation {
namespace {

class LimitStage final : public Stage {
  public:
    explicit LimitStage(std::uint64_t count) : count_(count) {}
    std::string_view name() const override { return "$limit"; }
    std::optional<std::uint64_t> limit() const override { return count_; }
    Source run(std::shared_ptr<const Stage>, Source source) const override {
        return [source = std::move(source),
                left = count_]() mutable -> Result<std::optional<bson::Document>> {
            if (left == 0) return std::optional<bson::Document>();
            --left;
            return source();
        };
    }

  private:
    std::uint64_t count_;
};

}  // namespace

Result<StagePtr> parse_limit(bson::ValueView operand) {
    ANGELIA_TRY_ASSIGN(const std::uint64_t count,
                       parse_stage_count("$limit", operand, 1, ErrorCode::Location15958));
    return StagePtr(std::make_shared<LimitStage>(count));
}

}  // namespace angelia::engine::aggregation
