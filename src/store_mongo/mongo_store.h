// The store port over libmongoc: any MongoDB, or a server that speaks like one.
#pragma once

#include "store/session_core.h"
#include "store_mongo/client_pool.h"
#include "store_mongo/mongo_session.h"

#include <angelia/store/open.h>
#include <angelia/store/store.h>

#include <atomic>
#include <mutex>
#include <optional>

namespace angelia::store::mongo {

class WatchLoop;

/// How much longer than the server may wait the reply to a getMore may take; then the connection is
/// given up. Tests make it short.
inline constexpr milliseconds kReplyGrace{10'000};

/// `CallOptions::timeout` bounds reads (maxTimeMS), waiting for majority (wtimeout) and waiting for
/// a connection; a server that stops answering is noticed after the address's socketTimeoutMS, 40 s
/// unless it says otherwise. Threads: safe.
class MongoStore final : public StoreAdapter {
  public:
    /// Connects and asks for a sign of life. Errors: FailedToParse (bad address), HostUnreachable,
    /// AuthenticationFailed.
    static Result<std::shared_ptr<MongoStore>> open(const StoreAddress& address,
                                                    const OpenOptions& options,
                                                    milliseconds reply_grace = kReplyGrace);
    ~MongoStore() override;

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
    std::string describe() const override { return description_; }
    Result<void> close() override;

  private:
    MongoStore(std::shared_ptr<ClientPool> pool, const StoreAddress& address,
               const OpenOptions& options, milliseconds reply_grace);
    /// Runs `work` with a connection: that of the session, or one of the pool. An error after
    /// close() reads ShutdownInProgress.
    template <class T, class Work>
    Result<T> with_client(const CallOptions& options, Work&& work);

    // constant after construction
    const std::shared_ptr<ClientPool>
        pool_;  ///< shared with calls and watches, which may end later
    const std::shared_ptr<Learned> learned_;
    const std::string description_;
    const std::string database_;
    const Clock& clock_;
    const LogFunction log_;
    const milliseconds reply_grace_;
    // own synchronisation
    OpenSessions sessions_;
    // guarded by mutex_
    std::mutex mutex_;
    std::optional<Capabilities> capabilities_;
    std::vector<std::weak_ptr<WatchLoop>> watches_;
};

template <class T, class Work>
Result<T> MongoStore::with_client(const CallOptions& options, Work&& work) {
    ANGELIA_TRY_ASSIGN(const SessionUse use, SessionUse::begin(options, this));
    Result<T> result = [&]() -> Result<T> {
        if (use) return work(use.as<MongoSession>().connection());
        ANGELIA_TRY_ASSIGN(PooledClient client, pool_->borrow(options.timeout));
        return work(Connection(client.get()));
    }();
    if (result) return result;
    if (pool_->closed())
        return {ErrorCode::ShutdownInProgress,
                "the store was closed during the call: " + result.error().message};
    return use.in_transaction() ? statement_error(std::move(result).error())
                                : std::move(result).error();
}

// -- pieces that the verbs are made of; each works on one connection

/// Waiting for majority ends with the call's time.
void append_write_concern(bson::Builder& options, const CallOptions& call);
Result<std::vector<bson::Document>> find_documents(Connection client, const FindRequest& request,
                                                   const CallOptions& options);
/// One bulk over one collection.
Result<BulkResult> run_bulk(Connection client, const CollectionName& name,
                            std::span<const BulkOp* const> ops, bool ordered,
                            const CallOptions& options,
                            std::vector<std::pair<std::size_t, bson::Value>>* upserted = nullptr);
/// All of `ops` in one command, which the driver does not repeat. Nothing where the server does not
/// have it or they are too many for one.
std::optional<Result<BulkResult>> run_bulk_command(mongoc_client_t* client, Learned& learned,
                                                   std::span<const BulkOp* const> ops, bool ordered,
                                                   const CallOptions& options);
Result<ClaimResult> run_claim(Connection client, Learned& learned, ClaimRequest& request,
                              const CallOptions& options);
Result<Capabilities> probe_capabilities(mongoc_client_t* client, const std::string& database,
                                        Learned& learned);
std::unique_ptr<Diagnostics> make_diagnostics(std::shared_ptr<ClientPool> pool);
/// hello, or isMaster where hello is not known.
Result<bson::Document> hello(mongoc_client_t* client);
/// Errors: IllegalOperation for a server that is neither of a replica set nor a mongos; says how to
/// make it one.
Result<void> check_no_standalone(mongoc_client_t* client, Learned& learned);

}  // namespace angelia::store::mongo
