// One call of a client to the simulated server: counted, and spoilt as its faults say.
#pragma once

#include "store/testing/simulated_state.h"

namespace angelia::store::testing {

/// `work` runs under the server's mutex.
template <class T, class Work>
Result<T> call_server(SimulatedServer::State& server, SimulatedStore::Client& client,
                      std::string_view verb, const CollectionName& collection,
                      std::size_t operations, Work&& work) {
    SimulatedStore::Fault before, after;
    std::optional<SimulatedStore::Client::Planned> planned;
    {
        const std::lock_guard<std::mutex> lock(server.mutex);
        ++server.counts[std::string(verb)];
        before = client.before;
        after = client.after;
        if (!client.planned.empty()) {
            planned = client.planned.front();
            client.planned.pop_front();
        }
    }
    const std::string name = collection.collection.empty() ? "" : collection.full();
    const SimulatedCall made{client.name, verb, name, operations};
    if (before) {
        if (auto error = before(made)) return *std::move(error);
    }
    if (planned && !planned->applied) return planned->error;
    Result<T> result = [&]() -> Result<T> {
        const std::lock_guard<std::mutex> lock(server.mutex);
        ANGELIA_TRY(client.check_alive());
        server.abort_overdue();
        Result<T> done = work(server);
        server.wake_watches();
        return done;
    }();
    if (after) {
        if (auto error = after(made)) return *std::move(error);
    }
    if (planned) return planned->error;
    return result;
}

}  // namespace angelia::store::testing
