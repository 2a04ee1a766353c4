// What exists: databases, collections, indexes. An immutable view in memory that readers take and
// keep as long as they like; the apply section (collection/apply_scope.h) makes the next one. One
// document per collection in the meta family: docs/formats/storage.md.
#pragma once

#include "engine/collection/gap_cache.h"
#include "engine/engine.h"
#include "engine/query/planner.h"
#include "engine/storage/keys.h"

#include <atomic>
#include <map>
#include <mutex>

namespace angelia::engine {

inline constexpr std::size_t kIndexesMax = 64;  // MongoDB limit, including _id_

struct Index {
    storage::IndexId id = 0;
    IndexSpec spec;
    query::IndexKeyPattern pattern;
    std::optional<query::Matcher> partial;
    bool multikey = false;
    std::shared_ptr<GapCache> gaps =
        std::make_shared<GapCache>();  ///< shared by the versions of this index
};
using IndexPtr =
    std::shared_ptr<const Index>;  ///< shared by views and by readers that still walk it

/// The part of a collection that changes with every write; shared by all views that show it.
/// Written inside the apply section only.
struct LiveState {
    std::atomic<std::int64_t> count{0};
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::uint64_t> next_record{1};
    /// Advances after every commit that touched the collection: an unchanged version means that a
    /// search done outside still holds.
    std::atomic<std::uint64_t> version{0};
    GapCache record_gaps;
};

/// Immutable. Threads: may be shared.
struct Collection {
    Namespace ns;
    storage::CollectionId id = 0;
    Uuid uuid{};
    bson::Document options;
    bool keeps_images = false;      ///< what `options` say: oplog entries carry images of documents
    std::vector<IndexPtr> indexes;  ///< `_id_` first
    std::vector<query::IndexInfo> index_infos;  ///< the same for the planner, same order
    std::uint64_t index_generation =
        0;  ///< changes when indexes come or go (not with a multikey flag)
    std::shared_ptr<LiveState> live;  ///< shared by every view of this collection

    const Index& id_index() const { return *indexes.front(); }
    /// Position of the index of this name, or nothing.
    std::optional<std::size_t> index_named(std::string_view name) const;
};
using CollectionPtr =
    std::shared_ptr<const Collection>;  ///< shared by views, cursors and writes under way

/// Immutable once published. Threads: may be shared.
struct CatalogView {
    std::map<Namespace, CollectionPtr> collections;

    CollectionPtr find(const Namespace& ns) const;
    std::vector<CollectionPtr> in_database(std::string_view db) const;
    std::vector<std::string> databases() const;
    /// Errors: DatabaseDifferCase.
    Result<void> check_database_case(const std::string& db) const;
};
using CatalogViewPtr =
    std::shared_ptr<const CatalogView>;  ///< shared by the catalog and by who reads

/// The current view. Threads: safe.
class Catalog {
  public:
    /// Reads the catalog and the counters of every collection from the store.
    Result<void> load(const storage::Reader& reader);
    CatalogViewPtr view() const;
    void publish(CatalogViewPtr view);
    CollectionPtr find(const Namespace& ns) const { return view()->find(ns); }

    /// Ids of collections and indexes, never used twice. Apply section only.
    std::uint32_t next_id() const { return next_id_; }
    void set_next_id(std::uint32_t id) { next_id_ = id; }
    std::uint64_t next_generation() { return ++generation_; }

  private:
    mutable std::mutex mutex_;
    CatalogViewPtr view_ = std::make_shared<CatalogView>();  // guarded by mutex_
    // guarded by the apply section
    std::uint32_t next_id_ = 1;
    std::atomic<std::uint64_t> generation_{0};
};

// ---- making them

IndexSpec copy_spec(const IndexSpec& spec);
/// Errors: CannotCreateIndex, and those of the partial filter.
Result<IndexPtr> make_index(storage::IndexId id, const IndexSpec& spec, bool multikey);
IndexSpec id_index_spec();
/// The options ask for changeStreamPreAndPostImages.
bool wants_images(bson::DocumentView options);
std::shared_ptr<Collection> copy_collection(const Collection& collection);
/// Fills index_infos from indexes.
void refresh_index_infos(Collection& collection);
/// The spec as listIndexes shows it: {v, key, name, options as given}.
bson::Document index_document(const IndexSpec& spec);

// ---- stored form

std::string catalog_key(storage::CollectionId id);
std::string catalog_prefix();
std::string catalog_next_id_key();
std::string counter_key(storage::CollectionId id);
bson::Document encode_collection(const Collection& collection);
/// Errors: InternalError (damaged).
Result<std::shared_ptr<Collection>> decode_collection(bson::DocumentView stored);

struct Counters {
    std::int64_t count = 0;
    std::int64_t bytes = 0;
    std::uint64_t next_record = 1;
};
std::string encode_counters(const Counters& counters);
Counters decode_counters(std::string_view bytes);
std::string encode_u32(std::uint32_t v);

}  // namespace angelia::engine
