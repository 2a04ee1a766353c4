// The driver's clients: a pool for verbs, and single clients for watches, whose connection can be
// thrown away alone.
#pragma once

#include "store_mongo/mongoc_ptr.h"

#include <angelia/base/result.h>
#include <angelia/store/open.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

namespace angelia::store::mongo {

class PooledClient;

/// Threads: safe. Shared by the adapter, its calls and its watches.
class ClientPool : public std::enable_shared_from_this<ClientPool> {
  public:
    /// Errors: FailedToParse (the driver's words about the address).
    static Result<std::shared_ptr<ClientPool>> open(const std::string& address,
                                                    const OpenOptions& options);
    ~ClientPool();

    /// Waits while all clients are in use. Errors: ShutdownInProgress, ExceededTimeLimit (all in
    /// use for `timeout`).
    Result<PooledClient> borrow(milliseconds timeout);
    /// A client of its own whose calls wait at most `read_deadline` for a reply. Errors:
    /// OperationFailed.
    Result<ClientPtr> single(milliseconds read_deadline) const;

    /// borrow() is refused from now on and its waiters wake.
    void refuse();
    /// refuse(), then waits until all clients are back, at most two seconds.
    void close();
    bool closed() const;

  private:
    friend class PooledClient;
    ClientPool() = default;
    void give_back(mongoc_client_t* client);

    UriPtr uri_;
    PoolPtr pool_;
    std::size_t clients_max_ = 100;  // the driver's default for maxPoolSize
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t borrowed_ = 0;
    bool closed_ = false;
};

/// Borrowed: goes back to its pool at the end. Declare what belongs to the client (cursors,
/// sessions) after it.
class PooledClient {
  public:
    PooledClient(PooledClient&& other) noexcept
        : pool_(std::move(other.pool_)), client_(std::exchange(other.client_, nullptr)) {}
    PooledClient& operator=(PooledClient&&) = delete;
    ~PooledClient() {
        if (client_ != nullptr) pool_->give_back(client_);
    }
    mongoc_client_t* get() const { return client_; }

  private:
    friend class ClientPool;
    PooledClient(std::shared_ptr<ClientPool> pool, mongoc_client_t* client)
        : pool_(std::move(pool)), client_(client) {}
    std::shared_ptr<ClientPool> pool_;
    mongoc_client_t* client_;
};

enum class CommandKind { Read, Write };
/// Runs one command on the primary. `options`: driver options such as {writeConcern, maxTimeMS};
/// for the primary's id {serverId}.
Result<bson::Document> run_command(mongoc_client_t* client, std::string_view db,
                                   bson::DocumentView command, CommandKind kind,
                                   const bson_t* options = nullptr);

}  // namespace angelia::store::mongo
