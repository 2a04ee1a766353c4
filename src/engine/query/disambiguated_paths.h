// Dotted paths of a change that could be read in more than one way, taken apart (contract 5.2).
#pragma once

#include "engine/query/update.h"

namespace angelia::engine::query {

/// path -> its components, for every path of `description` that has a dot inside a name or a name
/// that looks like an array's index: names are strings, indexes of arrays int32. Empty for most
/// updates. `before` and `after` are the document around the update. Threads: safe.
bson::Document disambiguated_paths(const UpdateDescription& description, bson::DocumentView before,
                                   bson::DocumentView after);

}  // namespace angelia::engine::query
