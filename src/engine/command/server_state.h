// What all commands of one server share beside the engine: hello's topology version, fail points,
// counters.
#pragma once

#include "engine/command/awaits.h"
#include "engine/command/fail_points.h"

#include <angelia/base/clock.h>
#include <angelia/bson/builder.h>

#include <atomic>
#include <memory>

namespace angelia::engine::command {

class CommandService;

/// Counts of one command, in the order of command_table().
struct CommandCounter {
    std::atomic<std::int64_t> total{0};
    std::atomic<std::int64_t> failed{0};
};

/// Operations as serverStatus.opcounters counts them.
struct OperationCounters {
    std::atomic<std::int64_t> insert{0}, query{0}, update{0}, remove{0}, get_more{0};
};

/// Threads: safe.
struct ServerState {
    explicit ServerState(bool test_commands_enabled);

    bson::Document topology_version() const;  ///< {processId, counter}

    const bson::ObjectId process_id = bson::ObjectId::generate();
    const bool test_commands;
    std::atomic<std::int64_t> topology_counter{0};
    std::atomic<bool> shutting_down{false};
    std::atomic<std::int32_t> log_level{0};
    SteadyTime started{};
    FailPoints fail_points;
    Awaits awaits;
    OperationCounters operations;
    std::unique_ptr<CommandCounter[]> counters;
    std::atomic<CommandService*> service{
        nullptr};  ///< for serverStatus; null once the service is gone
};

}  // namespace angelia::engine::command
