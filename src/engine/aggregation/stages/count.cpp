// $count
#include "engine/aggregation/stage.h"

#include <angelia/bson/builder.h>

#include <limits>

namespace angelia::engine::aggregation {
namespace {

class CountStage final : public Stage {
  public:
    explicit CountStage(std::string field) : field_(std::move(field)) {}
    std::string_view name() const override { return "$count"; }
    /// One document, or none when nothing came.
    Source run(std::shared_ptr<const Stage> self, Source source) const override {
        return [self = std::move(self), this, source = std::move(source),
                done = false]() mutable -> Result<std::optional<bson::Document>> {
            if (done) return std::optional<bson::Document>();
            done = true;
            std::int64_t count = 0;
            for (;; ++count) {
                ANGELIA_TRY_ASSIGN(const auto document, source());
                if (!document) break;
            }
            if (count == 0) return std::optional<bson::Document>();
            if (count > std::numeric_limits<std::int32_t>::max())
                return std::optional<bson::Document>(bson::make(field_, count));
            return std::optional<bson::Document>(
                bson::make(field_, static_cast<std::int32_t>(count)));
        };
    }

  private:
    std::string field_;
};

}  // namespace

Result<StagePtr> parse_count(bson::ValueView operand) {
    const auto field = operand.get_string();
    if (!field || field->empty())
        return Error(ErrorCode::Location40156, "the count field must be a non-empty string");
    if (field->starts_with('$'))
        return Error(ErrorCode::Location40158, "the count field cannot be a $-prefixed path");
    if (field->find('\0') != std::string_view::npos)
        return Error(ErrorCode::Location40159, "the count field cannot contain a null byte");
    if (field->find('.') != std::string_view::npos)
        return Error(ErrorCode::Location40160, "the count field cannot contain '.'");
    return StagePtr(std::make_shared<CountStage>(std::string(*field)));
}

}  // namespace angelia::engine::aggregation
