// A plan for a filter on a collection as it is now, with the hint as commands give it.
#pragma once

#include "engine/catalog/catalog.h"

namespace angelia::engine {

/// `hint`: missing, an index name or a key pattern. Errors: BadValue (no such index), FailedToParse
/// (a hint of another type). Threads: safe.
Result<query::Plan> choose_plan(const Collection& collection, const query::Matcher& matcher,
                                const query::SortSpec* sort, bson::ValueView hint);

}  // namespace angelia::engine
