#include "store_mongo/mongo_store.h"

#include "store_mongo/driver_error.h"
#include "store_mongo/mongo_watch.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

namespace angelia::store::mongo {
namespace {

/// {maxTimeMS: ...}, so that a read ends with the call's time.
void append_deadline(bson::Builder& b, const CallOptions& options) {
    b.add("maxTimeMS", static_cast<std::int64_t>(options.timeout.count()));
}

bson::Document index_specification(const IndexDefinition& index) {
    bson::Builder b;
    b.add("name", index.name).add("key", index.key);
    if (index.unique) b.add("unique", true);
    if (index.sparse) b.add("sparse", true);
    if (index.expire_after_seconds) b.add("expireAfterSeconds", *index.expire_after_seconds);
    return b.take();
}

Result<bson::Document> session_options(const Connection& connection) {
    bson::Builder b;
    ANGELIA_TRY(append_session(b, connection));
    return b.take();
}

}  // namespace

Result<bson::Document> hello(mongoc_client_t* client) {
    auto reply =
        run_command(client, "admin", bson::make("hello", std::int32_t{1}), CommandKind::Read);
    if (!reply && reply.error().code == ErrorCode::CommandNotFound) {
        return run_command(client, "admin", bson::make("isMaster", std::int32_t{1}),
                           CommandKind::Read);
    }
    return reply;
}

Result<std::vector<bson::Document>> find_documents(Connection client, const FindRequest& request,
                                                   const CallOptions& options) {
    const CollectionPtr collection(mongoc_client_get_collection(
        client, request.collection.db.c_str(), request.collection.collection.c_str()));
    bson::Builder b;
    if (!request.sort.empty()) b.add("sort", request.sort);
    if (!request.projection.empty()) b.add("projection", request.projection);
    if (request.skip > 0) b.add("skip", request.skip);
    if (request.limit > 0) b.add("limit", request.limit);
    append_deadline(b, options);
    ANGELIA_TRY(append_session(b, client));
    const bson::Document find_options = b.take();
    const ReadPreferencePtr primary(mongoc_read_prefs_new(MONGOC_READ_PRIMARY));
    const CursorPtr cursor(
        mongoc_collection_find_with_opts(collection.get(), BsonArgument(request.filter.view()),
                                         BsonArgument(find_options.view()), primary.get()));
    std::vector<bson::Document> out;
    const bson_t* document = nullptr;
    while (mongoc_cursor_next(cursor.get(), &document)) {
        ANGELIA_TRY_ASSIGN(bson::Document taken, take_document(document));
        out.push_back(std::move(taken));
    }
    bson_error_t error{};
    const bson_t* reply = nullptr;
    if (mongoc_cursor_error_document(cursor.get(), &error, &reply))
        return from_driver(error, reply);
    return out;
}

MongoStore::MongoStore(std::shared_ptr<ClientPool> pool, const StoreAddress& address,
                       const OpenOptions& options, milliseconds reply_grace)
    : pool_(std::move(pool)),
      learned_(std::make_shared<Learned>()),
      description_(address.describe()),
      database_(address.database),
      clock_(*options.clock),
      log_(options.log),
      reply_grace_(reply_grace) {}

MongoStore::~MongoStore() { (void)close(); }

Result<std::shared_ptr<MongoStore>> MongoStore::open(const StoreAddress& address,
                                                     const OpenOptions& options,
                                                     milliseconds reply_grace) {
    ANGELIA_TRY_ASSIGN(std::shared_ptr<ClientPool> pool, ClientPool::open(address.text, options));
    std::shared_ptr<MongoStore> store(
        new MongoStore(std::move(pool), address, options, reply_grace));
    const auto alive = store->with_client<bson::Document>({}, [](Connection client) {
        return run_command(client, "admin", bson::make("ping", std::int32_t{1}), CommandKind::Read);
    });
    if (!alive) {
        Error error = alive.error();
        error.message = fmt::format("cannot reach {}: {}", store->description_, error.message);
        return error;
    }
    return store;
}

Result<std::vector<bson::Document>> MongoStore::find(const FindRequest& request,
                                                     const CallOptions& options) {
    return with_client<std::vector<bson::Document>>(
        options, [&](Connection client) { return find_documents(client, request, options); });
}

Result<std::int64_t> MongoStore::count(const CollectionName& name, bson::DocumentView filter,
                                       const CallOptions& options) {
    return with_client<std::int64_t>(options, [&](Connection client) -> Result<std::int64_t> {
        const CollectionPtr collection(
            mongoc_client_get_collection(client, name.db.c_str(), name.collection.c_str()));
        bson::Builder b;
        append_deadline(b, options);
        ANGELIA_TRY(append_session(b, client));
        const bson::Document count_options = b.take();
        ReplyBson reply;
        bson_error_t error{};
        const std::int64_t n = mongoc_collection_count_documents(
            collection.get(), BsonArgument(filter), BsonArgument(count_options.view()), nullptr,
            reply.out(), &error);
        if (n < 0) return from_driver(error, reply.get());
        return n;
    });
}

Result<ClaimResult> MongoStore::claim(ClaimRequest request, const CallOptions& options) {
    return with_client<ClaimResult>(
        options, [&](Connection client) { return run_claim(client, *learned_, request, options); });
}

Result<void> MongoStore::ensure_indexes(const CollectionName& name,
                                        std::vector<IndexDefinition> indexes,
                                        const CallOptions& options) {
    return with_client<void>(options, [&](Connection client) -> Result<void> {
        bson::Builder b;
        b.add("createIndexes", name.collection).open_array("indexes");
        for (const auto& index : indexes) b.push(index_specification(index));
        b.close();
        ANGELIA_TRY_ASSIGN(const bson::Document session, session_options(client));
        ANGELIA_TRY(run_command(client, name.db, b.take(), CommandKind::Write,
                                BsonArgument(session.view())));
        return {};
    });
}

Result<void> MongoStore::drop(const CollectionName& name, const CallOptions& options) {
    return with_client<void>(options, [&](Connection client) -> Result<void> {
        ANGELIA_TRY_ASSIGN(const bson::Document session, session_options(client));
        const auto done = run_command(client, name.db, bson::make("drop", name.collection),
                                      CommandKind::Write, BsonArgument(session.view()));
        if (!done && done.error().code != ErrorCode::NamespaceNotFound) return done.error();
        return {};
    });
}

Result<std::vector<std::string>> MongoStore::list_collections(std::string_view db,
                                                              const CallOptions& options) {
    using Names = std::vector<std::string>;
    const std::string name(db);
    return with_client<Names>(options, [&](Connection client) -> Result<Names> {
        const DatabasePtr database(mongoc_client_get_database(client, name.c_str()));
        bson::Builder b;
        b.add("nameOnly", true);
        ANGELIA_TRY(append_session(b, client));
        const bson::Document only_names = b.take();
        const CursorPtr cursor(mongoc_database_find_collections_with_opts(
            database.get(), BsonArgument(only_names.view())));
        Names names;
        const bson_t* document = nullptr;
        while (mongoc_cursor_next(cursor.get(), &document)) {
            ANGELIA_TRY_ASSIGN(const bson::Document entry, take_document(document));
            if (const auto text = entry["name"].get_string()) names.emplace_back(*text);
        }
        bson_error_t error{};
        const bson_t* reply = nullptr;
        if (mongoc_cursor_error_document(cursor.get(), &error, &reply))
            return from_driver(error, reply);
        std::sort(names.begin(), names.end());
        return names;
    });
}

Result<std::unique_ptr<Watch>> MongoStore::watch(WatchRequest request, WatchEvents events) {
    if (pool_->closed()) return {ErrorCode::ShutdownInProgress, "the store was closed"};
    auto loop = std::make_shared<WatchLoop>(pool_, learned_, clock_, log_, reply_grace_,
                                            std::move(request), std::move(events));
    ANGELIA_TRY(loop->start());
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::erase_if(watches_, [](const auto& w) { return w.expired(); });
        watches_.push_back(loop);
    }
    if (pool_->closed()) loop->close();  // close() may have missed it
    return std::unique_ptr<Watch>(std::make_unique<WatchHandle>(std::move(loop)));
}

