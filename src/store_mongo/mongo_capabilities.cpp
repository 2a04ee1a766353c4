// What a server can do is tried, never inferred from its version: a server behind a private
// endpoint may name any version it likes.
#include "store_mongo/driver_error.h"
#include "store_mongo/mongo_store.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

namespace angelia::store::mongo {
namespace {

constexpr const char* kStandalone = "standalone";

std::string topology_of(bson::DocumentView reply) {
    if (const auto name = reply["setName"].get_string())
        return fmt::format("replica set {}", *name);
    return reply["msg"].get_string() == "isdbgrid" ? "sharded" : kStandalone;
}

bool is_unknown_option(const Error& error) {
    return error.code == ErrorCode::Location40415 ||
           error.message.find("startAfter") != std::string::npos;
}

Result<bson::Document> open_probe_stream(mongoc_client_t* client, const CollectionName& name,
                                         bson::DocumentView stage) {
    const bson::Document command = bson::make("aggregate", name.collection, "pipeline",
                                              bson::array(bson::make("$changeStream", stage)),
                                              "cursor", bson::make("batchSize", std::int32_t{1}));
    ANGELIA_TRY_ASSIGN(bson::Document reply,
                       run_command(client, name.db, command, CommandKind::Read));
    const auto cursor = reply.view().find_path("cursor.id").to_int64().value_or(0);
    if (cursor != 0) {
        // Failing to close the probe's cursor is no news about the capability; the server ends idle
        // cursors by itself.
        (void)run_command(
            client, name.db,
            bson::make("killCursors", name.collection, "cursors", bson::array(cursor)),
            CommandKind::Read);
    }
    return reply;
}

void probe_streams(mongoc_client_t* client, const CollectionName& name, Capabilities& found,
                   Learned& learned) {
    const auto opened = open_probe_stream(client, name, bson::DocumentView());
    found.change_streams = opened.has_value();
    if (!opened) return;
    const auto token = opened->view().find_path("cursor.postBatchResumeToken").get_document();
    found.batch_tokens = token.has_value();
    found.start_after = learned.start_after;
    if (!token || !found.start_after) return;
    const auto again = open_probe_stream(client, name, bson::make("startAfter", *token));
    found.start_after = again.has_value() || !is_unknown_option(again.error());
    if (!found.start_after) learned.start_after = false;
}

/// Writes into a collection of its own that is dropped again. A user who may not write leaves both
/// false.
void probe_writes(mongoc_client_t* client, const CollectionName& name, Capabilities& found) {
    const bson::Document empty = bson::make("_id", std::int32_t{1}, "at", bson::Timestamp{});
    const auto inserted = run_command(
        client, name.db, bson::make("insert", name.collection, "documents", bson::array(empty)),
        CommandKind::Write);
    if (!inserted) return;
    FindRequest find;
    find.collection = name;
    const auto documents = find_documents(client, find, {});
    if (documents && !documents->empty()) {
        const auto at = (*documents)[0]["at"].get_timestamp();
        found.fills_timestamps = at && at->as_uint64() != 0;
    }
    const bson::Document index =
        bson::make("name", "ttl", "key", bson::make("expires", std::int32_t{1}),
                   "expireAfterSeconds", std::int32_t{0});
    found.ttl_indexes =
        run_command(client, name.db,
                    bson::make("createIndexes", name.collection, "indexes", bson::array(index)),
                    CommandKind::Write)
            .has_value();
    // The probe's collection holds one document; when it cannot be dropped there is nothing to undo
    // but the name, which doctor lists.
    (void)run_command(client, name.db, bson::make("drop", name.collection), CommandKind::Write);
}

/// A read in a transaction that is thrown away; nothing is written.
bool probe_transactions(mongoc_client_t* client, const CollectionName& name, Learned& learned) {
    if (!check_no_standalone(client, learned)) return false;
    bson_error_t error{};
    const SessionPtr session(mongoc_client_start_session(client, nullptr, &error));
    if (session == nullptr) return false;
    if (!mongoc_client_session_start_transaction(session.get(), nullptr, &error)) return false;
    Connection connection(client);
    connection.session = session.get();
    FindRequest find;
    find.collection = name;
    const bool read = find_documents(connection, find, {}).has_value();
    // Whether it could be aborted is no news: the server ends it by itself.
    (void)mongoc_client_session_abort_transaction(session.get(), &error);
    return read;
}

class MongoDiagnostics final : public Diagnostics {
  public:
    explicit MongoDiagnostics(std::shared_ptr<ClientPool> pool) : pool_(std::move(pool)) {}

