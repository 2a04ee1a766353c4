// Inside of the simulated server: collections, the log of changes, and the watches that read it.
#pragma once

#include "engine/query/key_encoding.h"
#include "engine/query/matcher.h"
#include "engine/query/sort.h"
#include "engine/query/update.h"
#include "store/session_core.h"
#include "store/testing/simulated_store.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace angelia::store::testing {

namespace query = engine::query;

using SharedDocument = std::shared_ptr<const bson::Document>;

/// One change, as a stream shows it (without `_id`, which is the token of `time`).
struct SimulatedEvent {
    bson::Timestamp time;
    CollectionName collection;
    bson::Document body;
    bson::Value document_id;  ///< for updateLookup
    bool is_update = false;
    bool is_drop = false;
};

struct SimulatedIndex {
    std::shared_ptr<const IndexDefinition> definition;      ///< shared with snapshots
    std::shared_ptr<const query::IndexKeyPattern> pattern;  ///< shared with snapshots
    std::map<std::string, std::uint64_t> keys;              ///< unique indexes only
};

struct SimulatedCollection {
    std::map<std::uint64_t, SharedDocument> documents;  ///< in the order of insertion
    std::map<std::string, std::uint64_t> ids;           ///< `_id` as key bytes
    std::vector<SimulatedIndex> indexes;
};

/// What one update or delete did.
struct SimulatedWrite {
    std::int64_t matched = 0;
    std::int64_t modified = 0;
    bson::Value upserted_id;
    SharedDocument before, after;  ///< of the last document touched
};

bson::Document token_of(bson::Timestamp time);
std::optional<bson::Timestamp> time_of(bson::DocumentView token);

struct SimulatedTransaction;
class SimulatedWatch;

/// Guarded by `mutex` unless said otherwise.
struct SimulatedServer::State {
    State(Executor& e, const Clock& c) : executor(e), clock(c) {}

    Executor& executor;
    const Clock& clock;
    std::mutex mutex;
    std::map<CollectionName, SimulatedCollection> collections;
    std::deque<std::shared_ptr<const SimulatedEvent>> events;
    bson::Timestamp forgotten;  ///< changes up to and including this are not in `events` any more
    bson::Timestamp last_time;
    std::uint64_t last_sequence = 0;
    milliseconds clock_offset{0};
    microseconds event_delay{0};
    bool change_streams = true;
    std::map<std::string, std::int64_t> counts;
    std::vector<std::weak_ptr<SimulatedWatch>> watches;
    // Transactions (simulated_transaction.h). A transaction's view is a State, too: it knows whose.
    std::map<std::uint64_t, std::shared_ptr<SimulatedTransaction>> open_transactions;
    std::map<std::string, std::uint64_t> intents;  ///< documents and unique keys: held by whom
    std::uint64_t last_transaction = 0;
    bool blocked = false;  ///< a write has met an intent
    State* server = nullptr;
    SimulatedTransaction* transaction = nullptr;

    bson::Date now() const { return {clock.system_millis() + clock_offset.count()}; }
    bson::Timestamp next_time();

    Result<bson::Value> insert(const CollectionName& name,
                               bson::DocumentView document);  ///< the `_id`
    Result<SimulatedWrite> update(const CollectionName& name, const query::Matcher& filter,
                                  const query::Update& update, bool multi, bool upsert,
                                  const query::SortSpec& sort = {});
    Result<SimulatedWrite> remove(const CollectionName& name, const query::Matcher& filter,
                                  bool multi, const query::SortSpec& sort = {});
    Result<std::vector<std::uint64_t>> matching(const CollectionName& name,
                                                const query::Matcher& filter, bool one,
                                                const query::SortSpec& sort);
    SharedDocument document(const CollectionName& name, bson::ValueView id) const;
    Result<void> add_index(const CollectionName& name, const IndexDefinition& definition);
    Result<void> drop(const CollectionName& name);
    std::int64_t expire();
    /// Wakes every watch that may have something to read; after each write, still under the mutex.
    void wake_watches();

