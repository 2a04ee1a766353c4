// What a write changes the store through: the apply section of a plain write (apply_scope.h), or
// the private changes of a transaction (session/transaction_scope.h). One way of evaluating writes
// runs over both.
#pragma once

#include "engine/core.h"

namespace angelia::engine {

/// Not thread-safe; lives on one thread, briefly. Every implementation holds the engine's apply
/// mutex for as long as it lives.
class WriteScope {
  public:
    virtual ~WriteScope();
    WriteScope(const WriteScope&) = delete;
    WriteScope& operator=(const WriteScope&) = delete;

    Core& core() { return core_; }
    bson::Date wall() const { return wall_; }
    /// A time for values in documents: not greater than the oplog entry that follows.
    virtual bson::Timestamp stamp() = 0;

    /// What this write sees, with its own changes.
    virtual const storage::Reader& reader() const = 0;
    /// True when nobody else changes what reader() shows for as long as the write runs: what was
    /// searched outside of the scope still holds.
    virtual bool sees_private_state() const = 0;
    /// True when something was put that reader() shows above the stored state.
    virtual bool changed() const = 0;
    virtual std::size_t bytes() const = 0;

    // -- catalog
    virtual CollectionPtr collection(const Namespace& ns) const = 0;
    /// Errors: NamespaceExists, DatabaseDifferCase, and those of touching.
    virtual Result<CollectionPtr> create_collection(const Namespace& ns,
                                                    const bson::Document& options) = 0;

    // -- permission, asked before a change is evaluated
    /// Called before a collection's first change. Errors: as touch_record, SnapshotUnavailable.
    virtual Result<void> touch_collection(const Collection& collection) = 0;
    /// Called for every record that is changed or removed. Errors: a blocked_error() (intents.h)
    /// for a plain write when a transaction holds it, WriteConflict for a transaction.
    virtual Result<void> touch_record(const Collection& collection, storage::RecordId record) = 0;
    /// The same for every key of a unique index that is added or removed.
    virtual Result<void> touch_unique(const Index& index, std::string_view encoded) = 0;

    // -- changes
    virtual storage::RecordId allocate_record(const CollectionPtr& collection) = 0;
    /// `fresh`: the record is new, not changed.
    virtual void put_record(const CollectionPtr& collection, storage::RecordId record,
                            std::string_view document, bool fresh) = 0;
    virtual void erase_record(const CollectionPtr& collection, storage::RecordId record) = 0;
    virtual void put_index_entry(const Index& index, std::string_view encoded,
                                 storage::RecordId record) = 0;
    virtual void erase_index_entry(const Index& index, std::string_view encoded,
                                   storage::RecordId record) = 0;
    virtual void count(const CollectionPtr& collection, std::int64_t documents,
                       std::int64_t bytes) = 0;
    /// Remembers that a document has several keys in an index.
    virtual void mark_multikey(const CollectionPtr& collection, std::size_t index) = 0;

    // -- oplog
    struct RetryReference {
        bson::DocumentView lsid;
        std::int64_t txn_number = 0;
        std::int32_t stmt_id = -1;
    };
    /// The document before and after, for collections that keep images; empty = not kept.
    struct Images {
        bson::DocumentView before{}, after{};
    };
    void log(OpKind kind, const Collection& collection, bson::ValueView id,
             bson::DocumentView payload, const RetryReference& retry, const Images& images);
    void log_command(const std::string& db, const std::string& collection, std::uint32_t id,
                     const Uuid& uuid, bson::DocumentView payload);

  protected:
    explicit WriteScope(Core& core) : core_(core), wall_{core.clock().system_millis()} {}
    /// Once the lock is held: how long others are kept out is measured from here.
    void entered() { entered_ = std::chrono::steady_clock::now(); }
    virtual void append(OplogFields& fields) = 0;

    Core& core_;
    bson::Date wall_;

  private:
    std::chrono::steady_clock::time_point entered_{};
};

/// A new collection with its `_id` index, in memory only. Ids from `next_id`.
Result<std::shared_ptr<Collection>> make_collection(Core& core, const Namespace& ns,
                                                    const bson::Document& options,
                                                    const std::function<std::uint32_t()>& next_id);
/// The payload of its oplog entry.
bson::Document create_payload(const Collection& collection);
/// The collection with one index flagged as having several keys for a document.
std::shared_ptr<Collection> with_multikey(const Collection& collection, std::size_t index);
/// The key of an entry of this index.
std::string index_entry_key(const Index& index, std::string_view encoded, storage::RecordId record);

}  // namespace angelia::engine
