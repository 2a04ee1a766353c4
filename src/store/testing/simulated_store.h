// A document store for simulations and tests of what stands on the port: small, in memory,
// deterministic. A SimulatedServer holds the data; each client of it is a SimulatedStore, an
// adapter like any other (it passes the contract suite). Nothing runs by itself: watch callbacks
// are tasks of the given executor, time is the given clock, and faults happen when a test asks for
// them.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/executor.h>
#include <angelia/store/store.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::store::testing {

class SimulatedStore;

/// One store call, as faults and counters see it. `verb` is the port's function name: "insert",
/// "claim", ...
struct SimulatedCall {
    std::string_view client;
    std::string_view verb;
    std::string_view collection;  ///< "db.coll" of the first (or only) collection concerned; empty
                                  ///< where there is none
    std::size_t operations = 1;   ///< size of the batch
};

/// The data and the log of changes. Threads: safe.
class SimulatedServer {
  public:
    /// Both must outlive the server and its clients.
    SimulatedServer(Executor& executor, const Clock& clock);
    ~SimulatedServer();
    SimulatedServer(const SimulatedServer&) = delete;
    SimulatedServer& operator=(const SimulatedServer&) = delete;

    /// A new client. Its Store: `Store(server.connect("node1"), "db")`. Its watch callbacks run on
    /// `executor` when given (which must outlive the client), else on the server's.
    std::shared_ptr<SimulatedStore> connect(std::string client_name, Executor* executor = nullptr);

    /// Deletes what TTL indexes say is over by the server's wall clock; the number of documents
    /// deleted. Nothing else runs the monitor.
    std::int64_t run_ttl_pass();
    /// The server's wall clock is the given clock plus this: clients whose clock is wrong.
    void set_clock_offset(milliseconds offset);
    /// Forgets all changes so far: a stream that must start again from an older token meets
    /// ChangeStreamHistoryLost (gap).
    void forget_history();
    /// Events reach watches so much later than the write that caused them; 0 (the default) = in the
    /// next task of the executor.
    void set_event_delay(microseconds delay);
    /// What capabilities().change_streams says; false: every watch fails fatally, as on a
    /// standalone server.
    void set_change_streams(bool supported);

    /// How often each verb was called by all clients, refused calls included.
    std::map<std::string, std::int64_t> call_counts() const;
    std::int64_t calls_total() const;
    void reset_call_counts();

    struct State;

  private:
    std::shared_ptr<State> state_;  ///< shared with clients and watches, which may end later
};

/// One client's connection. Threads: safe.
class SimulatedStore final : public StoreAdapter {
  public:
    ~SimulatedStore() override;

    // -- faults
    /// Asked before each call of this client; an error is answered and nothing happens at the
    /// server. May turn the clock (latency).
    using Fault = std::function<std::optional<Error>(const SimulatedCall&)>;
    void set_fault_before(Fault fault);
    /// Asked after each call took effect; an error is answered instead of the reply: the write
    /// happened, its sender does not know.
    void set_fault_after(Fault fault);
    /// The next `calls` calls fail with `error`; the work is done all the same when `applied`.
    void fail_next(int calls, Error error, bool applied = false);

    /// Streams of this client are down: on_error now, no events, live() is false. New watches start
    /// when streams are restored.
    void lose_streams(Error error);
    /// Streams are back, on_started. `drop_events`: what happened meanwhile is never delivered and
    /// `gap` is true; else it follows.
    void restore_streams(bool drop_events);

    /// The process is gone: no callback runs any more and every call answers HostUnreachable. What
    /// it wrote stays.
    void crash();
    bool crashed() const;

    // -- StoreAdapter
    Result<InsertResult> insert(const CollectionName&, std::span<const bson::DocumentView>,
                                bool ordered, const CallOptions&) override;
    Result<std::vector<bson::Document>> find(const FindRequest&, const CallOptions&) override;
    Result<UpdateResult> update(const CollectionName&, std::vector<UpdateOp>, bool ordered,
                                const CallOptions&) override;
    Result<std::optional<bson::Document>> find_and_modify(FindAndModifyRequest,
                                                          const CallOptions&) override;
    Result<DeleteResult> remove(const CollectionName&, std::vector<DeleteOp>, bool ordered,
                                const CallOptions&) override;
    Result<BulkResult> bulk_write(std::vector<BulkOp>, bool ordered, const CallOptions&) override;
    Result<ClaimResult> claim(ClaimRequest, const CallOptions&) override;
    Result<std::int64_t> count(const CollectionName&, bson::DocumentView filter,
                               const CallOptions&) override;
    Result<void> ensure_indexes(const CollectionName&, std::vector<IndexDefinition>,
                                const CallOptions&) override;
    Result<void> drop(const CollectionName&, const CallOptions&) override;
    Result<std::vector<std::string>> list_collections(std::string_view db,
                                                      const CallOptions&) override;
    Result<std::unique_ptr<Watch>> watch(WatchRequest, WatchEvents) override;
    Result<ServerTime> server_time(const CallOptions&) override;
    Result<Capabilities> capabilities() override;
    Result<std::unique_ptr<Session>> start_session() override;
    std::unique_ptr<Diagnostics> diagnostics() override;
    std::string describe() const override;
    Result<void> close() override;

    struct Client;

  private:
    friend class SimulatedServer;
    friend class SimulatedSession;
    SimulatedStore(std::shared_ptr<SimulatedServer::State> server, std::string name);
    /// `work` runs on the server, or in the transaction of the call's session.
    template <class T, class Work>
    Result<T> call(std::string_view verb, const CollectionName& collection, std::size_t operations,
                   const CallOptions& options, Work&& work);

    std::shared_ptr<SimulatedServer::State> server_;
    std::shared_ptr<Client> client_;  ///< shared with this client's watches
};

}  // namespace angelia::store::testing
