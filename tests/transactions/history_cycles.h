// The inside of the history check: who depends on whom, and the cycles that must not be.
#pragma once

#include "transactions/history.h"

namespace angelia::transactions {

/// Who appended the values of each list, in the order of the list.
using VersionOrder = std::map<ListKey, std::vector<std::size_t>>;
inline constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

/// The first read of a list by a transaction: how many values of others it saw.
struct OutsideRead {
    std::size_t transaction = 0;
    ListKey key = 0;
    std::size_t length = 0;
};

/// Adds forbidden cycles to the report, and counts write skews. `effective`: transactions that
/// happened.
void find_cycles(const History& history, const std::vector<bool>& effective,
                 const VersionOrder& versions, const std::vector<OutsideRead>& reads,
                 Report& report);

std::string told_list(const List& list);
/// One line about a transaction.
std::string told_transaction(const History& history, std::size_t i);

}  // namespace angelia::transactions
