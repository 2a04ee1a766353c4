// Sessions of the driver. A session keeps one connection of the pool for itself: the driver's
// sessions belong to the client that made them.
#pragma once

#include "store/session_core.h"
#include "store_mongo/client_pool.h"

#include <angelia/bson/builder.h>

#include <atomic>
#include <optional>

namespace angelia::store::mongo {

/// What trying has taught about the server; shared by the adapter and its watches. Threads: safe.
struct Learned {
    std::atomic<bool> start_after{true};     ///< until a server refuses it
    std::atomic<bool> no_standalone{false};  ///< once it was seen to be none
    std::atomic<bool> bulk_command{true};    ///< bulkWrite: until a server refuses it
    /// Claims that go the long way before one command is tried again: somebody else wants the same.
    std::atomic<int> claims_contended{0};
};

/// What a verb speaks through: a client, and the session it is in, if any.
struct Connection {
    Connection(mongoc_client_t* c) : client(c) {}  // implicit: most callers have no session
    operator mongoc_client_t*() const { return client; }

    mongoc_client_t* client;
    mongoc_client_session_t* session = nullptr;
};

/// Names the session in a call's options.
Result<void> append_session(bson::Builder& options, const Connection& connection);

/// The server labels its errors; the driver's own get theirs here.
Error statement_error(Error error);

class MongoSession final : public SessionCore {
  public:
    /// Errors: those of ClientPool::borrow; IllegalOperation (a server without sessions).
    static Result<std::shared_ptr<MongoSession>> open(const void* store, PooledClient client,
                                                      std::shared_ptr<Learned> learned);

    Connection connection() const;

  private:
    MongoSession(const void* store, PooledClient client, std::shared_ptr<Learned> learned)
        : SessionCore(store), learned_(std::move(learned)), client_(std::move(client)) {}
    Result<void> start(const TransactionOptions& options) override;
    Result<void> commit(const TransactionOptions& options, bool again) override;
    void abort() override;
    void forget_empty() override { abort(); }  // the driver sends nothing
    void release() override;

    const std::shared_ptr<Learned> learned_;  ///< shared with the store
    std::optional<PooledClient> client_;      ///< until the session ends
    SessionPtr session_;                      ///< of the client
};

}  // namespace angelia::store::mongo
