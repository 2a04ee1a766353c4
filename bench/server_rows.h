// The rows about the server: transactions, single writes, change streams (./do bench server).
#pragma once

#include "figures.h"

namespace angelia::bench {

/// Two writes in a transaction against the same two alone; strict, one client, back to back.
Result<Row> transaction_of_two(const std::string& folder);
/// 64 clients, each transaction two writes to documents that others seldom want; strict.
Result<Row> transactions_of_many(const std::string& folder);
/// One insert of 2 KB; strict, back to back.
Result<Row> single_insert(const Floors& floors, const std::string& folder);
/// From the answer of an insert at its client to its event at another that waits; memory.
Result<Row> event_after_reply();

}  // namespace angelia::bench
