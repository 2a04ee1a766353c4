// One moment of the engine as reads see it: the store and the catalog that belong together.
#pragma once

#include "engine/catalog/catalog.h"

namespace angelia::engine {

struct Core;

/// Keeps old versions alive: hold it briefly. Threads: may be shared.
struct ReadView {
    storage::SnapshotPtr snapshot;
    CatalogViewPtr catalog;
    storage::CommitPosition position;  ///< the last commit in it

    CollectionPtr find(const Namespace& ns) const { return catalog->find(ns); }
};

/// Counters of a collection as they are in what `reader` reads.
Result<Counters> read_counters(const storage::Reader& reader, storage::CollectionId collection);

/// What the engine attached to it is the catalog.
ReadView read_view(storage::View view);

/// The newest moment that can no longer be taken away: what every read sees that is not bound to an
/// older one.
ReadView current_view(Core& core);

/// What a whole read stays with, over all its batches: a snapshot, or a transaction.
class PinnedView {
  public:
    virtual ~PinnedView() = default;
    virtual const storage::Reader& reader() const = 0;
    /// Errors: SnapshotUnavailable (transactions), SnapshotTooOld (kept longer than allowed).
    virtual Result<CollectionPtr> collection(const Namespace& ns) const = 0;
    /// Nothing for a transaction, whose replies name no time.
    virtual std::optional<bson::Timestamp> time() const = 0;
};
using PinnedViewPtr = std::shared_ptr<const PinnedView>;  ///< shared by cursor and source

PinnedViewPtr pin(Core& core, ReadView view);

}  // namespace angelia::engine
