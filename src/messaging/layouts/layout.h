// A layout is data: which collection holds what, how long a lock lives, which indexes there are. No
// store calls, no threads, no handlers.
#pragma once

#include <angelia/store/store.h>

#include <string>
#include <string_view>
#include <vector>

namespace angelia::messaging {

/// One layout applied to one queue.
struct LayoutNames {
    std::string implementation;  ///< as participants announce it
    std::string main;            ///< collection of messages
    std::string locks;
    std::string participants;
    std::vector<store::IndexDefinition> own_indexes;  ///< of `main`: what our queries use
    std::vector<store::IndexDefinition>
        morphium_indexes;  ///< of `main`: all that Java nodes create
    std::vector<store::IndexDefinition> lock_indexes;
};

/// Longest life of a lock that no message bounds.
inline constexpr milliseconds kUnboundLockLife = std::chrono::hours(24 * 7);  // Morphium's

}  // namespace angelia::messaging
