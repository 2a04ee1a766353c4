// `$`, `$[]` and `$[identifier]` in update paths: they become plain paths once the document is
// known.
#pragma once

#include "engine/query/update.h"
#include "engine/query/update/operator.h"

#include <string>
#include <string_view>
#include <vector>

namespace angelia::engine::query::update {

/// "$", "$[]", "$[name]".
bool is_positional_part(std::string_view part);
bool is_positional(const FieldPath& path);

/// The arrayFilters of an update. Immutable after parse.
class ArrayFilters {
  public:
    /// Errors: BadValue (bad identifier), FailedToParse (no or several identifiers in one filter,
    /// one identifier twice), TypeMismatch.
    static Result<ArrayFilters> parse(std::optional<bson::DocumentView> filters);
    bool empty() const { return filters_.empty(); }

    /// Every identifier of the paths has a filter (else BadValue), every filter is used (else
    /// FailedToParse).
    Result<void> check_use(const std::vector<Operation>& operations,
                           bson::DocumentView update) const;
    bool matches(std::string_view identifier, bson::ValueView element) const;

  private:
    struct Filter {
        std::string identifier;
        Matcher matcher;  ///< asks about {<identifier>: element}
    };
    const Filter* find(std::string_view identifier) const;
    std::vector<Filter> filters_;
};

/// The plain paths that `path` means in `document`, possibly none.
/// Errors: BadValue (no element matched, no array there, path missing).
Result<std::vector<FieldPath>> resolve_path(const FieldPath& path, bson::DocumentView document,
                                            const ArrayFilters& filters, const Matcher* query);

}  // namespace angelia::engine::query::update
