// The table of commands: one row per command, each defined in the file of its name.
#pragma once

#include "engine/command/call.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace angelia::engine::command {

enum CommandFlags : std::uint32_t {
    kNoFlags = 0,
    kAdminOnly = 1u << 0,  ///< only on database `admin`
    kWrites = 1u << 1,     ///< takes a writeConcern
    kRetryable = 1u << 2,  ///< takes lsid and txnNumber as a retryable write
    kReads = 1u << 3,      ///< takes a readConcern of any level
    kAnyFields = 1u << 4,  ///< unknown fields are no error
    kTestOnly = 1u << 5,   ///< exists only with test commands enabled
    kLong = 1u << 6,  ///< may take more than a millisecond: runs on the engine's workers, not on
                      ///< the I/O thread
    kDuringShutdown = 1u << 7,    ///< also answered while the server shuts down
    kApiVersion1 = 1u << 8,       ///< part of the versioned API
    kInTransaction = 1u << 9,     ///< allowed within a transaction
    kEndsTransaction = 1u << 10,  ///< commitTransaction, abortTransaction
    kSnapshotReads = 1u << 11,    ///< takes readConcern "snapshot" outside of a transaction
};

/// Answers the call, now or later, or returns the error to answer with.
using Handler = Result<void> (*)(const CallPtr& call);

struct CommandEntry {
    std::string_view name{};
    std::array<std::string_view, 2> aliases{};  ///< other spellings
    Handler handler = nullptr;
    std::span<const std::string_view> fields{};  ///< beside the generic arguments
    std::uint32_t flags = 0;
    std::string_view help{};

    bool has(CommandFlags flag) const { return (flags & flag) != 0; }
};

/// Sorted by name. Threads: safe.
std::span<const CommandEntry* const> command_table();
/// By name or alias; nullptr when there is none.
const CommandEntry* find_command(std::string_view name);
/// Position in command_table(), for counters; behind its end for an entry that is not in it.
std::size_t command_index(const CommandEntry& entry);

}  // namespace angelia::engine::command
