// Everything an application needs: stores, messaging, and the server that lets others look at an
// embedded store.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>
#include <angelia/bson/json.h>
#include <angelia/messaging/messaging.h>
#include <angelia/store/open.h>

namespace angelia {

using store::CallOptions;
using store::open_store;
using store::OpenOptions;
using store::Session;
using store::Store;
using store::TransactionOptions;

struct ServerOptions {
    std::string bind = "127.0.0.1";     ///< loopback only, until there is authentication
    std::uint16_t port = 27027;         ///< 0 = any free one
    bool enable_test_commands = false;  ///< configureFailPoint
    LogFunction log = null_log();
};

/// Serves an embedded store to MongoDB clients. The store must outlive it. Threads: safe.
class Server {
  public:
    /// Errors: CommandNotSupported (not an embedded store, or not a loopback address),
    /// FileStreamFailed (port in use).
    static Result<std::unique_ptr<Server>> start(const Store& store, ServerOptions options = {});
    virtual ~Server() = default;
    virtual std::uint16_t port() const = 0;
    /// "mongodb://127.0.0.1:27027/?replicaSet=rs0"
    virtual std::string uri() const = 0;
    /// Answers what is running, closes all connections. Called by the destructor too.
    virtual void stop() = 0;
};

std::string version();

/// For a program's main() only: libmongoc logs to stderr through one handler per process, which the
/// library leaves alone. This sends its lines to `log` instead; an empty function silences them.
/// Call it before the first store is opened.
void set_mongo_driver_log(LogFunction log);

}  // namespace angelia
