// Clients at random: transactions that read and append lists in step with one another, and plain
// writers and readers beside them. What they did and saw becomes a history.
#pragma once

#include "transactions/session.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

namespace angelia::transactions {

/// Collects what all clients did. Threads: safe.
class Recorder {
  public:
    std::uint64_t now() { return ++clock_; }
    ListValue new_value() { return ++value_; }
    void add(Transaction transaction);
    std::size_t size() const;
    /// Looks at every transaction, to set outcomes that have become known.
    void resolve(const std::function<void(Transaction&)>& look);
    /// What was collected, with the lists of the end.
    History take(Lists final_lists);

  private:
    std::atomic<std::uint64_t> clock_{0};
    std::atomic<ListValue> value_{0};
    mutable std::mutex mutex_;
    std::vector<Transaction> transactions_;
};

struct Plan {
    std::uint64_t seed = 1;
    int clients = 5;           ///< with transactions
    int plain_writers = 1;     ///< who append without
    int plain_readers = 1;     ///< who read single lists, and ranges at a snapshot
    int plain_per_turn = 2;    ///< what each of them does at most in the time of a turn
    int keys = 4;              ///< lists in use at a time
    int turns = 400;           ///< each client takes one step per turn, all together
    int turns_per_epoch = 40;  ///< then new lists are used, which have to be made first
    int first_epoch = 0;
    /// Transactions of two that read everything and append to a list of their own: for write skew.
    bool pairs = false;
    /// The first client alone has transactions; each appends to every list.
    bool wide = false;
};

using NewSession = std::function<std::unique_ptr<Session>(std::int64_t number)>;

/// Runs to the end of the plan, or until `stop` says so (asked between turns).
void run(const Plan& plan, const NewSession& new_session, Recorder& recorder,
         const std::function<bool()>& stop = {});

}  // namespace angelia::transactions
