// From the port's operations to the engine's list of conditional writes, and back from outcomes to
// positions.
#pragma once

#include "engine/engine.h"

#include <angelia/store/store.h>

namespace angelia::store_embedded {

/// Errors: those of Matcher::parse and Update::parse.
Result<engine::ConditionalWrite> to_write(const engine::Namespace& ns, const store::UpdateOp& op);
Result<engine::ConditionalWrite> to_write(const engine::Namespace& ns, const store::DeleteOp& op);
engine::ConditionalWrite to_write(const engine::Namespace& ns, bson::DocumentView document);

/// A batch on its way: an operation that cannot be parsed is an error at its position, as one that
/// fails when it runs; in an ordered batch nothing behind it runs.
class WriteList {
  public:
    explicit WriteList(bool ordered) : ordered_(ordered) {}
    /// False when the batch ends here.
    bool add(std::size_t position, Result<engine::ConditionalWrite> write);
    bool empty() const { return writes_.empty(); }
    std::vector<engine::ConditionalWrite> take() { return std::move(writes_); }
    /// Position in the batch of the engine's write `i`.
    std::size_t position(std::size_t i) const { return positions_[i]; }
    /// All errors in the order of positions.
    std::vector<store::WriteError> errors(std::vector<engine::WriteOutcome>& outcomes);

  private:
    const bool ordered_;
    std::vector<engine::ConditionalWrite> writes_;
    std::vector<std::size_t> positions_;
    std::vector<store::WriteError> refused_;
};

}  // namespace angelia::store_embedded