    std::shared_ptr<SimulatedTransaction> begin();
    Result<void> commit(SimulatedTransaction& transaction);
    void abort(SimulatedTransaction& transaction);
    void abort_overdue();
    /// Runs a call outside of transactions: all of it, or nothing when it meets an open one.
    template <class T, class Work>
    Result<T> run_plain(Work&& work) {
        if (intents.empty()) return work(*this);
        const auto before = collections;
        const auto event_count = events.size();
        blocked = false;
        Result<T> done = work(*this);
        if (!blocked) return done;
        collections = before;
        events.resize(event_count);
        // Once more the error itself, where the call took it for one of a single operation.
        return {ErrorCode::MaxTimeMSExpired,
                "an open transaction holds what this call changes; a simulated call does not wait "
                "for it"};
    }

  private:
    /// Takes the intent on a key that a transaction changes. `unchanged`: the key is at the server
    /// as the transaction sees it. Outside of transactions: refuses what one holds.
    Result<void> touch(const std::string& key, bool unchanged);
    /// The keys of a document that is about to go.
    Result<void> touch_all(const CollectionName& name, SimulatedCollection& c,
                           std::uint64_t sequence);
    Result<void> touch_document(const CollectionName& name, bson::ValueView id);
    Result<void> touch_unique(const CollectionName& name, const SimulatedIndex& index,
                              const std::string& key);
    Result<void> check_collection(const CollectionName& name) const;
    Result<void> check_untouched(const CollectionName& name) const;
    void forget(const SimulatedTransaction& transaction);
    std::string document_key(const CollectionName& name, bson::ValueView id) const;
    std::optional<std::uint64_t> sequence_of(const CollectionName& name, bson::ValueView id) const;
    Result<void> enter(const CollectionName& name, SimulatedCollection& c, std::uint64_t sequence,
                       SharedDocument document);
    void leave(SimulatedCollection& c, std::uint64_t sequence);
    Result<void> replace(const CollectionName& name, SimulatedCollection& c, std::uint64_t sequence,
                         SharedDocument after);
    void log(SimulatedEvent event);
};

/// Shared by a client, its watches and its sessions. Guarded by the server's mutex.
struct SimulatedStore::Client {
    std::string name;
    Fault before, after;
    struct Planned {
        Error error;
        bool applied;
    };
    std::deque<Planned> planned;
    std::optional<Error> streams_lost;
    bool crashed = false;
    bool closed = false;
    Executor* executor = nullptr;
    OpenSessions sessions;  ///< own synchronisation
    Result<void> check_alive() const {
        if (crashed)
            return {ErrorCode::HostUnreachable, "the simulated client " + name + " has crashed"};
        if (closed) return {ErrorCode::ShutdownInProgress, "the store was closed"};
        return {};
    }
};

/// A reader of the log. Its callbacks run one after another as tasks of the client's executor.
class SimulatedWatch : public std::enable_shared_from_this<SimulatedWatch> {
  public:
    SimulatedWatch(std::shared_ptr<SimulatedServer::State> server,
                   std::shared_ptr<SimulatedStore::Client> client, WatchRequest request,
                   WatchEvents events, engine::query::Matcher match);

    void start();                    ///< under the server's mutex
    void wake();                     ///< under the server's mutex
    void lose(const Error& error);   ///< under the server's mutex
    void restore(bool drop_events);  ///< under the server's mutex
    void close();                    ///< not under the mutex
    bool live() const;               ///< not under the mutex

    const std::shared_ptr<SimulatedStore::Client>& client() const { return client_; }

  private:
    void post(std::function<void()> callback);
    void pump();
    void arm_heartbeat();
    void beat();
    bool collect(std::vector<bson::Document>& out);

    const std::shared_ptr<SimulatedServer::State> server_;
    const std::shared_ptr<SimulatedStore::Client> client_;
    const WatchRequest request_;
    const WatchEvents events_;
    const engine::query::Matcher match_;
    std::recursive_mutex running_;  ///< held while a callback runs, so that close() can wait;
                                    ///< recursive: close() inside one
    std::atomic<bool> closed_{false};
    // guarded by the server's mutex
    bson::Timestamp position_;
    bool lost_ = false;
    bool pump_posted_ = false;
    std::uint64_t epoch_ = 0;  ///< counts losses; tasks of an older epoch do nothing
    bool heartbeat_armed_ = false;
    SteadyTime last_reply_;
};

}  // namespace angelia::store::testing
