// Transactions of the simulated server: a copy of everything is the snapshot and takes the changes,
// the keys that it changes are held at the server, and a commit moves the documents over.
#pragma once

#include "store/session_core.h"
#include "store/testing/simulated_state.h"

#include <set>

namespace angelia::store::testing {

/// As servers' transactionLifetimeLimitSeconds.
inline constexpr std::chrono::seconds kSimulatedLifetime{60};

/// Guarded by the server's mutex.
struct SimulatedTransaction {
    explicit SimulatedTransaction(SimulatedServer::State& server);

    enum class Phase : std::uint8_t { Open, Committed, Aborted } phase = Phase::Open;
    const std::uint64_t id;
    const SteadyTime started;
    SimulatedServer::State view;           ///< the snapshot and the changes
    std::set<CollectionName> collections;  ///< of the snapshot
};

class SimulatedSession final : public SessionCore {
  public:
    SimulatedSession(const void* store, std::shared_ptr<SimulatedServer::State> server,
                     std::shared_ptr<SimulatedStore::Client> client)
        : SessionCore(store), server_(std::move(server)), client_(std::move(client)) {}

    /// One statement, under the server's mutex. Any error ends the transaction.
    template <class T, class Work>
    Result<T> run(bool first, Work&& work) {
        if (first) transaction_ = server_->begin();
        if (!transaction_ || transaction_->phase != SimulatedTransaction::Phase::Open)
            return not_open();
        Result<T> done = work(transaction_->view);
        if constexpr (requires { done->errors.empty(); }) {
            // The first failed write ends it: no other result is left.
            if (done && !done->errors.empty()) done = Result<T>(done->errors.front().error);
        }
        if (!done) server_->abort(*transaction_);
        return done;
    }

  private:
    Result<void> start(const TransactionOptions& options) override;
    Result<void> commit(const TransactionOptions& options, bool again) override;
    void abort() override;
    void release() override {}
    Error not_open() const;

    const std::shared_ptr<SimulatedServer::State> server_;  ///< shared with the store
    const std::shared_ptr<SimulatedStore::Client> client_;  ///< shared with the store
    std::shared_ptr<SimulatedTransaction> transaction_;     ///< shared with the server while open
};

}  // namespace angelia::store::testing
