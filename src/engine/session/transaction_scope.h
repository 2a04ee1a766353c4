// A write inside a transaction: evaluated on its own snapshot, with intents on what it changes.
#pragma once

#include "engine/collection/write_scope.h"
#include "engine/session/transaction.h"

namespace angelia::engine {

/// Holds the engine's apply mutex, so that what is compared with the newest state stays true until
/// the intents are taken. Not thread-safe.
class TransactionScope final : public WriteScope {
  public:
    TransactionScope(Core& core, Transaction& transaction);

    bson::Timestamp stamp() override;
    const storage::Reader& reader() const override { return t_.reader(); }
    bool sees_private_state() const override { return true; }
    bool changed() const override { return t_.changed(); }
    /// Since this scope began.
    std::size_t bytes() const override { return t_.bytes() - bytes_before_; }

    CollectionPtr collection(const Namespace& ns) const override { return t_.catalog()->find(ns); }
    /// Errors: NamespaceExists, DatabaseDifferCase, WriteConflict, SnapshotUnavailable.
    Result<CollectionPtr> create_collection(const Namespace& ns,
                                            const bson::Document& options) override;

    /// Indexes of a collection that this transaction made; for any other only those that exist are
    /// accepted. Errors: OperationNotSupportedInTransaction, those of catalog/index_build.h.
    Result<IndexBuild> create_indexes(const Namespace& ns, const std::vector<IndexSpec>& specs);

    Result<void> touch_collection(const Collection& collection) override;
    Result<void> touch_record(const Collection& collection, storage::RecordId record) override;
    Result<void> touch_unique(const Index& index, std::string_view encoded) override;

    storage::RecordId allocate_record(const CollectionPtr& collection) override;
    void put_record(const CollectionPtr& collection, storage::RecordId record,
                    std::string_view document, bool fresh) override;
    void erase_record(const CollectionPtr& collection, storage::RecordId record) override;
    void put_index_entry(const Index& index, std::string_view encoded,
                         storage::RecordId record) override;
    void erase_index_entry(const Index& index, std::string_view encoded,
                           storage::RecordId record) override;
    void count(const CollectionPtr& collection, std::int64_t documents,
               std::int64_t bytes) override;
    void mark_multikey(const CollectionPtr& collection, std::size_t index) override;

    /// After each write: the limits of one transaction and of all together. Errors:
    /// TransactionTooLarge, TransactionTooLargeForCache.
    Result<void> check_size();

  private:
    void append(OplogFields& fields) override;
    Result<void> take(std::string key, bool shared);
    void show(CollectionPtr changed);
    std::uint32_t next_id();

    std::unique_lock<std::mutex> lock_;
    Transaction& t_;
    const std::size_t bytes_before_;
};

}  // namespace angelia::engine
