// $skip
#include "engine/aggregation/stage.h"

namespace angelia::engine::aggregation {
namespace {

class SkipStage final : public Stage {
  public:
    explicit SkipStage(std::uint64_t count) : count_(count) {}
    std::string_view name() const override { return "$skip"; }
    Source run(std::shared_ptr<const Stage>, Source source) const override {
        return [source = std::move(source),
                left = count_]() mutable -> Result<std::optional<bson::Document>> {
            for (; left > 0; --left) {
                ANGELIA_TRY_ASSIGN(auto skipped, source());
                if (!skipped) return skipped;
            }
            return source();
        };
    }

  private:
    std::uint64_t count_;
};

}  // namespace

Result<StagePtr> parse_skip(bson::ValueView operand) {
    ANGELIA_TRY_ASSIGN(const std::uint64_t count,
                       parse_stage_count("$skip", operand, 0, ErrorCode::Location15956));
    return StagePtr(std::make_shared<SkipStage>(count));
}

}  // namespace angelia::engine::aggregation
