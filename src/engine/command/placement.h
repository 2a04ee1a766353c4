// Where a command runs: on the connection's own I/O thread, or on the engine's workers because it
// may look at many documents (design D7).
#pragma once

#include "engine/engine.h"

namespace angelia::engine::command {

inline constexpr std::int64_t kInlineDocumentsMax = 1'000;

/// A guess from what costs nothing to know: a filter on `_id` finds few documents, and a small
/// collection has few.
inline bool may_take_long(Engine& engine, const Namespace& ns, bson::DocumentView filter) {
    if (filter.has("_id")) return false;
    CountSpec everything;
    everything.ns = ns;
    const auto count = engine.count(everything);
    return count && *count > kInlineDocumentsMax;
}

}  // namespace angelia::engine::command
