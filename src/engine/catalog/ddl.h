// Making and dropping collections and indexes. Each is one commit with its oplog entries; the
// answer waits for it like any write.
#pragma once

#include "engine/core.h"

namespace angelia::engine {

/// What a change of the catalog answers, and the position its answer must wait for.
template <class T>
struct Committed {
    T value{};
    storage::CommitPosition position;
};

/// All of this file may also answer a blocked_error() (session/intents.h) when a transaction has
/// changes there: call again, with the id of the waiter, when its turn has come.

/// Errors: NamespaceExists, InvalidNamespace, DatabaseDifferCase, and those of the commit (all of
/// this file). Threads: safe.
Result<Committed<bool>> create_collection(Core& core, const Namespace& ns,
                                          const bson::Document& options, WaiterId waiter = 0);
/// The number of indexes it had. Errors: NamespaceNotFound.
Result<Committed<std::int32_t>> drop_collection(Core& core, const Namespace& ns,
                                                WaiterId waiter = 0);
/// True when there was something to drop.
Result<Committed<bool>> drop_database(Core& core, const std::string& db, WaiterId waiter = 0);
/// Errors: CannotCreateIndex, IndexOptionsConflict, IndexKeySpecsConflict, DuplicateKey,
/// CannotIndexParallelArrays; then nothing is left behind.
Result<Committed<IndexBuild>> create_indexes(Core& core, const Namespace& ns,
                                             const std::vector<IndexSpec>& specs,
                                             WaiterId waiter = 0);
/// The number of indexes before. Errors: NamespaceNotFound, IndexNotFound, InvalidOptions (_id_).
Result<Committed<std::int32_t>> drop_indexes(Core& core, const Namespace& ns, bson::ValueView which,
                                             WaiterId waiter = 0);

}  // namespace angelia::engine
