#include "engine/aggregation/pipeline.h"

#include "engine/aggregation/stage.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::aggregation {
namespace {

Result<StagePtr> parse_stage(bson::ValueView value) {
    const auto stage = value.get_document();
    if (!stage)
        return Error(ErrorCode::TypeMismatch,
                     "Each element of the 'pipeline' array must be an object");
    if (stage->count() != 1) {
        return Error(ErrorCode::Location40323,
                     "A pipeline stage specification object must contain exactly one field.");
    }
    const bson::Element e = *stage->begin();
    if (e.key == "$changeStream") {
        return Error(ErrorCode::Location40602,
                     "$changeStream is only valid as the first stage in a pipeline.");
    }
    const StageEntry* entry = find_stage(e.key);
    if (entry == nullptr)
        return Error(ErrorCode::Location40324,
                     fmt::format("Unrecognized pipeline stage name: '{}'", e.key));
    return entry->parse(e.value);
}

constexpr std::size_t kStagesMax = 1000;  // MongoDB limit

}  // namespace

Result<Pipeline> Pipeline::parse(bson::DocumentView stages) {
    Pipeline pipeline;
    for (const bson::Element& e : stages) {
        if (pipeline.stages_.size() == kStagesMax) {
            return Error(
                ErrorCode::FailedToParse,
                fmt::format("Pipeline length must be no longer than {} stages", kStagesMax));
        }
        ANGELIA_TRY_ASSIGN(StagePtr stage, parse_stage(e.value));
        // A sort that feeds a limit keeps only that many documents.
        if (stage->limit() && !pipeline.stages_.empty()) {
            if (StagePtr bounded = pipeline.stages_.back()->with_limit(*stage->limit()))
                pipeline.stages_.back() = std::move(bounded);
        }
        pipeline.stages_.push_back(std::move(stage));
    }
    return pipeline;
}

std::optional<Pipeline::Leading> Pipeline::leading_stage(bson::DocumentView stages) {
    if (stages.empty()) return std::nullopt;
    const auto first = stages.begin()->value.get_document();
    if (!first || first->empty()) return std::nullopt;
    const bson::Element e = *first->begin();
    return Leading{e.key, e.value};
}

bson::Document Pipeline::without_leading_stage(bson::DocumentView stages) {
    bson::Builder b;
    std::uint32_t index = 0;
    bool first = true;
    for (const bson::Element& e : stages) {
        if (!first) b.add(std::to_string(index++), e.value);
        first = false;
    }
    return b.take();
}

std::vector<std::string_view> Pipeline::stage_names() const {
    std::vector<std::string_view> names;
    for (const auto& stage : stages_) names.push_back(stage->name());
    return names;
}

std::optional<bson::DocumentView> Pipeline::leading_match() const {
    if (stages_.empty()) return std::nullopt;
    return stages_.front()->match_filter();
}

std::optional<bson::DocumentView> Pipeline::leading_sort() const {
    const std::size_t at = leading_match() ? 1 : 0;
    if (stages_.size() <= at) return std::nullopt;
    return stages_[at]->sort_specification();
}

Source Pipeline::run(Source source, std::size_t skip_stages) const {
    for (std::size_t i = skip_stages; i < stages_.size(); ++i)
        source = stages_[i]->run(stages_[i], std::move(source));
    return source;
}

bool Pipeline::is_per_document() const {
    return std::all_of(stages_.begin(), stages_.end(),
                       [](const StagePtr& stage) { return stage->is_per_document(); });
}

Result<std::optional<bson::Document>> Pipeline::transform(bson::Document document) const {
    std::optional<bson::Document> current(std::move(document));
    for (const auto& stage : stages_) {
        if (!stage->is_per_document()) {
            return Error(
                ErrorCode::IllegalOperation,
                fmt::format("{} is not permitted in a $changeStream pipeline", stage->name()));
        }
        ANGELIA_TRY_ASSIGN(current, stage->transform(std::move(*current)));
        if (!current) break;
    }
    return current;
}

// ---- Stage

Result<std::optional<bson::Document>> Stage::transform(bson::Document) const {
    return Error(ErrorCode::IllegalOperation,
                 fmt::format("{} needs more than one document", name()));
}

Source PerDocumentStage::run(std::shared_ptr<const Stage> self, Source source) const {
    return [self = std::move(self),
            source = std::move(source)]() -> Result<std::optional<bson::Document>> {
        for (;;) {
            ANGELIA_TRY_ASSIGN(auto document, source());
            if (!document) return document;
            ANGELIA_TRY_ASSIGN(auto transformed, self->transform(std::move(*document)));
            if (transformed) return transformed;
        }
    };
}

}  // namespace angelia::engine::aggregation
