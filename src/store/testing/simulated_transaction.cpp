#include "store/testing/simulated_transaction.h"

#include "store/testing/simulated_call.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

namespace angelia::store::testing {
namespace {

/// The event of a commit: at its time, and with its session and number.
bson::Document committed_body(const bson::Document& body, bson::Timestamp time, bson::Date wall,
                              std::uint64_t transaction) {
    bson::Builder b;
    for (const auto& [key, value] : body.view()) {
        if (key == "clusterTime") {
            b.add(key, time);
        } else if (key == "wallTime") {
            b.add(key, wall);
        } else {
            b.add(key, value);
        }
    }
    const std::string id = fmt::format("{:016x}", transaction);
    b.open("lsid").add("id", bson::BinaryView{4, id}).close();
    b.add("txnNumber", std::int64_t{1});
    return b.take();
}

}  // namespace

SimulatedTransaction::SimulatedTransaction(SimulatedServer::State& server)
    : id(++server.last_transaction),
      started(server.clock.steady_now()),
      view(server.executor, server.clock) {
    view.server = &server;
    view.transaction = this;
    view.collections = server.collections;
    view.last_time = server.last_time;
    view.last_sequence = server.last_sequence;
    view.clock_offset = server.clock_offset;
    for (const auto& [name, c] : server.collections) collections.insert(name);
}

std::shared_ptr<SimulatedTransaction> SimulatedServer::State::begin() {
    auto made = std::make_shared<SimulatedTransaction>(*this);
    open_transactions[made->id] = made;
    return made;
}

void SimulatedServer::State::forget(const SimulatedTransaction& t) {
    std::erase_if(intents, [&t](const auto& intent) { return intent.second == t.id; });
    open_transactions.erase(t.id);
}

void SimulatedServer::State::abort(SimulatedTransaction& t) {
    if (t.phase != SimulatedTransaction::Phase::Open) return;
    t.phase = SimulatedTransaction::Phase::Aborted;
    const auto alive = open_transactions[t.id];  // until the end of this function
    forget(t);
}

void SimulatedServer::State::abort_overdue() {
    const auto all = open_transactions;
    for (const auto& [id, t] : all) {
        if (clock.steady_now() - t->started >= kSimulatedLifetime) abort(*t);
    }
}

Result<void> SimulatedServer::State::commit(SimulatedTransaction& t) {
    t.phase = SimulatedTransaction::Phase::Aborted;
    const auto alive = open_transactions[t.id];
    forget(t);
    struct Moved {
        CollectionName name;
        SharedDocument after;
        std::optional<std::uint64_t> sequence;  ///< of the document that was there
    };
    std::vector<Moved> moved;
    std::set<std::string> seen;
    for (const auto& event : t.view.events) {
        const bson::ValueView id = event->document_id.view();
        if (!seen.insert(document_key(event->collection, id)).second) continue;
        moved.push_back({event->collection, t.view.document(event->collection, id),
                         sequence_of(event->collection, id)});
    }
    const auto before = collections;
    for (const auto& m : moved) {
        if (m.sequence) leave(collections[m.name], *m.sequence);
    }
    for (const auto& m : moved) {
        if (m.after == nullptr) continue;
        const std::uint64_t sequence = m.sequence ? *m.sequence : ++last_sequence;
        if (!enter(m.name, collections[m.name], sequence, m.after)) {
            collections = before;
            return {ErrorCode::WriteConflict,
                    "a unique index that was made meanwhile does not allow the commit"};
        }
    }
    for (const auto& event : t.view.events) {
        const bson::Timestamp time = next_time();
        log({time, event->collection, committed_body(event->body, time, now(), t.id),
             event->document_id, event->is_update, event->is_drop});
    }
    t.phase = SimulatedTransaction::Phase::Committed;
    return {};
}

Result<void> SimulatedServer::State::touch(const std::string& key, bool unchanged) {
    const State& holder = server == nullptr ? *this : *server;
    const auto held = holder.intents.find(key);
    if (server == nullptr) {
        if (held == holder.intents.end()) return {};
        blocked = true;
        return {ErrorCode::MaxTimeMSExpired,
                "an open transaction holds what this write changes; a simulated call does not wait "
                "for it"};
    }
    if (held != holder.intents.end() && held->second == transaction->id) return {};
    if (held != holder.intents.end() || !unchanged) {
        return {ErrorCode::WriteConflict,
                "Write conflict: another transaction has changed this, please retry"};
    }
    server->intents[key] = transaction->id;
    return {};
}

Result<void> SimulatedServer::State::check_collection(const CollectionName& name) const {
    if (server == nullptr) return {};
    if (transaction->collections.count(name) == server->collections.count(name)) return {};
    return {
        ErrorCode::SnapshotUnavailable,
        fmt::format("{} was made or dropped after the snapshot of the transaction", name.full())};
}

Error SimulatedSession::not_open() const {
    return {ErrorCode::NoSuchTransaction,
            "The transaction has been aborted, or has never reached the server."};
}

Result<void> SimulatedSession::start(const TransactionOptions&) {
    transaction_.reset();
    return {};
}

Result<void> SimulatedSession::commit(const TransactionOptions&, bool) {
    return call_server<void>(*server_, *client_, "commit_transaction", {}, 1,
                             [this](SimulatedServer::State& server) -> Result<void> {
                                 using Phase = SimulatedTransaction::Phase;
                                 if (!transaction_ || transaction_->phase == Phase::Aborted)
                                     return not_open();
                                 if (transaction_->phase == Phase::Committed) return {};
                                 return server.commit(*transaction_);
                             });
}

// Nobody is told whether it arrived; a transaction that stays open ends after a minute.
void SimulatedSession::abort() {
    (void)call_server<void>(*server_, *client_, "abort_transaction", {}, 1,
                            [this](SimulatedServer::State& server) -> Result<void> {
                                if (transaction_ != nullptr) server.abort(*transaction_);
                                return {};
                            });
}

}  // namespace angelia::store::testing
