// What a stage is. One stage per file under stages/, one table in table.cpp.
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

    /// What the planner and the stages beside it may make use of.
    virtual std::optional<bson::DocumentView> match_filter() const { return std::nullopt; }
    virtual std::optional<bson::DocumentView> sort_specification() const { return std::nullopt; }
    virtual std::optional<std::uint64_t> limit() const { return std::nullopt; }
    /// The same stage knowing that only the first `count` documents are wanted; nullptr when that
    /// makes no difference.
    virtual std::shared_ptr<const Stage> with_limit(std::uint64_t) const { return nullptr; }
};

using StagePtr = std::shared_ptr<const Stage>;

/// Base of the stages that look at one document at a time.
class PerDocumentStage : public Stage {
  public:
    bool is_per_document() const final { return true; }
    Source run(std::shared_ptr<const Stage> self, Source source) const final;
};

/// The operand of a stage that counts: a whole number of any type. Errors: `code`.
Result<std::uint64_t> parse_stage_count(std::string_view stage, bson::ValueView operand,
                                        std::int64_t at_least, ErrorCode code);

/// True when the value means itself: no string that starts with `$`, no operator, at any depth.
/// Expressions are not evaluated here yet.
bool is_literal(bson::ValueView value);

struct StageEntry {
    std::string_view name;
    Result<StagePtr> (*parse)(bson::ValueView operand);
};
/// The entry of a stage, or nullptr.
const StageEntry* find_stage(std::string_view name);

Result<StagePtr> parse_add_fields(bson::ValueView operand);
Result<StagePtr> parse_count(bson::ValueView operand);
Result<StagePtr> parse_group(bson::ValueView operand);
Result<StagePtr> parse_limit(bson::ValueView operand);
Result<StagePtr> parse_match(bson::ValueView operand);
Result<StagePtr> parse_project(bson::ValueView operand);
Result<StagePtr> parse_replace_root(bson::ValueView operand);
Result<StagePtr> parse_replace_with(bson::ValueView operand);
Result<StagePtr> parse_skip(bson::ValueView operand);
Result<StagePtr> parse_sort(bson::ValueView operand);
Result<StagePtr> parse_unset(bson::ValueView operand);

}  // namespace angelia::engine::aggregation
