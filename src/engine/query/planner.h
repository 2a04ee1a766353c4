// Chooses how to find the candidates of a filter. The executor applies the filter again to every
// candidate, so a plan need only cover the matches; and it must not hand out a document twice (an
// index may hold several keys of one document).
#pragma once

#include "engine/query/key_encoding.h"
#include "engine/query/matcher.h"
#include "engine/query/sort.h"

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <span>
#include <string>
#include <vector>

namespace angelia::engine::query {

/// More intervals than this are replaced by one that covers them.
inline constexpr std::size_t kKeyRangesMax = 1000;

struct IndexInfo {
    std::string name;
    IndexKeyPattern pattern;
    bool unique = false;
    bool sparse = false;
    std::optional<Matcher> partial_filter;
    bool multikey =
        false;  ///< some document has (or had) several keys, or an array on the way of a field
    bool hidden = false;
    bool ready = true;  ///< built; an index under construction is not used
};

/// Encoded keys (append_key, field after field) from `lower` to before `upper`; an empty `upper`
/// has no end.
struct KeyRange {
    std::string lower;
    std::string upper;
    bool operator==(const KeyRange&) const = default;
};

struct Plan {
    enum class Kind {
        CollectionScan,  ///< record order
        IndexScan,       ///< `ranges` of `index`
        IdLookup,        ///< the one document whose _id equals Matcher::id_equality()
        Nothing,         ///< no document can match
    };
    Kind kind = Kind::CollectionScan;
    std::size_t index = 0;         ///< position in the list given to plan(), for IndexScan
    std::vector<KeyRange> ranges;  ///< in scan order, not overlapping
    bool reverse =
        false;  ///< walk backwards (each range, and `ranges` already stand in that order)
    bool provides_sort = false;  ///< candidates come in the asked order (first appearance of a
                                 ///< document counts): no sorting needed
    bool multikey = false;       ///< the executor must drop repeated documents
};

/// A hint: index name or key pattern; {$natural: ±1} asks for record order.
struct Hint {
    std::string name;  ///< empty: use `pattern`
    bson::Document pattern;
};

/// Never fails without a hint. A hinted sparse index is used as it is, also when it leaves out
/// matches (as MongoDB does); a hidden index cannot be hinted; a hinted partial index that does not
/// cover the query is BadValue. Errors: BadValue (`hint provided does not correspond to an existing
/// index`). Threads: safe.
Result<Plan> plan(const Matcher& matcher, const SortSpec* sort, std::span<const IndexInfo> indexes,
                  const Hint* hint = nullptr);

/// True when every document that matches `query` matches `condition` too, as far as can be seen
/// from their shape (never true by mistake).
bool implies(const Matcher& query, const Matcher& condition);

}  // namespace angelia::engine::query
