// An update document, parsed once and applied to many documents: operator form or replacement.
#pragma once

#include "engine/query/matcher.h"

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>
#include <angelia/bson/document.h>

#include <functional>
#include <memory>
#include <optional>

namespace angelia::engine::query {

struct UpdateOptions {
    std::optional<bson::DocumentView> array_filters;  ///< the array of the command, if given
    bool multi = false;
    bool upsert = false;
};

/// What an update needs to know of the moment it is applied in.
struct ApplyContext {
    bool is_insert = false;          ///< an upsert builds a new document: $setOnInsert acts
    bson::Date now{};                ///< $currentDate as date
    bson::Timestamp timestamp{};     ///< $currentDate as timestamp
    const Matcher* query = nullptr;  ///< the filter that found the document: `$` in paths asks
                                     ///< which element matched; outlives the call
};

/// The effect of an operator update in the terms of a change event (contract 5.2).
struct UpdateDescription {
    bson::Document updated_fields;  ///< dotted path -> new value
    bson::Array removed_fields;     ///< dotted paths
    bson::Array truncated_arrays;   ///< {field, newSize}
};

struct UpdateOutcome {
    bool modified = false;          ///< the bytes changed; false: store nothing, log nothing
    bson::Document document;        ///< the document after the update (also when not modified)
    UpdateDescription description;  ///< empty for replacements
};

/// Immutable after parse; owns a copy of the update's bytes; copies share it. Threads: safe.
class Update {
  public:
    /// `source`: Document (operators or replacement) or Array (pipeline).
    /// Errors: FailedToParse (mixed forms, replacement with multi, unknown operator, unused array
    /// filter), BadValue (operands, array filters), TypeMismatch, ConflictingUpdateOperators,
    /// DollarPrefixedFieldName, EmptyFieldName, NotImplemented (pipeline). Source: MongoDB manual,
    /// "Update Operators".
    static Result<Update> parse(bson::ValueView source, const UpdateOptions& options = {});
    static Result<Update> parse(bson::DocumentView source, const UpdateOptions& options = {});

    /// Applies to `document`; empty Timestamps of a replacement are left to the caller
    /// (fill_empty_timestamps). Errors: ConflictingUpdateOperators (two positional paths that turn
    /// out to be one), ImmutableField, PathNotViable, TypeMismatch, BadValue, CannotBackfillArray,
    /// BSONObjectTooLarge, Overflow.
    Result<UpdateOutcome> apply(bson::DocumentView document, const ApplyContext& context) const;

    /// The document an upsert inserts when nothing matched `query`: `_id` first, generated when
    /// neither side names one. Errors: as apply, and NotSingleValueField.
    Result<bson::Document> make_upsert(const Matcher& query, const ApplyContext& context) const;

    bool is_replacement() const;
    bson::ValueView source() const;

  private:
    struct State;
    explicit Update(std::shared_ptr<const State> state) : state_(std::move(state)) {}
    std::shared_ptr<const State> state_;  ///< shared by copies; never changes
};

/// Checks `_id` of a document to be stored: not array, regex or undefined (InvalidIdField), no `$`
/// names inside (DollarPrefixedFieldName).
Result<void> check_id(bson::ValueView id);

/// True when a top-level field other than `_id` holds Timestamp(0, 0): the server fills it on
/// insert and replacement.
bool has_empty_timestamp(bson::DocumentView document);
/// A copy in which each such field holds the next value of `next`, in field order.
bson::Document fill_empty_timestamps(bson::DocumentView document,
                                     const std::function<bson::Timestamp()>& next);

}  // namespace angelia::engine::query
