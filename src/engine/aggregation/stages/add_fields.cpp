// $addFields and $set, for top-level fields with literal values.
#include "engine/aggregation/stage.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

namespace angelia::engine::aggregation {
namespace {

class AddFieldsStage final : public PerDocumentStage {
  public:
    explicit AddFieldsStage(bson::Document fields) : fields_(std::move(fields)) {}
    std::string_view name() const override { return "$addFields"; }
    /// Fields that are there keep their place, new ones follow.
    Result<std::optional<bson::Document>> transform(bson::Document document) const override {
        bson::Builder b;
        for (const bson::Element& e : document.view()) {
            const bson::ValueView replaced = fields_.find(e.key);
            b.add(e.key, replaced.is_missing() ? e.value : replaced);
        }
        for (const bson::Element& e : fields_.view()) {
            if (!document.has(e.key)) b.add(e.key, e.value);
        }
        return std::optional<bson::Document>(b.take());
    }

  private:
    bson::Document fields_;
};

/// The value a field gets. Documents are left out: beside an existing document they would merge
/// with it.
Result<bson::ValueView> literal_of(const bson::Element& e) {
    if (const auto document = e.value.get_document()) {
        if (document->count() == 1 && document->begin()->key == "$literal")
            return document->begin()->value;
    } else if (is_literal(e.value)) {
        return e.value;
    }
    return Error(
        ErrorCode::NotImplemented,
        fmt::format("expressions are not supported yet: field '{}' of $addFields needs a literal",
                    e.key));
}

}  // namespace

Result<StagePtr> parse_add_fields(bson::ValueView operand) {
    const auto fields = operand.get_document();
    if (!fields)
        return Error(ErrorCode::Location40272, "$addFields specification stage must be an object");
    if (fields->empty())
        return Error(
            ErrorCode::Location51272,
            "Invalid $addFields :: caused by :: specification must have at least one field");
    bson::Builder b;
    for (const bson::Element& e : *fields) {
        if (e.key.empty() || e.key.starts_with('$') || e.key.find('.') != std::string_view::npos) {
            return Error(
                ErrorCode::NotImplemented,
                fmt::format("$addFields supports only plain top-level fields yet, not '{}'",
                            e.key));
        }
        ANGELIA_TRY_ASSIGN(const bson::ValueView value, literal_of(e));
        b.add(e.key, value);
    }
    return StagePtr(std::make_shared<AddFieldsStage>(b.take()));
}

}  // namespace angelia::engine::aggregation
