// The check behind the `validate` command: records against indexes and back, counters, and the
// oplog against the records.
#pragma once

#include "engine/core.h"

namespace angelia::engine {

/// The reply document, without `ok`. Reads one moment of the store. May take long: not for an I/O
/// thread. Errors: NamespaceNotFound, those of the reader.
Result<bson::Document> validate_collection(Core& core, const Namespace& ns);

}  // namespace angelia::engine
