#include "store/testing/simulated_store.h"

#include "engine/query/projection.h"
#include "store/testing/simulated_call.h"
#include "store/testing/simulated_state.h"
#include "store/testing/simulated_transaction.h"
#include "store/transaction_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::store::testing {
namespace {

const CollectionName kNowhere;

/// Runs one write of a batch after the other; false: stop, the batch is ordered and this one
/// failed.
template <class Work>
bool note(std::vector<WriteError>& errors, std::size_t index, bool ordered, Work&& work) {
    Result<void> done = work();
    if (done) return true;
    errors.push_back({index, std::move(done).error()});
    return !ordered;
}

struct SimulatedUpdate {
    query::Matcher filter;
    query::Update update;
};

Result<SimulatedUpdate> parse(const UpdateOp& op) {
    ANGELIA_TRY_ASSIGN(query::Matcher filter, query::Matcher::parse(op.filter));
    ANGELIA_TRY_ASSIGN(query::Update update,
                       query::Update::parse(op.update.view(), {std::nullopt, op.multi, op.upsert}));
    return SimulatedUpdate{std::move(filter), std::move(update)};
}

/// True when the lock is ours now. `error`: why not, when it is not that somebody else holds it.
Result<bool> take_lock(SimulatedServer::State& server, const CollectionName& locks,
                       const ClaimRequest::Candidate& c, std::optional<Error>& error) {
    const auto inserted = server.insert(locks, c.lock);
    if (inserted) return true;
    if (inserted.error().code != ErrorCode::DuplicateKey) {
        error = inserted.error();
        return false;
    }
    if (!c.take_over) return false;
    ANGELIA_TRY_ASSIGN(const SimulatedUpdate take_over,
                       parse(UpdateOp{c.take_over->copy(), c.lock.copy(), false, false}));
    ANGELIA_TRY_ASSIGN(const SimulatedWrite taken,
                       server.update(locks, take_over.filter, take_over.update, false, false));
    return taken.modified > 0;
}

class SimulatedWatchHandle final : public Watch {
  public:
    explicit SimulatedWatchHandle(std::shared_ptr<SimulatedWatch> watch)
        : watch_(std::move(watch)) {}
    ~SimulatedWatchHandle() override { watch_->close(); }
    void close() override { watch_->close(); }
    bool live() const override { return watch_->live(); }

  private:
    std::shared_ptr<SimulatedWatch> watch_;  ///< shared with the tasks that are on their way
};

class SimulatedDiagnostics final : public Diagnostics {
  public:
    Result<bson::Document> run_command(std::string_view, bson::DocumentView) override {
        return {ErrorCode::CommandNotSupported, "the simulated store runs no commands"};
    }
    Result<double> log_window_hours() override { return 24.0; }
    Result<microseconds> write_latency(const CollectionName&, int) override {
        return microseconds(0);
    }
};

/// All $match stages as one filter; nothing else is played.
Result<query::Matcher> match_of(bson::DocumentView stages) {
    bson::Builder b;
    b.open_array("$and");
    bool any = false;
    for (const auto& [key, stage] : stages) {
        const auto document = stage.get_document();
        const auto filter = document ? document->find("$match").get_document() : std::nullopt;
        if (!filter)
            return {ErrorCode::IllegalOperation,
                    "the simulated store watches with $match stages only"};
        b.push(*filter);
        any = true;
    }
    if (!any) return query::Matcher();
    const bson::Document all = b.close().take();
    return query::Matcher::parse(all);
}

}  // namespace

SimulatedServer::SimulatedServer(Executor& executor, const Clock& clock)
    : state_(std::make_shared<State>(executor, clock)) {}
SimulatedServer::~SimulatedServer() = default;

std::shared_ptr<SimulatedStore> SimulatedServer::connect(std::string client_name,
                                                         Executor* executor) {
    std::shared_ptr<SimulatedStore> store(new SimulatedStore(state_, std::move(client_name)));
    if (executor != nullptr) store->client_->executor = executor;
    return store;
}

std::int64_t SimulatedServer::run_ttl_pass() {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const std::int64_t count = state_->expire();
    state_->wake_watches();
    return count;
}

