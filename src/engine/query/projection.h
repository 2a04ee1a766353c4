// Which fields of a document an answer shows.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <memory>

namespace angelia::engine::query {

enum class ProjectionUse {
    Find,       ///< find and findAndModify: $slice and $elemMatch allowed, {} shows everything
    Aggregate,  ///< $project: an empty specification is an error
};

/// Immutable after parse; copies share it. Threads: safe.
class Projection {
  public:
    /// Shows everything.
    Projection();
    /// Errors: Location31253/31254 (inclusion and exclusion mixed), Location31249/31250 (path
    /// collision), BadValue, NotImplemented (computed fields, positional). Source: MongoDB manual,
    /// "Project Fields to Return".
    static Result<Projection> parse(bson::DocumentView specification,
                                    ProjectionUse use = ProjectionUse::Find);

    bson::Document apply(bson::DocumentView document) const;
    /// True when apply() would copy the document unchanged.
    bool is_identity() const;

  private:
    struct State;
    explicit Projection(std::shared_ptr<const State> state) : state_(std::move(state)) {}
    std::shared_ptr<const State> state_;  ///< shared by copies; never changes
};

}  // namespace angelia::engine::query
