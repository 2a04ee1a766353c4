// The command face of the engine: what the wire door calls for every message. One command per file,
// one table (command_table.cpp).
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::engine {
class Engine;
}

namespace angelia::engine::command {

/// A kind-1 section: the documents stay slices of the receive buffer.
struct Sequence {
    std::string_view name;
    std::vector<bson::DocumentView> documents;
};

struct Request {
    bson::DocumentView body;            ///< validated; first key is the command name
    std::vector<Sequence> sequences;    ///< validated
    std::string database;               ///< from $db (OP_MSG) or the namespace (OP_QUERY)
    std::shared_ptr<const void> bytes;  ///< keeps body and sequences alive
    bool unacknowledged = false;        ///< moreToCome: execute, answer nothing
    bool exhaust_allowed = false;
    bool legacy_query = false;  ///< came as OP_QUERY: only the hello family
};

/// What commands know and remember of one connection. Owned by the door; one command at a time uses
/// it.
struct Connection {
    std::int32_t id = 0;
    std::string peer;                               ///< "127.0.0.1:40000"
    std::span<const std::string_view> compressors;  ///< that the door knows; hello offers them
    std::string advertised_host;  ///< "127.0.0.1:27027", what hello puts into hosts, me, primary
    bool hello_seen = false;
    bson::Document client_metadata;  ///< of the first hello
    std::string application_name;
    /// Runs a short task soon on the thread that writes this connection's replies; false when that
    /// has stopped. Empty: no such thread. Constant once the connection runs; any thread.
    std::function<bool(std::function<void()>)> post{};
};

/// Server-wide state that is not the engine's: counters of the door, hello's topology version, fail
/// points.
struct ServerState;

struct Reply {
    bson::Document body{};          ///< complete, with ok, operationTime, $clusterTime
    bool close_connection = false;  ///< after sending (or instead of it, when `send` is false)
    bool send = true;
    bool more_to_come =
        false;  ///< exhaust hello: another reply follows by itself, through the same function
};
/// Called once per reply, from any thread, possibly before run() returns.
using ReplyFunction = std::function<void(Reply)>;

struct ServiceOptions {
    bool enable_test_commands = false;  ///< or the engine's own option
};

/// Executes commands against one engine. Threads: safe.
class CommandService {
  public:
    static std::unique_ptr<CommandService> create(Engine& engine, ServiceOptions options = {});
    virtual ~CommandService() = default;

    /// Never blocks on the disk or on other commands. Errors become replies {ok: 0, errmsg, code,
    /// codeName}.
    virtual void run(const std::shared_ptr<Connection>& connection, Request request,
                     ReplyFunction reply) = 0;
    /// The connection is gone: awaiting hellos and getMores of it end, nothing is sent any more.
    virtual void connection_closed(const std::shared_ptr<Connection>& connection) = 0;
    /// Answers waiting hellos with ShutdownInProgress and refuses new commands with it.
    virtual void begin_shutdown() = 0;

    // counters the door feeds, shown by serverStatus
    std::atomic<std::int64_t> connections_current{0}, connections_total{0}, bytes_in{0},
        bytes_out{0}, requests{0};
};

/// In-process use of commands that have no struct of their own (diagnostics): runs one command and
/// hands back its reply.
void run_in_process(CommandService& service, std::string_view database, bson::Document command,
                    std::function<void(bson::Document)> done);

}  // namespace angelia::engine::command
