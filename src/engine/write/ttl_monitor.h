// Deletes documents whose time is over (contract 7.3): by the wall clock, in small batches, through
// the ordinary write path.
#pragma once

#include "engine/core.h"

namespace angelia::engine {

inline constexpr std::size_t kTtlBatchMax = 500;  // design D5: batches that yield to writers

/// Threads: safe; one pass at a time.
class TtlMonitor {
  public:
    explicit TtlMonitor(Core& core) : core_(core) {}
    /// Looks at every TTL index once. Returns the number of documents deleted. Errors: those of the
    /// reader and of the commit.
    Result<std::int64_t> run_pass();

  private:
    Result<std::int64_t> expire(const CollectionPtr& collection, std::size_t index);
    Core& core_;
    std::mutex mutex_;  ///< held for a pass
};

}  // namespace angelia::engine
