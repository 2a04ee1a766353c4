// One write request on its way through the apply section, in as many stays as its size asks for.
#pragma once

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
    /// carry their own errors.
    Result<void> run();
    /// Behind the last change of the run, or the newest applied one when nothing changed: the
    /// answer must wait for it.
    storage::CommitPosition position() const { return position_; }
    std::vector<WriteOutcome> take_outcomes() { return std::move(outcomes_); }
    bool wait_durable() const { return request_.wait_durable; }

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
    Result<void> search_outside(std::size_t i);
    void fail_atomic(std::size_t i, Error error);
    void skip_rest();

    Result<Step> evaluate(ApplyScope& scope, std::size_t i, PendingStatements& statements);
    Result<bool> answer_from_record(ApplyScope& scope, std::size_t i);
    Result<void> evaluate_insert(ApplyScope& scope, std::size_t i);
    Result<Step> evaluate_filtered(ApplyScope& scope, std::size_t i);
    Result<Step> find_targets(ApplyScope& scope, const CollectionPtr& collection, std::size_t i);
    bool usable(const Targets& targets, const Collection& collection,
                const ConditionalWrite& write) const;
    Result<void> apply_update(ApplyScope& scope, std::size_t i, storage::RecordId record,
                              bson::DocumentView before);
    Result<void> apply_delete(ApplyScope& scope, std::size_t i, storage::RecordId record,
                              bson::DocumentView before);
    Result<void> upsert(ApplyScope& scope, std::size_t i);
    Result<void> need_collection(ApplyScope& scope, const Namespace& ns);
    void remember(std::size_t i, PendingStatements& statements);

    ApplyScope::RetryReference retry_reference(std::size_t i) const;
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
    int searches_ = 0;                  ///< outside, of the write at next_ (or of an atomic list)
    storage::CommitPosition position_;
    std::string record_value_;  ///< reused
};

}  // namespace angelia::engine
