// A filter document, parsed once and asked many times.
#pragma once

#include "engine/query/field_path.h"

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace angelia::engine::query {

namespace filter {
class Node;
}

/// An equality that a filter demands of every match: what an upsert starts from. The value lives as
/// long as the Matcher's filter.
struct RequiredEquality {
    std::string_view path;
    bson::ValueView value;
};

/// Immutable after parse; owns a copy of the filter's bytes; copies share it. Threads: safe.
class Matcher {
  public:
    /// Matches everything.
    Matcher();
    /// Errors: BadValue (unknown operator, wrong operand), FailedToParse.
    /// Source: MongoDB manual, "Query and Projection Operators".
    static Result<Matcher> parse(bson::DocumentView filter);

    bool matches(bson::DocumentView document) const;

    /// True for {} and filters that reduce to it: every document matches.
    bool always_true() const;
    /// The value when the filter demands `_id` to equal one (no array, regex, null); then at most
    /// one document matches. Valid as long as this Matcher or a copy of it lives.
    std::optional<bson::ValueView> id_equality() const;
    /// Equalities an upsert takes over (contract 3.4): plain, $eq, $and of those, one-element $in
    /// and $all, one-branch $or. Errors: NotSingleValueField when two of them concern the same path
    /// or one path leads into another.
    Result<std::vector<RequiredEquality>> required_equalities() const;

    /// For `$` in update paths: the position of the first element of the array at `array_path` that
    /// a predicate of the filter on that array (or on fields below it) was met by; of several
    /// predicates the last one counts. `document` must match the filter.
    std::optional<std::uint32_t> matched_position(bson::DocumentView document,
                                                  const FieldPath& array_path) const;

    /// The expression tree, for the planner (filter/node.h).
    const filter::Node& root() const;
    bson::DocumentView source() const;

  private:
    struct State;
    explicit Matcher(std::shared_ptr<const State> state) : state_(std::move(state)) {}
    std::shared_ptr<const State> state_;  ///< shared by copies; never changes
};

/// A condition on one value rather than a document, as `$pull` and value-form `$elemMatch` use it:
/// an operator document
/// ({$gt: 3}) tests the value itself, a plain document tests the fields of the value when it is a
/// document, anything else is equality.
class ValueMatcher {
  public:
    static Result<ValueMatcher> parse(bson::ValueView condition);
    bool matches(bson::ValueView value) const;

  private:
    enum class Form { Operators, Fields, Equality };
    Form form_ = Form::Equality;
    Matcher matcher_;
    bson::Value operand_;
};

}  // namespace angelia::engine::query
