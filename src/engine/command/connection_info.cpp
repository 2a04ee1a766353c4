// connectionStatus, whatsmyuri, listCommands, getLog: small answers about the server itself that
// shells ask for when they connect.
#include "engine/command/arguments.h"
#include "engine/command/commands.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kConnectionStatusFields[] = {"showPrivileges"};

Result<void> connection_status(const CallPtr& call) {
    bson::Builder b;
    b.open("authInfo")
        .add("authenticatedUsers", bson::Array())
        .add("authenticatedUserRoles", bson::Array());
    if (call->body().find("showPrivileges").truthy())
        b.add("authenticatedUserPrivileges", bson::Array());
    b.close();
    call->succeed(std::move(b));
    return {};
}

Result<void> whats_my_uri(const CallPtr& call) {
    bson::Builder b;
    b.add("you", call->connection()->peer);
    call->succeed(std::move(b));
    return {};
}

Result<void> list_commands(const CallPtr& call) {
    bson::Builder b;
    b.open("commands");
    for (const CommandEntry* entry : command_table()) {
        b.open(entry->name)
            .add("help", entry->help)
            .add("requiresAuth", false)
            .add("secondaryOk", entry->has(kReads))
            .add("adminOnly", entry->has(kAdminOnly));
        b.open_array("apiVersions");
        if (entry->has(kApiVersion1)) b.push("1");
        b.close().close();
    }
    b.close();
    call->succeed(std::move(b));
    return {};
}

Result<void> get_log(const CallPtr& call) {
    const auto which = (*call->body().begin()).value;
    if (!which.is(bson::Type::String)) return wrong_type("getLog.getLog", which, "string");
    bson::Builder b;
    if (which.as_string() == "*") {
        b.add("names", bson::array("global", "startupWarnings"));
    } else if (which.as_string() == "global" || which.as_string() == "startupWarnings") {
        b.add("totalLinesWritten", std::int32_t{0})
            .add("log", bson::Array());  // the log goes to stderr and is not kept
    } else {
        return Error(
            ErrorCode::OperationFailed,
            fmt::format("No log named '{}'; global and startupWarnings exist", which.as_string()));
    }
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kConnectionStatusCommand{
    .name = "connectionStatus",
    .handler = connection_status,
    .fields = kConnectionStatusFields,
    .help = "who is logged in on this connection: nobody, there is no authentication yet"};
extern const CommandEntry kWhatsMyUriCommand{.name = "whatsmyuri",
                                             .handler = whats_my_uri,
                                             .help = "the client's address as the server sees it"};
extern const CommandEntry kListCommandsCommand{
    .name = "listCommands", .handler = list_commands, .help = "all commands of this server"};
extern const CommandEntry kGetLogCommand{.name = "getLog",
                                         .handler = get_log,
                                         .flags = kAdminOnly,
                                         .help = "recent log lines: none are kept"};

}  // namespace angelia::engine::command