void SimulatedServer::set_clock_offset(milliseconds offset) {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->clock_offset = offset;
}

void SimulatedServer::forget_history() {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->forgotten = state_->last_time;
    state_->events.clear();
}

void SimulatedServer::set_event_delay(microseconds delay) {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->event_delay = delay;
}

void SimulatedServer::set_change_streams(bool supported) {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->change_streams = supported;
}

std::map<std::string, std::int64_t> SimulatedServer::call_counts() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->counts;
}

std::int64_t SimulatedServer::calls_total() const {
    std::int64_t total = 0;
    for (const auto& [verb, count] : call_counts()) total += count;
    return total;
}

void SimulatedServer::reset_call_counts() {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->counts.clear();
}

SimulatedStore::SimulatedStore(std::shared_ptr<SimulatedServer::State> server, std::string name)
    : server_(std::move(server)), client_(std::make_shared<Client>()) {
    client_->name = std::move(name);
    client_->executor = &server_->executor;
}
SimulatedStore::~SimulatedStore() = default;

template <class T, class Work>
Result<T> SimulatedStore::call(std::string_view verb, const CollectionName& collection,
                               std::size_t operations, const CallOptions& options, Work&& work) {
    ANGELIA_TRY_ASSIGN(const SessionUse use, SessionUse::begin(options, this));
    Result<T> result = call_server<T>(*server_, *client_, verb, collection, operations,
                                      [&](SimulatedServer::State& server) -> Result<T> {
                                          if (!use.in_transaction())
                                              return server.run_plain<T>(work);
                                          return use.as<SimulatedSession>().template run<T>(
                                              use.first_statement(), work);
                                      });
    if (result || !use.in_transaction()) return result;
    Error error = std::move(result).error();
    if (!crashed()) label_statement_error(error);
    return error;
}

void SimulatedStore::set_fault_before(Fault fault) {
    const std::lock_guard<std::mutex> lock(server_->mutex);
    client_->before = std::move(fault);
}

void SimulatedStore::set_fault_after(Fault fault) {
    const std::lock_guard<std::mutex> lock(server_->mutex);
    client_->after = std::move(fault);
}

void SimulatedStore::fail_next(int calls, Error error, bool applied) {
    const std::lock_guard<std::mutex> lock(server_->mutex);
    for (int i = 0; i < calls; ++i) client_->planned.push_back({error, applied});
}

void SimulatedStore::lose_streams(Error error) {
    const std::lock_guard<std::mutex> lock(server_->mutex);
    client_->streams_lost = error;
    for (const auto& weak : server_->watches) {
        const auto watch = weak.lock();
        if (watch != nullptr && watch->client() == client_) watch->lose(error);
    }
}

void SimulatedStore::restore_streams(bool drop_events) {
    const std::lock_guard<std::mutex> lock(server_->mutex);
    client_->streams_lost.reset();
    for (const auto& weak : server_->watches) {
        const auto watch = weak.lock();
        if (watch != nullptr && watch->client() == client_) watch->restore(drop_events);
    }
}

// Its open transactions stay at the server until their time is over.
void SimulatedStore::crash() {
    {
        const std::lock_guard<std::mutex> lock(server_->mutex);
        client_->crashed = true;
    }
    client_->sessions.end_all();
}

bool SimulatedStore::crashed() const {
    const std::lock_guard<std::mutex> lock(server_->mutex);
    return client_->crashed;
}

Result<InsertResult> SimulatedStore::insert(const CollectionName& name,
                                            std::span<const bson::DocumentView> documents,
                                            bool ordered, const CallOptions& options) {
    return call<InsertResult>("insert", name, documents.size(), options,
                              [&](SimulatedServer::State& server) -> Result<InsertResult> {
                                  InsertResult result;
                                  for (std::size_t i = 0; i < documents.size(); ++i) {
                                      const bool go_on =
                                          note(result.errors, i, ordered, [&]() -> Result<void> {
                                              ANGELIA_TRY(server.insert(name, documents[i]));
                                              ++result.inserted;
                                              return {};
                                          });
                                      if (!go_on) break;
                                  }
                                  return result;
                              });
}

