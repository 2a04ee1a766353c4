// What a stage is. One stage per file under stages/, one table in stages.cpp.
#pragma once

#include "engine/aggregation/pipeline.h"

namespace angelia::engine::aggregation {

/// Parsed once, run many times at once: run() keeps its state in the Source it returns.
class Stage {
  public:
    virtual ~Stage() = default;
    virtual std::string_view name() const = 0;
    /// Pulls from `source`. The stage outlives the result (`self` may be kept).
    virtual Source run(std::shared_ptr<const Stage> self, Source source) const = 0;
    /// True when the stage maps each document by itself to one or none: then transform() works.
    virtual bool is_per_document() const { return false; }
    virtual Result<std::optional<bson::Document>> transform(bson::Document document) const;

    virtual std::optional<bson::DocumentView> match_filter() const { return std::nullopt; }
    virtual std::optional<bson::DocumentView> sort_specification() const { return std::nullopt; }
};

using StagePtr = std::shared_ptr<const Stage>;

/// Base of the stages that look at one document at a time.
class PerDocumentStage : public Stage {
  public:
    bool is_per_document() const final { return true; }
    Source run(std::shared_ptr<const Stage> self, Source source) const final;
};

struct StageEntry {
    std::string_view name;
    Result<StagePtr> (*parse)(bson::ValueView operand);
};
/// The entry of a stage, or nullptr.
const StageEntry* find_stage(std::string_view name);

}  // namespace angelia::engine::aggregation
