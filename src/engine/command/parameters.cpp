// getParameter, setParameter, getCmdLineOpts.
#include "engine/command/announce.h"
#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/server_state.h"

#include <fmt/format.h>

#include <functional>

namespace angelia::engine::command {
namespace {

struct ServerParameter {
    std::string_view name;
    void (*read)(Call& call, bson::Builder& b, std::string_view name);
    /// nullptr: cannot be changed.
    Result<void> (*write)(Call& call, bson::ValueView value) = nullptr;
};

Result<std::int64_t> positive_seconds(std::string_view name, bson::ValueView value) {
    const auto seconds = value.to_int64();
    if (!value.is_number()) return wrong_type(fmt::format("setParameter.{}", name), value, "int");
    if (!seconds || *seconds < 1 || *seconds > INT32_MAX)
        return Error(ErrorCode::BadValue,
                     fmt::format("{} has to be within 1 and {}", name, INT32_MAX));
    return *seconds;
}

Result<void> set_ttl_interval(Call& call, bson::ValueView value) {
    ANGELIA_TRY_ASSIGN(const auto seconds, positive_seconds("ttlMonitorSleepSecs", value));
    call.engine().set_ttl_interval(milliseconds(seconds * 1000));
    return {};
}

Result<void> set_transaction_lifetime(Call& call, bson::ValueView value) {
    ANGELIA_TRY_ASSIGN(call.engine().settings().transaction_lifetime_seconds,
                       positive_seconds("transactionLifetimeLimitSeconds", value));
    return {};
}

Result<void> set_snapshot_window(Call& call, bson::ValueView value) {
    ANGELIA_TRY_ASSIGN(call.engine().settings().snapshot_window_seconds,
                       positive_seconds("minSnapshotHistoryWindowInSeconds", value));
    return {};
}

void read_seconds(bson::Builder& b, std::string_view name, std::int64_t seconds) {
    b.add(name, static_cast<std::int32_t>(seconds));
}

Result<void> set_no_table_scan(Call&, bson::ValueView value) {
    if (!value.truthy()) return {};
    return Error(ErrorCode::BadValue,
                 "notablescan can only be false: queries without an index are always allowed");
}

Result<void> set_log_level(Call& call, bson::ValueView value) {
    if (!value.is_number()) return wrong_type("setParameter.logLevel", value, "int");
    const auto level = value.to_int64();
    if (!level || *level < 0 || *level > 5)
        return Error(ErrorCode::BadValue, "logLevel has to be a number within 0 and 5");
    call.state().log_level = static_cast<std::int32_t>(*level);
    return {};
}

// Sorted by name.
constexpr ServerParameter kServerParameters[] = {
    {"acceptApiVersion2",
     [](Call&, bson::Builder& b, std::string_view name) { b.add(name, false); }},
    {"authenticationMechanisms",
     [](Call&, bson::Builder& b, std::string_view name) { b.add(name, bson::Array()); }},
    {"cursorTimeoutMillis",
     [](Call& call, bson::Builder& b, std::string_view name) {
         b.add(name,
               static_cast<std::int64_t>(call.engine().options().cursor_idle_timeout.count()));
     }},
    {"enableTestCommands", [](Call& call, bson::Builder& b,
                              std::string_view name) { b.add(name, call.state().test_commands); }},
    {"featureCompatibilityVersion",
     [](Call&, bson::Builder& b, std::string_view name) {
         b.open(name).add("version", kFeatureCompatibilityVersion).close();
     }},
    {"localLogicalSessionTimeoutMinutes",
     [](Call&, bson::Builder& b, std::string_view name) { b.add(name, kSessionMinutes); }},
    {"logLevel",
     [](Call& call, bson::Builder& b, std::string_view name) {
         b.add(name, call.state().log_level.load());
     },
     set_log_level},
    {"logicalSessionTimeoutMinutes",
     [](Call&, bson::Builder& b, std::string_view name) { b.add(name, kSessionMinutes); }},
    {"minSnapshotHistoryWindowInSeconds",
     [](Call& call, bson::Builder& b, std::string_view name) {
         read_seconds(b, name, call.engine().settings().snapshot_window_seconds.load());
     },
     set_snapshot_window},
    {"notablescan", [](Call&, bson::Builder& b, std::string_view name) { b.add(name, false); },
     set_no_table_scan},
    {"requireApiVersion",
     [](Call&, bson::Builder& b, std::string_view name) { b.add(name, false); }},
    {"transactionLifetimeLimitSeconds",
     [](Call& call, bson::Builder& b, std::string_view name) {
         read_seconds(b, name, call.engine().settings().transaction_lifetime_seconds.load());
     },
     set_transaction_lifetime},
    {"ttlMonitorEnabled",
     [](Call&, bson::Builder& b, std::string_view name) { b.add(name, true); }},
    {"ttlMonitorSleepSecs",
     [](Call& call, bson::Builder& b, std::string_view name) {
         b.add(name, static_cast<std::int32_t>(call.engine().ttl_interval().count() / 1000));
     },
     set_ttl_interval},
};

const ServerParameter* find_parameter(std::string_view name) {
    for (const auto& parameter : kServerParameters)
        if (parameter.name == name) return &parameter;
    return nullptr;
}

bool is_parameter_generic(std::string_view key) {
    return key.substr(0, 1) == "$" || key == "lsid" || key == "comment" || key == "apiVersion" ||
           key == "apiStrict" || key == "apiDeprecationErrors" || key == "maxTimeMS" ||
           key == "readConcern" || key == "writeConcern" || key == "txnNumber";
}

Result<void> get_parameter(const CallPtr& call) {
    const auto which = (*call->body().begin()).value;
    bool all = which.get_string() == "*";
    bool details = false;
    if (const auto given = which.get_document()) {
        const Arguments options("getParameter.getParameter", *given);
        constexpr std::string_view kOptions[] = {"allParameters", "showDetails"};
        ANGELIA_TRY(options.only(kOptions));
        ANGELIA_TRY_ASSIGN(all, options.boolean("allParameters", false));
        ANGELIA_TRY_ASSIGN(details, options.boolean("showDetails", false));
    }
    bson::Builder b;
    bool found = false;
    for (const auto& parameter : kServerParameters) {
        if (!all && !call->body().has(parameter.name)) continue;
        found = true;
        if (!details) {
            parameter.read(*call, b, parameter.name);
            continue;
        }
        b.open(parameter.name);
        parameter.read(*call, b, "value");
        b.add("settableAtRuntime", parameter.write != nullptr).add("settableAtStartup", false);
        b.close();
    }
    if (!found) return Error(ErrorCode::InvalidOptions, "no option found to get");
    call->succeed(std::move(b));
    return {};
}

Result<void> set_parameter(const CallPtr& call) {
    bool first = true;
    const ServerParameter* chosen = nullptr;
    bson::ValueView value;
    for (const auto& [key, given] : call->body()) {
        if (std::exchange(first, false) || is_parameter_generic(key)) continue;
        if (chosen != nullptr)
            return Error(ErrorCode::InvalidOptions, "setParameter takes one parameter at a time");
        chosen = find_parameter(key);
        value = given;
        if (chosen == nullptr || chosen->write == nullptr) {
            std::string allowed;
            for (const auto& p : kServerParameters)
                if (p.write != nullptr)
                    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", p.name);
            return Error(
                ErrorCode::InvalidOptions,
                fmt::format("attempted to set {} parameter '{}'; these can be set: {}",
                            chosen == nullptr ? "unrecognized" : "read-only", key, allowed));
        }
    }
    if (chosen == nullptr)
        return Error(ErrorCode::InvalidOptions,
                     "no option found to set, use help:true to see options ");
    bson::Builder b;
    chosen->read(*call, b, "was");
    ANGELIA_TRY(chosen->write(*call, value));
    call->succeed(std::move(b));
    return {};
}

Result<void> get_command_line(const CallPtr& call) {
    bson::Builder b;
    const bool test = call->state().test_commands;
    b.open_array("argv").push("angelia").push("serve");
    if (test) b.push("--setParameter").push("enableTestCommands=1");
    b.close().open("parsed");
    if (test) b.open("setParameter").add("enableTestCommands", "1").close();
    b.close();
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kGetParameterCommand{.name = "getParameter",
                                               .handler = get_parameter,
                                               .flags = kAdminOnly | kAnyFields | kReads,
                                               .help = "settings of the server; \"*\" for all"};
extern const CommandEntry kSetParameterCommand{.name = "setParameter",
                                               .handler = set_parameter,
                                               .flags = kAdminOnly | kAnyFields,
                                               .help = "changes a setting of the running server"};
extern const CommandEntry kGetCmdLineOptsCommand{
    .name = "getCmdLineOpts",
    .handler = get_command_line,
    .flags = kAdminOnly,
    .help = "how the server was started, as test runners read it"};

}  // namespace angelia::engine::command