    Result<bson::Document> run_command(std::string_view db, bson::DocumentView command) override {
        ANGELIA_TRY_ASSIGN(const PooledClient client, pool_->borrow(milliseconds(5000)));
        return mongo::run_command(client.get(), db, command, CommandKind::Read);
    }

    // The span of the oplog, as far as it may be read.
    Result<double> log_window_hours() override {
        ANGELIA_TRY_ASSIGN(const PooledClient client, pool_->borrow(milliseconds(5000)));
        ANGELIA_TRY_ASSIGN(const std::int64_t first, oplog_end(client.get(), 1));
        ANGELIA_TRY_ASSIGN(const std::int64_t last, oplog_end(client.get(), -1));
        return static_cast<double>(last - first) / 3600.0;
    }

    Result<microseconds> write_latency(const CollectionName& scratch, int writes) override {
        ANGELIA_TRY_ASSIGN(const PooledClient client, pool_->borrow(milliseconds(5000)));
        const auto start = std::chrono::steady_clock::now();
        for (std::int32_t i = 0; i < writes; ++i) {
            const bson::Document document = bson::make("_id", bson::ObjectId::generate(), "n", i);
            const bson::Document insert =
                bson::make("insert", scratch.collection, "documents", bson::array(document),
                           "writeConcern", bson::make("w", "majority"));
            ANGELIA_TRY(mongo::run_command(client.get(), scratch.db, insert, CommandKind::Write));
        }
        const auto spent =
            std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start);
        ANGELIA_TRY(mongo::run_command(client.get(), scratch.db,
                                       bson::make("drop", scratch.collection), CommandKind::Write));
        return microseconds(writes > 0 ? spent.count() / writes : 0);
    }

  private:
    static Result<std::int64_t> oplog_end(mongoc_client_t* client, std::int32_t direction) {
        FindRequest find;
        find.collection = {"local", "oplog.rs"};
        find.sort = bson::make("$natural", direction);
        find.limit = 1;
        const auto documents = find_documents(client, find, {});
        if (!documents || documents->empty()) return oplog_end_of_status(client, direction);
        return std::int64_t{
            (*documents)[0]["ts"].get_timestamp().value_or(bson::Timestamp{}).seconds};
    }
    /// For servers whose oplog is no collection that may be read: serverStatus shows its ends.
    static Result<std::int64_t> oplog_end_of_status(mongoc_client_t* client,
                                                    std::int32_t direction) {
        ANGELIA_TRY_ASSIGN(const bson::Document status,
                           mongo::run_command(client, "admin",
                                              bson::make("serverStatus", std::int32_t{1}, "oplog",
                                                         std::int32_t{1}),
                                              CommandKind::Read));
        const auto end =
            status.view()
                .find_path(direction > 0 ? "oplog.earliestOptime" : "oplog.latestOptime")
                .get_timestamp();
        if (!end)
            return {ErrorCode::NamespaceNotFound,
                    "the server has no oplog that this user may read"};
        return std::int64_t{end->seconds};
    }

    std::shared_ptr<ClientPool> pool_;  ///< shared with the store
};

}  // namespace

Result<Capabilities> probe_capabilities(mongoc_client_t* client, const std::string& database,
                                        Learned& learned) {
    Capabilities found;
    ANGELIA_TRY_ASSIGN(const bson::Document greeting, hello(client));
    found.topology = topology_of(greeting);
    if (const auto build = run_command(client, "admin", bson::make("buildInfo", std::int32_t{1}),
                                       CommandKind::Read)) {
        found.server_version = std::string((*build)["version"].get_string().value_or("unknown"));
    } else {
        found.server_version = "unknown";
    }
    const CollectionName scratch{database, "angelia_probe_" + bson::ObjectId::generate().to_hex()};
    probe_streams(client, scratch, found, learned);
    probe_writes(client, scratch, found);
    found.transactions = probe_transactions(client, scratch, learned);
    return found;
}

Result<void> check_no_standalone(mongoc_client_t* client, Learned& learned) {
    if (learned.no_standalone) return {};
    ANGELIA_TRY_ASSIGN(const bson::Document greeting, hello(client));
    if (topology_of(greeting) == kStandalone) {
        return {ErrorCode::IllegalOperation,
                "the server runs alone, and MongoDB has transactions only in a replica set. One "
                "node is enough: start it with `mongod --replSet rs0`, then run `rs.initiate()` "
                "in mongosh"};
    }
    learned.no_standalone = true;
    return {};
}

std::unique_ptr<Diagnostics> make_diagnostics(std::shared_ptr<ClientPool> pool) {
    return std::make_unique<MongoDiagnostics>(std::move(pool));
}

}  // namespace angelia::store::mongo