Result<ServerTime> MongoStore::server_time(const CallOptions& options) {
    return with_client<ServerTime>(options, [&](Connection client) -> Result<ServerTime> {
        const SteadyTime before = clock_.steady_now();
        ANGELIA_TRY_ASSIGN(const bson::Document reply, hello(client));
        const auto round_trip =
            std::chrono::duration_cast<microseconds>(clock_.steady_now() - before);
        const auto now = reply["localTime"].get_date();
        if (!now) return {ErrorCode::OperationFailed, "the server's hello names no localTime"};
        return ServerTime{*now, round_trip};
    });
}

Result<Capabilities> MongoStore::capabilities() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (capabilities_) return *capabilities_;
    }
    ANGELIA_TRY_ASSIGN(Capabilities probed, with_client<Capabilities>({}, [&](Connection client) {
                           return probe_capabilities(client, database_, *learned_);
                       }));
    const std::lock_guard<std::mutex> lock(mutex_);
    capabilities_ = probed;
    return probed;
}

Result<std::unique_ptr<Session>> MongoStore::start_session() {
    ANGELIA_TRY_ASSIGN(PooledClient client, pool_->borrow(CallOptions().timeout));
    ANGELIA_TRY_ASSIGN(auto session, MongoSession::open(this, std::move(client), learned_));
    return sessions_.add(std::move(session));
}

std::unique_ptr<Diagnostics> MongoStore::diagnostics() { return make_diagnostics(pool_); }

Result<void> MongoStore::close() {
    pool_->refuse();
    std::vector<std::weak_ptr<WatchLoop>> watches;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        watches.swap(watches_);
    }
    WatchLoop::close_all(watches);
    sessions_.end_all();
    pool_->close();
    return {};
}

}  // namespace angelia::store::mongo
