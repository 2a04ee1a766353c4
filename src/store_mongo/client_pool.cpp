#include "store_mongo/client_pool.h"

#include "store_mongo/driver_error.h"

#include <fmt/format.h>

#include <system_error>
#include <thread>

namespace angelia::store::mongo {
namespace {

// Longer than the longest verb is allowed to take; a stalled server is noticed after this. The
// driver's default is five minutes.
constexpr milliseconds kSocketTimeout{40'000};
constexpr milliseconds kCloseWait{2'000};

// Never undone: the driver cannot be started again after mongoc_cleanup, and the application may
// use it too.
void start_driver_once() {
    static std::once_flag started;
    std::call_once(started, [] { mongoc_init(); });
}

void set_default(mongoc_uri_t* uri, const char* option, milliseconds value) {
    if (!mongoc_uri_has_option(uri, option))
        mongoc_uri_set_option_as_int32(uri, option, static_cast<std::int32_t>(value.count()));
}

}  // namespace

Result<std::shared_ptr<ClientPool>> ClientPool::open(const std::string& address,
                                                     const OpenOptions& options) {
    start_driver_once();
    bson_error_t error{};
    std::shared_ptr<ClientPool> self(new ClientPool);
    self->uri_.reset(mongoc_uri_new_with_error(address.c_str(), &error));
    if (self->uri_ == nullptr)
        return {ErrorCode::FailedToParse,
                fmt::format("the MongoDB connection string is not valid: {}", error.message)};
    mongoc_uri_t* uri = self->uri_.get();
    set_default(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, options.server_selection_timeout);
    set_default(uri, MONGOC_URI_CONNECTTIMEOUTMS,
                std::min(options.server_selection_timeout, milliseconds(10'000)));
    set_default(uri, MONGOC_URI_SOCKETTIMEOUTMS, kSocketTimeout);
    if (mongoc_uri_get_appname(uri) == nullptr) mongoc_uri_set_appname(uri, "angelia");
    self->clients_max_ = static_cast<std::size_t>(
        std::max(1, mongoc_uri_get_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, 100)));

    self->pool_.reset(mongoc_client_pool_new_with_error(uri, &error));
    if (self->pool_ == nullptr)
        return {ErrorCode::FailedToParse,
                fmt::format("the MongoDB connection string is not valid: {}", error.message)};
    mongoc_client_pool_set_error_api(self->pool_.get(), MONGOC_ERROR_API_VERSION_2);
    return self;
}

// Ending the driver's monitors takes up to half a second, as they look for it so often: nobody has
// to wait for that.
ClientPool::~ClientPool() {
    mongoc_client_pool_t* pool = pool_.release();
    if (pool == nullptr) return;
    try {
        std::thread([pool] { mongoc_client_pool_destroy(pool); }).detach();
    } catch (const std::system_error&) {
        mongoc_client_pool_destroy(pool);
    }
}

Result<PooledClient> ClientPool::borrow(milliseconds timeout) {
    {
        std::unique_lock<std::mutex> lock(mutex_);
        const bool free = changed_.wait_for(lock, timeout,
                                            [this] { return closed_ || borrowed_ < clients_max_; });
        if (closed_) return {ErrorCode::ShutdownInProgress, "the store was closed"};
        if (!free) {
            return {ErrorCode::ExceededTimeLimit,
                    fmt::format("all {} connections of the pool were in use for {} ms; maxPoolSize "
                                "in the address allows more",
                                clients_max_, timeout.count())};
        }
        ++borrowed_;
    }
    return PooledClient(shared_from_this(), mongoc_client_pool_pop(pool_.get()));
}

void ClientPool::give_back(mongoc_client_t* client) {
    mongoc_client_pool_push(pool_.get(), client);
    const std::lock_guard<std::mutex> lock(mutex_);
    --borrowed_;
    changed_.notify_all();
}

Result<ClientPtr> ClientPool::single(milliseconds read_deadline) const {
    const UriPtr uri(mongoc_uri_copy(uri_.get()));
    mongoc_uri_set_option_as_int32(uri.get(), MONGOC_URI_SOCKETTIMEOUTMS,
                                   static_cast<std::int32_t>(read_deadline.count()));
    bson_error_t error{};
    ClientPtr client(mongoc_client_new_from_uri_with_error(uri.get(), &error));
    if (client == nullptr) return from_driver(error);
    mongoc_client_set_error_api(client.get(), MONGOC_ERROR_API_VERSION_2);
    return client;
}

void ClientPool::refuse() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
}

void ClientPool::close() {
    refuse();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kCloseWait, [this] { return borrowed_ == 0; });
}

bool ClientPool::closed() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
}

Result<bson::Document> run_command(mongoc_client_t* client, std::string_view db,
                                   bson::DocumentView command, CommandKind kind,
                                   const bson_t* options) {
    const BsonArgument argument(command);
    const std::string name(db);
    ReplyBson reply;
    bson_error_t error{};
    const bool ok = kind == CommandKind::Write
                        ? mongoc_client_write_command_with_opts(client, name.c_str(), argument,
                                                                options, reply.out(), &error)
                        : mongoc_client_command_with_opts(client, name.c_str(), argument, nullptr,
                                                          options, reply.out(), &error);
    if (!ok) return from_driver(error, reply.get());
    return take_document(reply.get());
}

}  // namespace angelia::store::mongo
