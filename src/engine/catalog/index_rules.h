// Which index specifications are allowed, and how a requested one stands to those that exist
// (contract 7.2).
#pragma once

#include "engine/catalog/catalog.h"

namespace angelia::engine {

/// Errors: CannotCreateIndex. Threads: safe.
Result<void> check_index_spec(const IndexSpec& spec);

/// The requested indexes that are new to the collection, in order; those that exist already are
/// left out. Errors: CannotCreateIndex, IndexOptionsConflict, IndexKeySpecsConflict. Threads: safe.
Result<std::vector<IndexSpec>> new_index_specs(const Collection& collection,
                                               const std::vector<IndexSpec>& requested);

/// The payload of the oplog entry of createIndexes or dropIndexes.
bson::Document indexes_payload(std::string_view command, const std::string& collection,
                               const std::vector<IndexSpec>& specs);

/// True when both patterns name the same fields in the same directions.
bool same_key_pattern(bson::DocumentView a, bson::DocumentView b);

}  // namespace angelia::engine
