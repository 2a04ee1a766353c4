// One stay in the apply section, and what the engine publishes with it: counters, catalog, oplog
// entries. Nothing is visible and nothing is kept unless commit() succeeds.
#pragma once

#include "engine/core.h"

#include <set>

namespace angelia::engine {

/// Not thread-safe; lives on one thread, briefly. Holds the engine's apply mutex from construction
/// to destruction.
class ApplyScope {
  public:
    explicit ApplyScope(Core& core);
    ~ApplyScope();
    ApplyScope(const ApplyScope&) = delete;
    ApplyScope& operator=(const ApplyScope&) = delete;

    Core& core() { return core_; }
    storage::ApplySection& section() { return *section_; }
    bson::Date wall() const { return wall_; }
    /// In an atomic scope all oplog entries share the time of the end of the scope.
    void make_atomic() { atomic_ = true; }

    // -- catalog
    const CatalogView& view() const { return *view_; }
    CollectionPtr collection(const Namespace& ns) const { return view_->find(ns); }
    /// Writes the collection with its _id index and the oplog entry.
    /// Errors: NamespaceExists, DatabaseDifferCase.
    Result<CollectionPtr> create_collection(const Namespace& ns, const bson::Document& options);
    /// Replaces a collection by a changed one (same id); `after_commit` when readers must not see
    /// it before its data is there.
    void replace_collection(std::shared_ptr<Collection> changed, bool after_commit);
    /// Takes a collection out of the catalog and erases its data, without an oplog entry.
    void erase_collection(const CollectionPtr& collection);
    std::uint32_t next_id();

    // -- counters
    storage::RecordId allocate_record(const CollectionPtr& collection);
    void count(const CollectionPtr& collection, std::int64_t documents, std::int64_t bytes);
    /// Says that a key is about to be put where readers remember gaps. Every key of a record or an
    /// index entry, before it is put.
    void will_live(const std::shared_ptr<GapCache>& gaps, std::string_view key);
    /// Remembers that a document has several keys in an index.
    void mark_multikey(const CollectionPtr& collection, std::size_t index);

    // -- oplog
    struct RetryReference {
        bson::DocumentView lsid;
        std::int64_t txn_number = 0;
        std::int32_t stmt_id = -1;
    };
    void log(OpKind kind, const Collection& collection, bson::ValueView id,
             bson::DocumentView payload, const RetryReference& retry);
    void log_command(const std::string& db, const std::string& collection, std::uint32_t id,
                     const Uuid& uuid, bson::DocumentView payload);
    /// A time for values in documents and for record headers: not greater than the oplog entry that
    /// follows.
    bson::Timestamp stamp() { return section_->next_timestamp(); }

    // -- undoing one write of a list
    struct Mark;
    std::unique_ptr<Mark> mark();
    void rollback(const Mark& mark);

    std::size_t bytes() const { return section_->bytes(); }
    bool changed() const { return changed_; }
    /// Puts what hangs on the batch (counters, catalog, retry record), writes it, publishes. Call
    /// once; then only destroy. Errors: those of ApplySection::commit, InternalError.
    Result<storage::CommitPosition> commit(const RetryKey* retry, PendingStatements statements);

  private:
    struct Pending {
        CollectionPtr collection;
        Counters counters;
    };
    Pending& pending(const CollectionPtr& collection);
    void append(std::shared_ptr<const std::string> entry);
    Result<void> finish_batch(const RetryKey* retry, PendingStatements statements);

    Core& core_;
    std::unique_lock<std::mutex> lock_;
    std::unique_ptr<storage::ApplySection> section_;
    bson::Date wall_;
    CatalogViewPtr base_view_;   ///< published when the scope began
    CatalogViewPtr view_;        ///< as this scope sees it
    CatalogViewPtr early_view_;  ///< without changes that must wait for the commit
    std::uint32_t next_id_;
    std::vector<Pending> pending_;
    std::set<storage::CollectionId> catalog_dirty_;
    std::vector<std::shared_ptr<const std::string>> atomic_entries_;
    std::vector<std::shared_ptr<GapCache>> touched_gaps_;
    bool atomic_ = false;
    bool changed_ = false;
};

struct ApplyScope::Mark {
    std::size_t section = 0;
    std::size_t bytes = 0;
    CatalogViewPtr view, early_view;
    std::uint32_t next_id = 0;
    std::vector<Pending> pending;
    std::set<storage::CollectionId> catalog_dirty;
    std::size_t atomic_entries = 0;
    bool changed = false;
};

}  // namespace angelia::engine
