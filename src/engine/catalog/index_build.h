// The entries of new indexes over the documents that are there.
#pragma once

#include "engine/collection/apply_scope.h"

namespace angelia::engine {

struct BuiltIndexes {
    storage::CollectionId collection = 0;
    std::uint64_t version = 0;
    std::uint64_t index_generation = 0;
    struct Entries {
        std::vector<std::pair<std::string, storage::RecordId>> keys;  ///< sorted
        bool multikey = false;
    };
    std::vector<Entries> indexes;  ///< same order as the specifications

    /// True when nothing changed in the collection since the build read it.
    bool holds_for(const Collection& collection) const;
};

/// Errors: DuplicateKey (unique), CannotIndexParallelArrays, those of the reader. Threads: safe.
Result<BuiltIndexes> build_indexes(const storage::Reader& reader, const CollectionPtr& collection,
                                   const std::vector<IndexSpec>& specs);
/// The same on the newest state, without the section, for collections that are worth it; else
/// nothing.
Result<std::optional<BuiltIndexes>> build_outside(Core& core, const Namespace& ns,
                                                  const std::vector<IndexSpec>& requested);
/// Gives the indexes their ids, puts their entries and changes the catalog.
Result<void> install_indexes(ApplyScope& scope, const CollectionPtr& collection,
                             const std::vector<IndexSpec>& specs, const BuiltIndexes& built);

}  // namespace angelia::engine
