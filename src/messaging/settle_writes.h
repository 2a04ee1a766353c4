// The conditional writes that settle a message, as data. Pure: the Settler sends them.
#pragma once

#include "messaging/settle.h"

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

}  // namespace angelia::messaging
