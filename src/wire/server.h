// The engine's network door: listens, accepts, and hands every message to a CommandService.
#pragma once

#include "engine/command/command.h"

#include <angelia/base/log.h>
#include <angelia/base/result.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace angelia::wire {

struct ServerOptions {
    std::string bind = "127.0.0.1";     ///< a loopback address or "localhost"; nothing else, until
                                        ///< there is authentication
    std::uint16_t port = 27027;         ///< 0 = any free one
    std::string advertise_host{};       ///< "host:port" that hello names; empty = bind and port
    int threads = 0;                    ///< 0 = as many as cores, at least two
    int connections_max = 10'000;       ///< further ones are closed at once
    bool enable_test_commands = false;  ///< configureFailPoint
    std::chrono::milliseconds drain_max{5'000};  ///< how long stop() waits for running commands
    LogFunction log = null_log();
};

/// Threads: safe.
class Server {
  public:
    /// Makes a CommandService of its own and writes the address into the store's endpoint note. The
    /// engine must outlive the server. Errors: CommandNotSupported (not a loopback address),
    /// FileStreamFailed (port in use or not allowed).
    static Result<std::unique_ptr<Server>> start(engine::Engine& engine,
                                                 ServerOptions options = {});
    /// Serves the given commands. Errors: as start().
    static Result<std::unique_ptr<Server>> open(
        std::shared_ptr<engine::command::CommandService> service, ServerOptions options = {},
        std::string replica_set_name = "rs0");
    virtual ~Server() = default;

    virtual std::uint16_t port() const = 0;
    /// "mongodb://127.0.0.1:27027/?replicaSet=rs0"
    virtual std::string uri() const = 0;
    virtual int connection_count() const = 0;
    /// Takes no further connections, answers what is running, refuses what comes
    /// (ShutdownInProgress), closes. The destructor calls it.
    virtual void stop() = 0;
};

}  // namespace angelia::wire
