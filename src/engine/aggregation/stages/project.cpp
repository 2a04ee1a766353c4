// $project and $unset
#include "engine/aggregation/stage.h"
#include "engine/query/projection.h"

#include <angelia/bson/builder.h>

namespace angelia::engine::aggregation {
namespace {

class ProjectStage final : public PerDocumentStage {
  public:
    ProjectStage(std::string_view name, query::Projection projection)
        : name_(name), projection_(std::move(projection)) {}
    std::string_view name() const override { return name_; }
    Result<std::optional<bson::Document>> transform(bson::Document document) const override {
        return std::optional<bson::Document>(projection_.apply(document.view()));
    }

  private:
    std::string_view name_;  ///< a literal
    query::Projection projection_;
};

}  // namespace

Result<StagePtr> parse_project(bson::ValueView operand) {
    const auto specification = operand.get_document();
    if (!specification)
        return Error(ErrorCode::Location15969, "$project specification must be an object");
    ANGELIA_TRY_ASSIGN(auto projection,
                       query::Projection::parse(*specification, query::ProjectionUse::Aggregate));
    return StagePtr(std::make_shared<ProjectStage>("$project", std::move(projection)));
}

Result<StagePtr> parse_unset(bson::ValueView operand) {
    bson::Builder exclusions;
    const auto exclude = [&](bson::ValueView name) -> Result<void> {
        const auto text = name.get_string();
        if (!text)
            return Error(
                ErrorCode::Location31002,
                "$unset specification must be a string or an array containing only string values");
        if (text->find('\0') != std::string_view::npos)
            return Error(ErrorCode::BadValue, "$unset field names cannot contain a null byte");
        exclusions.add(*text, std::int32_t{0});
        return {};
    };
    if (const auto list = operand.get_array()) {
        for (const bson::Element& e : *list) ANGELIA_TRY(exclude(e.value));
    } else {
        ANGELIA_TRY(exclude(operand));
    }
    const bson::Document specification = exclusions.take();
    ANGELIA_TRY_ASSIGN(auto projection, query::Projection::parse(specification.view(),
                                                                 query::ProjectionUse::Aggregate));
    return StagePtr(std::make_shared<ProjectStage>("$unset", std::move(projection)));
}

}  // namespace angelia::engine::aggregation