Result<std::vector<bson::Document>> SimulatedStore::find(const FindRequest& request,
                                                         const CallOptions& options) {
    using Documents = std::vector<bson::Document>;
    return call<Documents>(
        "find", request.collection, 1, options,
        [&](SimulatedServer::State& server) -> Result<Documents> {
            ANGELIA_TRY_ASSIGN(const query::Matcher filter, query::Matcher::parse(request.filter));
            ANGELIA_TRY_ASSIGN(const query::SortSpec sort, query::SortSpec::parse(request.sort));
            ANGELIA_TRY_ASSIGN(const query::Projection projection,
                               query::Projection::parse(request.projection));
            ANGELIA_TRY_ASSIGN(const std::vector<std::uint64_t> found,
                               server.matching(request.collection, filter, false, sort));
            Documents out;
            const auto begin = std::min(found.size(), static_cast<std::size_t>(request.skip));
            const auto end =
                request.limit == 0
                    ? found.size()
                    : std::min(found.size(), begin + static_cast<std::size_t>(request.limit));
            for (auto i = begin; i < end; ++i)
                out.push_back(projection.apply(
                    *server.collections[request.collection].documents.at(found[i])));
            return out;
        });
}

Result<UpdateResult> SimulatedStore::update(const CollectionName& name, std::vector<UpdateOp> ops,
                                            bool ordered, const CallOptions& options) {
    return call<UpdateResult>(
        "update", name, ops.size(), options,
        [&](SimulatedServer::State& server) -> Result<UpdateResult> {
            UpdateResult result;
            result.effective.resize(ops.size());
            for (std::size_t i = 0; i < ops.size(); ++i) {
                const bool go_on = note(result.errors, i, ordered, [&]() -> Result<void> {
                    ANGELIA_TRY_ASSIGN(const SimulatedUpdate parsed, parse(ops[i]));
                    ANGELIA_TRY_ASSIGN(const SimulatedWrite done,
                                       server.update(name, parsed.filter, parsed.update,
                                                     ops[i].multi, ops[i].upsert));
                    result.matched += done.matched;
                    result.modified += done.modified;
                    result.effective[i] = done.modified > 0 || !done.upserted_id.is_missing();
                    if (!done.upserted_id.is_missing())
                        result.upserted.emplace_back(i, done.upserted_id);
                    return {};
                });
                if (!go_on) break;
            }
            return result;
        });
}

Result<std::optional<bson::Document>> SimulatedStore::find_and_modify(FindAndModifyRequest request,
                                                                      const CallOptions& options) {
    using Found = std::optional<bson::Document>;
    return call<Found>(
        "find_and_modify", request.collection, 1, options,
        [&](SimulatedServer::State& server) -> Result<Found> {
            ANGELIA_TRY_ASSIGN(const query::Matcher filter, query::Matcher::parse(request.filter));
            ANGELIA_TRY_ASSIGN(const query::SortSpec sort, query::SortSpec::parse(request.sort));
            ANGELIA_TRY_ASSIGN(const query::Projection projection,
                               query::Projection::parse(request.projection));
            SharedDocument image;
            if (request.remove) {
                ANGELIA_TRY_ASSIGN(const SimulatedWrite done,
                                   server.remove(request.collection, filter, false, sort));
                image = done.before;
            } else {
                ANGELIA_TRY_ASSIGN(const query::Update change,
                                   query::Update::parse(request.update.view(),
                                                        {std::nullopt, false, request.upsert}));
                ANGELIA_TRY_ASSIGN(
                    const SimulatedWrite done,
                    server.update(request.collection, filter, change, false, request.upsert, sort));
                image = request.return_new ? done.after : done.before;
            }
            if (image == nullptr) return Found();
            return Found(projection.apply(*image));
        });
}

Result<DeleteResult> SimulatedStore::remove(const CollectionName& name, std::vector<DeleteOp> ops,
                                            bool ordered, const CallOptions& options) {
    return call<DeleteResult>(
        "remove", name, ops.size(), options,
        [&](SimulatedServer::State& server) -> Result<DeleteResult> {
            DeleteResult result;
            for (std::size_t i = 0; i < ops.size(); ++i) {
                const bool go_on = note(result.errors, i, ordered, [&]() -> Result<void> {
                    ANGELIA_TRY_ASSIGN(const query::Matcher filter,
                                       query::Matcher::parse(ops[i].filter));
                    ANGELIA_TRY_ASSIGN(const SimulatedWrite done,
                                       server.remove(name, filter, ops[i].multi));
                    result.deleted += done.matched;
                    return {};
                });
                if (!go_on) break;
            }
            return result;
        });
}

