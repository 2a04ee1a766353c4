// Several nodes on one simulated server, driven step by step: no threads, no sockets, time that
// moves when told.
#pragma once

#include "store/testing/simulated_store.h"

#include <angelia/base/manual_executor.h>
#include <angelia/bson/json.h>
#include <angelia/messaging/messaging.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

namespace angelia::messaging::testing {

/// One node with lanes of its own; crash() is what kill -9 does.
struct SimNode {
    std::shared_ptr<store::testing::SimulatedStore> store;
    std::vector<std::shared_ptr<ManualExecutor>> lanes;
    std::unique_ptr<Messaging> bus;
    std::vector<std::string> log;
    bool crashed = false;
    void crash() {
        crashed = true;
        store->crash();
        for (auto& lane : lanes) lane->stop();
    }
};

class SimCluster {
  public:
    /// Seed 0: tasks in the order in which they were posted.
    explicit SimCluster(std::uint64_t seed = 0)
        : scheduler(clock, seed), server_lane(scheduler), server(server_lane, clock) {}
    ~SimCluster() {
        for (auto& node : nodes) node.bus.reset();
    }

    using Wrap =
        std::function<std::shared_ptr<store::StoreAdapter>(std::shared_ptr<store::StoreAdapter>)>;
    /// Not started. `wrap`: what stands between the node and its simulated store.
    SimNode& add(std::string id, Options options = {}, const Wrap& wrap = {}) {
        SimNode& node = nodes.emplace_back();
        node.store = server.connect(id);
        for (int i = 0; i < 5; ++i)
            node.lanes.push_back(std::make_shared<ManualExecutor>(scheduler));
        options.id = std::move(id);
        options.clock = &clock;
        // Without time passing nothing would be marked; tests about the delay say so.
        if (options.settle_delay == Options{}.settle_delay) options.settle_delay = milliseconds(0);
        options.executors = {node.lanes[0], node.lanes[1], node.lanes[2], node.lanes[3],
                             node.lanes[4]};
        options.log = [&node](LogLevel, std::string_view text) { node.log.emplace_back(text); };
        std::shared_ptr<store::StoreAdapter> adapter = node.store;
        if (wrap) adapter = wrap(std::move(adapter));
        node.bus = std::make_unique<Messaging>(store::Store(std::move(adapter), "app"),
                                               std::move(options));
        return node;
    }
    SimNode& start(std::string id, Options options = {}) {
        SimNode& node = add(std::move(id), std::move(options));
        node.bus->start().value_or_throw();
        settle();
        return node;
    }
    void settle() { scheduler.run_ready(); }
    /// Time passes in small steps; the TTL monitor runs every second of it.
    void pass(microseconds time) {
        const auto end = clock.steady_now() + time;
        while (clock.steady_now() < end) {
            scheduler.advance(std::min<microseconds>(milliseconds(250), end - clock.steady_now()));
            if (clock.steady_now() >= next_ttl_) {
                server.run_ttl_pass();
                next_ttl_ = clock.steady_now() + std::chrono::seconds(1);
            }
        }
    }

    // What stands in the store, seen by a client of its own.
    store::Store look() {
        if (!looker_) looker_ = server.connect("looker");
        return store::Store(looker_, "app");
    }
    std::vector<bson::Document> documents(const std::string& collection,
                                          bson::Document filter = {}) {
        return look().find({{"app", collection}, std::move(filter), {}, {}, 0, 0}).value_or_throw();
    }
    std::size_t count(const std::string& collection) { return documents(collection).size(); }
    void insert(const std::string& collection, const bson::Document& document) {
        const auto r = look().insert({"app", collection}, document).value_or_throw();
        if (!r.errors.empty()) throw Exception(r.errors[0].error);
    }
    void update(const std::string& collection, const bson::Document& filter,
                const bson::Document& change) {
        const auto r = look().update_one({"app", collection}, filter, change).value_or_throw();
        if (!r.errors.empty()) throw Exception(r.errors[0].error);
    }

    ManualClock clock;
    ManualScheduler scheduler;
    ManualExecutor server_lane;
    store::testing::SimulatedServer server;
    std::list<SimNode> nodes;

  private:
    std::shared_ptr<store::testing::SimulatedStore> looker_;
    SteadyTime next_ttl_{};
};

inline std::int64_t counter(const SimNode& node, const std::string& name) {
    return node.bus->status().counters.at(name);
}

}  // namespace angelia::messaging::testing
