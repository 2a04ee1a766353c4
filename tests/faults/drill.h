// One store under load that loses its disk, and the check of everything it promised.
#pragma once

#include "faults/load.h"
#include "faults/streams.h"
#include "support/seeds.h"

#include "engine/storage/testing/fault_env.h"

namespace angelia::engine::faults {

using test::seeds;

/// The first violations as text, one a line; empty = none.
std::string shown(const Violations& violations);

class Drill {
  public:
    /// `oplog_bytes_max` 0: the default, which none of these tests fills.
    explicit Drill(std::uint64_t seed, std::uint64_t oplog_bytes_max = 0);
    ~Drill();

    void open();
    /// Starts all writers; they write until the store refuses. `wait_durable` false lets the
    /// writers believe too early.
    void start_load(bool wait_durable = true);
    /// Until so many more writes were acknowledged.
    void wait_for(std::uint64_t acknowledged);
    /// Waits until every writer was refused.
    void join_load();
    void power_cut_and_on(storage::testing::FaultEnvironment::Survivors survivors);
    /// Closes the store, whatever state it is in, and opens it again.
    void restart();
    /// Compares everything with what the store holds. The load must stand still.
    Violations check();

    TestEngine& engine() { return *engine_; }
    storage::testing::FaultEnvironment& disk() { return disk_; }
    ManualClock& clock() { return clock_; }
    std::uint64_t acknowledged() const { return ledger_.acknowledged; }
    std::vector<std::unique_ptr<StreamReader>>& readers() { return readers_; }
    EngineOptions options();

  private:
    void stop_all();
    Violations check_writers();
    Violations check_collections();

    std::uint64_t seed_;
    std::uint64_t oplog_bytes_max_;
    testing_support::TempFolder folder_;
    storage::testing::FaultEnvironment disk_;
    ManualClock clock_;
    Ledger ledger_;
    std::vector<std::unique_ptr<Writer>> writers_;
    ExpiringWriter expiring_;
    CatalogWriter catalog_;
    ListWriter lists_;
    std::vector<std::unique_ptr<StreamReader>> readers_;
    std::int64_t loose_next_ = 0;
    std::vector<std::thread> threads_;
    std::unique_ptr<TestEngine> engine_;
};

}  // namespace angelia::engine::faults
