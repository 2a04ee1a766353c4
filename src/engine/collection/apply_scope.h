// One stay in the apply section, and what the engine publishes with it: counters, catalog, oplog
// entries. Nothing is visible and nothing is kept unless commit() succeeds.
#pragma once

#include "engine/collection/write_scope.h"

#include <set>

namespace angelia::engine {

/// Not thread-safe; lives on one thread, briefly. Holds the engine's apply mutex from construction
/// to destruction.
class ApplyScope final : public WriteScope {
  public:
    /// `waiter`: who runs again after it was blocked (intents.h); 0 = nobody.
    explicit ApplyScope(Core& core, WaiterId waiter = 0);
    ~ApplyScope() override;

    storage::ApplySection& section() { return *section_; }
    const storage::Reader& reader() const override { return *section_; }
    bool sees_private_state() const override { return false; }
    /// In an atomic scope all oplog entries share the time of the end of the scope.
    void make_atomic() { atomic_ = true; }

    // -- catalog
    const CatalogView& view() const { return *view_; }
    CollectionPtr collection(const Namespace& ns) const override { return view_->find(ns); }
    /// Writes the collection with its _id index and the oplog entry.
    /// Errors: NamespaceExists, DatabaseDifferCase, a blocked_error().
    Result<CollectionPtr> create_collection(const Namespace& ns,
                                            const bson::Document& options) override;
    /// Puts a collection that a transaction made, without an oplog entry.
    void adopt_collection(const CollectionPtr& made);
    /// For changes of the catalog. Errors: a blocked_error() while a transaction has changes in the
    /// collection.
    Result<void> need_collection_free(const Collection& collection);
    /// Replaces a collection by a changed one (same id).
    void replace_collection(std::shared_ptr<Collection> changed);
    /// Takes a collection out of the catalog and erases its data, without an oplog entry.
    void erase_collection(const CollectionPtr& collection);
    /// The collection goes on under another name that is free, without an oplog entry.
    /// Errors: DatabaseDifferCase.
    Result<void> rename_collection(const CollectionPtr& collection, const Namespace& to);
    std::uint32_t next_id();

    // -- one write of a document
    Result<void> touch_collection(const Collection&) override { return {}; }
    Result<void> touch_record(const Collection& collection, storage::RecordId record) override;
    Result<void> touch_unique(const Index& index, std::string_view encoded) override;
    storage::RecordId allocate_record(const CollectionPtr& collection) override {
        return allocate_records(collection, 1);
    }
    /// The first of `count` ids in a row.
    storage::RecordId allocate_records(const CollectionPtr& collection, std::uint64_t count);
    void put_record(const CollectionPtr& collection, storage::RecordId record,
                    std::string_view document, bool fresh) override;
    void erase_record(const CollectionPtr& collection, storage::RecordId record) override;
    void put_index_entry(const Index& index, std::string_view encoded,
                         storage::RecordId record) override;
    void erase_index_entry(const Index& index, std::string_view encoded,
                           storage::RecordId record) override;
    void count(const CollectionPtr& collection, std::int64_t documents,
               std::int64_t bytes) override;
    /// Says that a key is about to be put where readers remember gaps. Every key of a record or an
    /// index entry, before it is put.
    void will_live(const std::shared_ptr<GapCache>& gaps, std::string_view key);
    /// Remembers that a document has several keys in an index.
    void mark_multikey(const CollectionPtr& collection, std::size_t index) override;

    // -- oplog
    /// A time for values in documents and for record headers: not greater than the oplog entry that
    /// follows.
    bson::Timestamp stamp() override { return section_->next_timestamp(); }
    /// Adds an entry that is encoded already.
    void append_encoded(std::shared_ptr<const std::string> entry);

    // -- undoing one write of a list
    struct Mark;
    std::unique_ptr<Mark> mark();
    void rollback(const Mark& mark);

    std::size_t bytes() const override { return section_->bytes(); }
    bool changed() const override { return changed_; }
    /// Puts what hangs on the batch (counters, catalog, retry record), writes it, publishes. Call
    /// once; then only destroy. Errors: those of ApplySection::commit, InternalError.
    Result<storage::CommitPosition> commit(const RetryKey* retry, PendingStatements statements);

  private:
    struct Pending {
        CollectionPtr collection;
        Counters counters;
    };
    Pending& pending(const CollectionPtr& collection);
    void append(OplogFields& fields) override;
    Result<void> need_free(std::string key);
    Result<void> finish_batch(const RetryKey* retry, PendingStatements statements);

    std::unique_lock<std::mutex> lock_;
    std::unique_ptr<storage::ApplySection> section_;
    WaiterId waiter_;
    CatalogViewPtr base_view_;  ///< published when the scope began
    CatalogViewPtr view_;       ///< as this scope sees it
    std::uint32_t next_id_;
    std::vector<Pending> pending_;
    std::set<storage::CollectionId> catalog_dirty_;
    std::vector<std::shared_ptr<const std::string>> atomic_entries_;
    const std::uint64_t sequence_;     ///< of the commit, if there is one
    const std::uint64_t oldest_view_;  ///< what reads that begin now see, or something older
    bool atomic_ = false;
    bool changed_ = false;
};

struct ApplyScope::Mark {
    std::size_t section = 0;
    std::size_t bytes = 0;
    CatalogViewPtr view;
    std::uint32_t next_id = 0;
    std::vector<Pending> pending;
    std::set<storage::CollectionId> catalog_dirty;
    std::size_t atomic_entries = 0;
    bool changed = false;
};

}  // namespace angelia::engine
