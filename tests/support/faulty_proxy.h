// Stands between a MongoDB client and a server and spoils the conversation on demand: messages are
// delayed, swallowed, cut, stalled in their middle or answered falsely. It understands just enough
// of the wire protocol to know commands from their replies.
#pragma once

#include <angelia/bson/builder.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace angelia::test_support {

/// Threads: safe. Rules run on the proxy's threads.
class FaultyProxy {
  public:
    struct Command {
        std::string name;
        bson::Document body;
        int connection = 0;  ///< counts from 1 in the order of connecting
    };
    /// What happens to a command's reply.
    struct Fault {
        enum class Kind {
            Pass,
            Answer,       ///< the server never sees the command; `answer` is the reply
            Swallow,      ///< the server executes it, the reply is lost, the connection stays
            CutInside,    ///< half of the reply, then the connection ends
            StallInside,  ///< half of the reply; the rest after release()
            Cut,          ///< the connection ends before the server sees the command
        };
        Kind kind = Kind::Pass;
        bson::Document answer{};
        std::chrono::milliseconds delay{0};  ///< of the reply
    };
    using Rule = std::function<Fault(const Command&)>;
    /// May change the body of a reply.
    using ReplyFilter = std::function<bson::Document(const Command&, bson::Document)>;

    /// Listens on a free loopback port.
    static std::unique_ptr<FaultyProxy> start(std::uint16_t upstream_port);
    virtual ~FaultyProxy() = default;

    virtual std::uint16_t port() const = 0;
    virtual void set_rule(Rule rule) = 0;
    virtual void set_reply_filter(ReplyFilter filter) = 0;
    /// New connections are closed at once while `refused`.
    virtual void refuse_connections(bool refused) = 0;
    virtual void cut_all() = 0;
    /// Stalled replies go on.
    virtual void release() = 0;
    /// Commands with this name that came so far.
    virtual std::vector<Command> commands(const std::string& name) const = 0;
    /// Waits until `count` commands with this name have come; false after ten seconds.
    virtual bool wait_commands(const std::string& name, std::size_t count) const = 0;
    virtual int open_connections() const = 0;
};

/// {ok: 0, ...}.
inline bson::Document error_reply(std::int32_t code, const std::string& name,
                                  const std::string& message) {
    return bson::make("ok", 0.0, "errmsg", message, "code", code, "codeName", name);
}

}  // namespace angelia::test_support
