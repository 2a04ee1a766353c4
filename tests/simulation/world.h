// One simulated history of a queue, from a seed: publishers, nodes, crashes, pauses past the lease,
// lost streams, lost replies, clock jumps. Afterwards everything is healed, time passes, and the
// promises are checked.
#pragma once

#include "messaging/testing/sim_cluster.h"

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace angelia::simulation {

/// Defects that can be planted, to see that the checks find them.
enum class Mutant : std::uint8_t {
    None,
    ClaimsOfOthersCount,   ///< a claim that somebody else has is taken for a won one
    MessagesVanish,        ///< now and then a claim deletes the message
    EventsAndPollsRepeat,  ///< a broadcast's mark is forgotten together with the memory of it
};

struct Report {
    std::vector<std::string> broken;  ///< promises, with ids
    std::size_t executions = 0;
    std::size_t crashes = 0;
    std::size_t take_overs = 0;
    std::size_t stale_outcomes = 0;
    std::size_t answers = 0;
};

Report play(std::uint64_t seed, Mutant mutant = Mutant::None);

}  // namespace angelia::simulation
