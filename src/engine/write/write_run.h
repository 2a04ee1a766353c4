// One write request on its way through the apply section, in as many stays as its size asks for.
#pragma once

#include "engine/collection/apply_scope.h"
#include "engine/collection/records.h"
#include "engine/write/target_search.h"

#include <map>

namespace angelia::engine {

// One batch holds at most so much, so that a long list does not keep other writers out for long.
inline constexpr std::size_t kBatchWritesMax = 1000;
inline constexpr std::size_t kBatchBytesMax = std::size_t{8} << 20;
/// An atomic list must fit into one batch.
inline constexpr std::size_t kAtomicBytesMax = std::size_t{256} << 20;
/// Documents that a search may look at inside the section; what needs more is searched outside and
/// checked again inside.
inline constexpr std::size_t kExaminedInsideMax = 500;
/// So often a search outside is repeated because others changed the collection meanwhile; then it
/// is done inside.
inline constexpr int kSearchesOutsideMax = 3;
inline constexpr std::size_t kWritesMax = 100'000;  // MongoDB limit, maxWriteBatchSize

/// Not thread-safe; run() once.
class WriteRun {
  public:
    WriteRun(Core& core, WriteRequest request);
    /// The records a multi write is about, found already: it applies to those that still match.
    void set_targets(std::size_t write, Targets targets) { outside_[write] = std::move(targets); }

    /// Executes everything. An error refuses the rest of the request; outcomes of single writes
    /// carry their own errors. With a blocked_error() (session/intents.h) nothing of the present
    /// batch was applied: call again, with the id of the waiter, when its turn has come.
    Result<void> run(WaiterId waiter = 0);
    /// Documents that a transaction holds are left alone instead of waited for.
    void skip_held_records() { skip_held_ = true; }
    /// Behind the last change of the run, or the newest applied one when nothing changed: the
    /// answer must wait for it.
    storage::CommitPosition position() const { return position_; }
    std::vector<WriteOutcome> take_outcomes() { return std::move(outcomes_); }
    bool wait_durable() const { return request_.wait_durable && !request_.statement; }

  private:
    enum class Step { Finished, BatchFull, SearchOutside };
    struct Prepared {
        bool done = false;
        std::optional<Error> error;
        PreparedKeys keys;
    };
    /// A multi write that goes over several batches.
    struct Progress {
        Targets targets;
        std::size_t at = 0;
    };

    Result<void> check_request() const;
    void prepare(std::size_t from, std::size_t to);
    Result<Step> run_batch();
    Result<Step> run_batch_in_transaction();
    Result<void> run_plain();
    Result<void> run_in_transaction();
    void start_batch();
    void take_back_batch();
    Result<void> search_outside(std::size_t i);
    void fail_atomic(std::size_t i, Error error);
    void skip_rest();

    Result<Step> evaluate(WriteScope& scope, std::size_t i, PendingStatements& statements);
    Result<bool> answer_from_record(const storage::Reader& reader, std::size_t i);
    Result<void> evaluate_insert(WriteScope& scope, std::size_t i);
    Result<Step> evaluate_filtered(WriteScope& scope, std::size_t i);
    Result<Step> find_targets(WriteScope& scope, const CollectionPtr& collection, std::size_t i);
    bool usable(const Targets& targets, const Collection& collection,
                const ConditionalWrite& write) const;
    Result<void> apply_update(WriteScope& scope, std::size_t i, storage::RecordId record,
                              bson::DocumentView before);
    Result<void> apply_delete(WriteScope& scope, std::size_t i, storage::RecordId record,
                              bson::DocumentView before);
    Result<void> upsert(WriteScope& scope, std::size_t i);
    Result<void> need_collection(WriteScope& scope, const Namespace& ns);
    void remember(std::size_t i, PendingStatements& statements);

    WriteScope::RetryReference retry_reference(std::size_t i) const;
    std::int32_t stmt_id(std::size_t i) const;
    bool took_effect(std::size_t i) const;

    Core& core_;
    WriteRequest request_;
    std::vector<WriteOutcome> outcomes_;
    std::vector<Prepared> prepared_;
    std::size_t next_ = 0;
    std::size_t applied_in_batch_ = 0;
    std::map<std::size_t, Targets> outside_;
    std::optional<Progress> progress_;  ///< of the write at next_
    // What the batch under way began with, in case it has to be taken back.
    std::size_t batch_first_ = 0;
    std::optional<Progress> batch_progress_;
    std::int64_t batch_matched_ = 0, batch_modified_ = 0;  ///< of the write at batch_first_
    bool skip_held_ = false;
    WaiterId waiter_ = 0;
    int searches_ = 0;  ///< outside, of the write at next_ (or of an atomic list)
    storage::CommitPosition position_;
    std::string record_value_;  ///< reused
};

}  // namespace angelia::engine