Result<BulkResult> SimulatedStore::bulk_write(std::vector<BulkOp> ops, bool ordered,
                                              const CallOptions& options) {
    const CollectionName first = ops.front().collection;
    return call<BulkResult>(
        "bulk_write", first, ops.size(), options,
        [&](SimulatedServer::State& server) -> Result<BulkResult> {
            BulkResult result;
            result.effective.resize(ops.size());
            const auto run = [&](const BulkOp& op) -> Result<bool> {
                if (op.kind == BulkOp::Kind::Insert) {
                    ANGELIA_TRY(server.insert(op.collection, op.document));
                    ++result.inserted;
                    return true;
                } else if (op.kind == BulkOp::Kind::Update) {
                    ANGELIA_TRY_ASSIGN(const SimulatedUpdate parsed, parse(op.update));
                    ANGELIA_TRY_ASSIGN(const SimulatedWrite done,
                                       server.update(op.collection, parsed.filter, parsed.update,
                                                     op.update.multi, op.update.upsert));
                    result.matched += done.matched;
                    result.modified += done.modified;
                    result.upserted += done.upserted_id.is_missing() ? 0 : 1;
                    return done.modified > 0 || !done.upserted_id.is_missing();
                } else {
                    ANGELIA_TRY_ASSIGN(const query::Matcher filter,
                                       query::Matcher::parse(op.remove.filter));
                    ANGELIA_TRY_ASSIGN(const SimulatedWrite done,
                                       server.remove(op.collection, filter, op.remove.multi));
                    result.deleted += done.matched;
                    return done.matched > 0;
                }
            };
            for (std::size_t i = 0; i < ops.size(); ++i) {
                const bool go_on = note(result.errors, i, ordered, [&]() -> Result<void> {
                    ANGELIA_TRY_ASSIGN(const bool effective, run(ops[i]));
                    result.effective[i] = effective;
                    return {};
                });
                if (!go_on) break;
            }
            return result;
        });
}

Result<ClaimResult> SimulatedStore::claim(ClaimRequest request, const CallOptions& options) {
    using Outcome = ClaimResult::Outcome;
    return call<ClaimResult>(
        "claim", request.locks, request.candidates.size(), options,
        [&](SimulatedServer::State& server) -> Result<ClaimResult> {
            ClaimResult result;
            result.entries.resize(request.candidates.size());
            for (std::size_t i = 0; i < request.candidates.size(); ++i) {
                const ClaimRequest::Candidate& c = request.candidates[i];
                auto& entry = result.entries[i];
                const auto parsed =
                    parse(UpdateOp{c.condition.copy(), c.update.copy(), false, false});
                if (!parsed) {
                    entry.outcome = Outcome::Changed;
                    entry.error = parsed.error();
                    continue;
                }
                ANGELIA_TRY_ASSIGN(const bool locked,
                                   take_lock(server, request.locks, c, entry.error));
                if (!locked) continue;
                const auto won =
                    server.update(request.documents, parsed->filter, parsed->update, false, false);
                entry.outcome = won && won->modified > 0 ? Outcome::Claimed : Outcome::Changed;
                if (!won) entry.error = won.error();
                if (entry.outcome == Outcome::Changed) {
                    ANGELIA_TRY_ASSIGN(const query::Matcher mine,
                                       query::Matcher::parse(bson::make("_id", c.lock["_id"])));
                    ANGELIA_TRY(server.remove(request.locks, mine, false));
                } else if (request.return_documents) {
                    entry.document = won->after->copy();
                }
            }
            return result;
        });
}

