// The conditional writes that settle messages, as data. Pure: the Settler sends them.
#pragma once

#include "messaging/settle.h"

#include <array>

namespace angelia::messaging {

/// Writes of one settlement on the message collection: updates, or one deletion.
struct MessageWrites {
    std::vector<store::UpdateOp> updates;
    std::optional<store::DeleteOp> remove;
    bool counts = false;  ///< an exclusive message at least once: changing nothing means that
                          ///< somebody else holds it by now
};

/// `now_millis`: server time.
MessageWrites message_writes(const Context& context, const Settlement& settlement,
                             std::int64_t now_millis);

/// What becomes of the lock: deleted, or kept as the back-off's lease. Neither for messages without
/// one.
struct LockWrites {
    std::optional<store::DeleteOp> remove;
    std::optional<store::UpdateOp> update;
};
LockWrites lock_writes(const Context& context, const Settlement& settlement,
                       std::int64_t now_millis);

/// The writes of a batch in the order in which they are safe to stop after any: answers, messages,
/// locks; like ones side by side.
class SettleBulk {
  public:
    SettleBulk(const Context& context, std::int64_t now_millis)
        : context_(context), now_(now_millis) {}
    /// Answers come before all else. `owner`: who is told when one cannot be stored.
    void add_answers(const Settlement& settlement, std::size_t owner);
    void add_marks(const Settlement& settlement);
    std::vector<store::BulkOp> take();

    std::size_t answer_count() const { return owners_.size(); }
    std::size_t owner(std::size_t answer) const { return owners_[answer]; }
    struct Counts {
        std::int64_t marks = 0, deleted = 0;
        std::int64_t stale = 0;  ///< messages that turned out to be somebody else's by now
    };
    Counts count(const store::BulkResult& result) const;

  private:
    enum Stage : std::uint8_t { Answers, Updates, Deletes, LockUpdates, LockDeletes, Stages };
    struct Op {
        store::BulkOp op;
        bool counts = false;
    };
    void add(Stage stage, const store::CollectionName& collection, store::UpdateOp op, bool counts);
    void add(Stage stage, const store::CollectionName& collection, store::DeleteOp op, bool counts);

    const Context& context_;
    const std::int64_t now_;
    std::array<std::vector<Op>, Stages> stages_;
    std::vector<std::size_t> owners_;
    struct Place {
        Stage stage;
        bool counts;
    };
    std::vector<Place> places_;  ///< by position in the bulk
};

}  // namespace angelia::messaging
