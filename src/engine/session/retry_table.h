// Which statements of retryable writes were executed (contract 6.5): found again after a crash
// because each record is written in the batch of the write itself. One head record per session,
// more records for long lists, and images of findAndModify in keys of their own.
#pragma once

#include "engine/engine.h"

#include <list>
#include <map>
#include <unordered_map>

namespace angelia::engine {

inline constexpr std::size_t kRetrySessionsCachedMax = 20'000;
inline constexpr milliseconds kRetryIdle{30 * 60 * 1000};  // contract 6.5: kept at least 30 min

/// What one executed statement answered.
struct StatementResult {
    std::int32_t stmt_id = 0;
    std::int64_t matched = 0;
    std::int64_t modified = 0;
    bson::Value upserted_id;
    bool has_image = false;
};

/// Statements of one write under way; thrown away when its batch is.
struct PendingStatements {
    std::vector<StatementResult> results;
    std::vector<std::pair<std::int32_t, bson::Document>> images;  ///< by statement
    bool committed_transaction = false;  ///< the number is that of a transaction, committed now
    bool empty() const { return results.empty() && !committed_transaction; }
};

/// The newest number that left a record in a session.
struct LastTransaction {
    std::int64_t txn_number = -1;        ///< -1 = none
    bool committed_transaction = false;  ///< else a retryable write
};

/// Not thread-safe: only inside the apply section.
class RetryTable {
  public:
    Result<LastTransaction> last(const storage::Reader& reader, const bson::Document& lsid);
    /// Errors: TransactionTooOld when the session has gone on to a greater number,
    /// NoSuchTransaction when the number is that of a transaction.
    Result<void> check(const storage::Reader& reader, const RetryKey& key);
    /// The result of a statement of exactly this transaction number, or nothing. Valid until the
    /// next call.
    Result<const StatementResult*> find(const storage::Reader& reader, const RetryKey& key,
                                        std::int32_t stmt_id);
    Result<std::optional<bson::Document>> image(const storage::Reader& reader, const RetryKey& key,
                                                std::int32_t stmt_id);

    /// Puts the statements into the section's batch, and into memory. When the commit fails call
    /// forget(): they are read from the store again.
    Result<void> record(storage::ApplySection& section, const RetryKey& key,
                        PendingStatements statements, bson::Date now);
    void forget(const RetryKey& key);

    /// Removes up to `limit` records unused for kRetryIdle; continues where the last call ended.
    /// Returns how many.
    Result<std::size_t> sweep(storage::ApplySection& section, bson::Date now, std::size_t limit);
    std::size_t cached() const { return sessions_.size(); }

  private:
    struct Session {
        std::int64_t txn_number = -1;
        bool committed_transaction = false;
        std::map<std::int32_t, StatementResult> statements;
        std::size_t head_statements = 0;  ///< how many stand in the head record
        std::int32_t more_records = 0;
        std::list<std::string>::iterator age;
    };
    Result<Session*> load(const storage::Reader& reader, const RetryKey& key);
    void erase_stored(storage::ApplySection& section, const std::string& lsid,
                      const Session& session);

    std::unordered_map<std::string, Session> sessions_;  ///< by the bytes of lsid
    std::list<std::string> ages_;                        ///< most recently used first
    std::string sweep_at_;
};

}  // namespace angelia::engine
