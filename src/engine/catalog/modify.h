// Changes of what exists without its data: the options of a collection or of an index (collMod),
// and a collection's name. Each is one commit with one oplog entry.
#pragma once

#include "engine/catalog/ddl.h"

namespace angelia::engine {

/// What was there before. Errors: NamespaceNotFound, IndexNotFound, InvalidOptions and BadValue (a
/// change that this index cannot take). Threads: safe.
Result<Committed<CollectionChanged>> modify_collection(Core& core, const Namespace& ns,
                                                       const CollectionChange& change,
                                                       WaiterId waiter);

/// Gives the collection another name, also in another database; its data is not touched. Errors:
/// NamespaceNotFound, NamespaceExists, IllegalOperation (to itself), InvalidNamespace,
/// DatabaseDifferCase. Threads: safe.
Result<Committed<bool>> rename_collection(Core& core, const Namespace& from, const Namespace& to,
                                          const RenameOptions& options, WaiterId waiter);

}  // namespace angelia::engine
