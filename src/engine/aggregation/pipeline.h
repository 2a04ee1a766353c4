// An aggregation pipeline: a list of stages that pull documents from the one before.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace angelia::engine::aggregation {

/// Hands out documents one after the other; nothing at the end.
using Source = std::function<Result<std::optional<bson::Document>>()>;

class Stage;

/// Immutable after parse; copies share it. Threads: safe.
class Pipeline {
  public:
    Pipeline() = default;
    /// `stages`: the array of the command. Errors: TypeMismatch (element that is no document),
    /// Location40323 (a stage with other than one field), Location40324 (unknown stage), and those
    /// of the stages.
    static Result<Pipeline> parse(bson::DocumentView stages);

    /// The name of the first stage ("$changeStream", ...) and its operand, to be looked at before
    /// parse(); nothing when there is none.
    struct Leading {
        std::string_view name;
        bson::ValueView operand;
    };
    static std::optional<Leading> leading_stage(bson::DocumentView stages);
    /// The array without its first element: what follows a $changeStream.
    static bson::Document without_leading_stage(bson::DocumentView stages);

    bool empty() const { return stages_.empty(); }
    /// The names of the stages, in order.
    std::vector<std::string_view> stage_names() const;

    /// The filter of a $match that stands first: find the source with it (the pipeline will apply
    /// it again, harmlessly, unless run with `skip_stages`). Likewise the sort right behind it (or
    /// in front). Views are valid as long as this Pipeline or a copy lives.
    std::optional<bson::DocumentView> leading_match() const;
    std::optional<bson::DocumentView> leading_sort() const;

    /// Runs the stages from `skip_stages` on. The result is pulled lazily; it keeps what it needs
    /// of this pipeline alive.
    Source run(Source source, std::size_t skip_stages = 0) const;

    /// For change streams: applies $match, $project, $unset, $addFields/$set to one event; nothing
    /// when a $match drops it. Errors: IllegalOperation when a stage needs more than one document
    /// (check with is_per_document()).
    Result<std::optional<bson::Document>> transform(bson::Document document) const;
    bool is_per_document() const;

  private:
    std::vector<std::shared_ptr<const Stage>> stages_;
};

}  // namespace angelia::engine::aggregation
