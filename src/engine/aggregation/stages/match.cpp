// $match
#include "engine/aggregation/stage.h"
#include "engine/query/matcher.h"

namespace angelia::engine::aggregation {
namespace {

class MatchStage final : public PerDocumentStage {
  public:
    explicit MatchStage(query::Matcher matcher) : matcher_(std::move(matcher)) {}
    std::string_view name() const override { return "$match"; }
    std::optional<bson::DocumentView> match_filter() const override { return matcher_.source(); }
    Result<std::optional<bson::Document>> transform(bson::Document document) const override {
        if (!matcher_.matches(document.view())) return std::optional<bson::Document>();
        return std::optional<bson::Document>(std::move(document));
    }

  private:
    query::Matcher matcher_;
};

}  // namespace

Result<StagePtr> parse_match(bson::ValueView operand) {
    const auto filter = operand.get_document();
    if (!filter)
        return Error(ErrorCode::Location15959,
                     "the match filter must be an expression in an object");
    ANGELIA_TRY_ASSIGN(query::Matcher matcher, query::Matcher::parse(*filter));
    return StagePtr(std::make_shared<MatchStage>(std::move(matcher)));
}

}  // namespace angelia::engine::aggregation