Result<std::int64_t> SimulatedStore::count(const CollectionName& name, bson::DocumentView filter,
                                           const CallOptions& options) {
    return call<std::int64_t>(
        "count", name, 1, options, [&](SimulatedServer::State& server) -> Result<std::int64_t> {
            ANGELIA_TRY_ASSIGN(const query::Matcher matcher, query::Matcher::parse(filter));
            ANGELIA_TRY_ASSIGN(const std::vector<std::uint64_t> found,
                               server.matching(name, matcher, false, {}));
            return static_cast<std::int64_t>(found.size());
        });
}

Result<void> SimulatedStore::ensure_indexes(const CollectionName& name,
                                            std::vector<IndexDefinition> indexes,
                                            const CallOptions& options) {
    return call<void>("ensure_indexes", name, indexes.size(), options,
                      [&](SimulatedServer::State& server) -> Result<void> {
                          for (const auto& index : indexes)
                              ANGELIA_TRY(server.add_index(name, index));
                          return {};
                      });
}

Result<void> SimulatedStore::drop(const CollectionName& name, const CallOptions& options) {
    return call<void>("drop", name, 1, options,
                      [&](SimulatedServer::State& server) { return server.drop(name); });
}

Result<std::vector<std::string>> SimulatedStore::list_collections(std::string_view db,
                                                                  const CallOptions& options) {
    using Names = std::vector<std::string>;
    return call<Names>("list_collections", kNowhere, 1, options,
                       [&](SimulatedServer::State& server) -> Result<Names> {
                           Names names;
                           for (const auto& [name, c] : server.collections) {
                               if (name.db == db) names.push_back(name.collection);
                           }
                           return names;
                       });
}

Result<std::unique_ptr<Watch>> SimulatedStore::watch(WatchRequest request, WatchEvents events) {
    ANGELIA_TRY_ASSIGN(query::Matcher match, match_of(request.stages));
    if (request.resume_after && !time_of(*request.resume_after))
        return {ErrorCode::InvalidResumeToken, "resume_after is no token of this store"};
    return call<std::unique_ptr<Watch>>(
        "watch", CollectionName(request.collection), 1, {},
        [&](SimulatedServer::State& server) -> Result<std::unique_ptr<Watch>> {
            auto watch = std::make_shared<SimulatedWatch>(server_, client_, std::move(request),
                                                          std::move(events), std::move(match));
            server.watches.push_back(watch);
            watch->start();
            return std::unique_ptr<Watch>(std::make_unique<SimulatedWatchHandle>(std::move(watch)));
        });
}

Result<ServerTime> SimulatedStore::server_time(const CallOptions&) {
    return call<ServerTime>("server_time", kNowhere, 1, {},
                            [](SimulatedServer::State& server) -> Result<ServerTime> {
                                return ServerTime{server.now(), microseconds(0)};
                            });
}

Result<Capabilities> SimulatedStore::capabilities() {
    return call<Capabilities>("capabilities", kNowhere, 1, {},
                              [](SimulatedServer::State& server) -> Result<Capabilities> {
                                  Capabilities c;
                                  c.change_streams = c.start_after = c.batch_tokens =
                                      server.change_streams;
                                  c.fills_timestamps = c.ttl_indexes = c.transactions = true;
                                  c.topology = "simulated";
                                  c.server_version = "simulated";
                                  return c;
                              });
}

Result<std::unique_ptr<Session>> SimulatedStore::start_session() {
    {
        const std::lock_guard<std::mutex> lock(server_->mutex);
        ANGELIA_TRY(client_->check_alive());
    }
    return client_->sessions.add(std::make_shared<SimulatedSession>(this, server_, client_));
}

std::unique_ptr<Diagnostics> SimulatedStore::diagnostics() {
    return std::make_unique<SimulatedDiagnostics>();
}

std::string SimulatedStore::describe() const { return "simulated:" + client_->name; }

Result<void> SimulatedStore::close() {
    client_->sessions.end_all();
    std::vector<std::shared_ptr<SimulatedWatch>> mine;
    {
        const std::lock_guard<std::mutex> lock(server_->mutex);
        client_->closed = true;
        for (const auto& weak : server_->watches) {
            if (auto watch = weak.lock(); watch != nullptr && watch->client() == client_)
                mine.push_back(std::move(watch));
        }
    }
    for (const auto& watch : mine) watch->close();
    return {};
}

}  // namespace angelia::store::testing
