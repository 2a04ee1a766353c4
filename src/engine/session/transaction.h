// One open transaction: a snapshot, the private changes on it, and what they need to become one
// commit. Its statements run one after another; what is known of it between them is the session
// table's (session_table.h).
#pragma once

#include "engine/read_view.h"
#include "engine/session/intents.h"

#include <map>

namespace angelia::engine {

struct Core;

inline constexpr std::size_t kTransactionBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kTransactionsBytesMax = std::size_t{256} << 20;  ///< all together
/// Ids of records that a transaction inserted, until the commit gives them their place behind all
/// others: above every real id, in the order of insertion.
inline constexpr storage::RecordId kProvisionalRecord = storage::RecordId{1} << 63;

/// Not thread-safe: used by the statement that has checked it out, or by who ends it.
class Transaction {
  public:
    /// `view`: what it reads. `key`: its session and number.
    Transaction(Core& core, RetryKey key, TransactionId id, ReadView view);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    const RetryKey& key() const { return key_; }
    TransactionId id() const { return id_; }
    /// The last commit that it sees.
    storage::CommitPosition position() const { return position_; }
    /// The snapshot with its own changes.
    const storage::Reader& reader() const { return *reader_; }
    /// The catalog of the snapshot with its own changes.
    const CatalogViewPtr& catalog() const { return catalog_; }
    /// The collection as the transaction sees it; nothing when there is none. Errors:
    /// SnapshotUnavailable when the catalog has changed there since the snapshot.
    Result<CollectionPtr> collection(const Namespace& ns) const;
    bool changed() const { return !entries_.empty(); }
    std::size_t bytes() const { return workspace_->bytes() + entry_bytes_; }

    /// Writes everything in one batch, with the session's record. In no apply section yet. Errors:
    /// those of ApplyScope::commit; then nothing was applied.
    Result<storage::CommitPosition> commit();
    /// Exchanges the snapshot while nothing is changed.
    void read_from(ReadView view);
    /// Lets its intents go. Call once, whatever became of it, outside of apply sections.
    void release_intents();

  private:
    friend class TransactionScope;
    struct Pending {
        CollectionPtr collection;
        std::int64_t documents = 0, bytes = 0;
        std::uint64_t inserted = 0;         ///< provisional ids given out
        bool created = false;               ///< by this transaction
        std::vector<std::size_t> multikey;  ///< indexes found to have several keys for a document
    };
    Pending& pending(const CollectionPtr& collection);

    Core& core_;
    const RetryKey key_;
    const TransactionId id_;
    CatalogViewPtr catalog_;
    std::unique_ptr<storage::Workspace> workspace_;
    std::unique_ptr<storage::Reader> mutant_reader_;  ///< only with IndexChangesIgnored
    const storage::Reader* reader_ = nullptr;
    storage::CommitPosition position_;
    std::map<storage::CollectionId, Pending> pending_;
    std::vector<std::shared_ptr<const std::string>> entries_;  ///< of the oplog, in order
    std::size_t entry_bytes_ = 0;
    std::size_t counted_bytes_ = 0;  ///< in the engine's sum
    std::vector<std::string> intents_;
};

}  // namespace angelia::engine
