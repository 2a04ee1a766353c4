// The document by which a node announces itself on its queue; who else is there, and whether they
// use the same layout.
#pragma once

#include "messaging/context.h"

#include <atomic>
#include <set>

namespace angelia::messaging {

/// announce() runs in start(), beat() on the background executor, withdraw() in stop(); never side
/// by side.
class Participants {
  public:
    explicit Participants(Context& context);

    /// Errors: ConflictingOperationInProgress (the id is alive on this queue), IllegalOperation
    /// (another layout, and the check says Refuse), those of the store.
    Result<void> announce();
    /// Heartbeat: own document, removal of long gone ones, check of newcomers, server time.
    void beat();
    void withdraw();
    /// Nodes of another make (no field of ours in their document) are alive here.
    bool foreign_nodes() const { return foreign_nodes_; }

  private:
    bson::Document document(std::int64_t now) const;
    bool alive(bson::DocumentView participant, std::int64_t now) const;
    Result<void> take_id(std::int64_t now);
    Result<void> check_others(std::int64_t now, bool at_start);
    bool announces() const {
        return context_.options.implementation_check != ImplementationCheck::Ignore;
    }

    Context& context_;
    const std::string instance_;  ///< this very object, among all that ever use the id
    std::int64_t started_at_ = 0;
    std::set<std::string> warned_;  ///< offenders, once each
    std::atomic<bool> foreign_nodes_{false};
};

}  // namespace angelia::messaging
