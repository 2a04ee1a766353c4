// The proof at the end of the demo: what the store's records must show. Pure.
#pragma once

#include "cli/demo_records.h"

namespace angelia::cli::demo {

struct Proof {
    std::size_t broadcasts = 0, work = 0, requests = 0;  ///< published
    std::size_t effects = 0;
    std::size_t later_attempts = 0;       ///< executions beyond the first attempt
    std::size_t missing = 0;              ///< executions or answers that have not come (yet)
    std::vector<std::string> violations;  ///< empty: everything holds; at most 20 are spelled out
    std::size_t violation_count = 0;
    bool holds() const { return violation_count == 0; }
};

/// - every broadcast has exactly one effect per broadcast listener;
/// - every work message has at least one effect, at most one per attempt, and an attempt beyond the
/// first only where the holder before it
///   was killed or its lease had run out;
/// - every request has exactly one effect and was answered;
/// - no effect is of a message that was not published.
Proof check(const Records& records);

}  // namespace angelia::cli::demo
