// serverStatus and hostInfo: counters and the machine.
#include "engine/command/announce.h"
#include "engine/command/commands.h"
#include "engine/command/server_state.h"

#include <fmt/format.h>

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

namespace angelia::engine::command {
namespace {

utsname machine() {
    utsname names{};
    if (::uname(&names) != 0) names = utsname{};  // shown as empty texts
    return names;
}

std::int32_t resident_megabytes() {
    std::ifstream statm("/proc/self/statm");
    std::int64_t total = 0, resident = 0;
    statm >> total >> resident;
    return static_cast<std::int32_t>(resident * ::sysconf(_SC_PAGESIZE) / (1024 * 1024));
}

std::string_view durability_name(Engine& engine) {
    if (engine.storage().memory()) return "memory";
    return engine.storage().durability() == storage::Durability::Strict ? "strict" : "periodic";
}

void add_door(bson::Builder& b, const ServerState& state) {
    const CommandService* service = state.service.load();
    if (service == nullptr) return;
    constexpr std::int64_t kConnectionsShown = 10'000;
    const std::int64_t current = service->connections_current.load();
    b.open("connections")
        .add("current", static_cast<std::int32_t>(current))
        .add("available",
             static_cast<std::int32_t>(std::max<std::int64_t>(0, kConnectionsShown - current)));
    b.add("totalCreated", service->connections_total.load())
        .add("active", static_cast<std::int32_t>(current))
        .close();
    b.open("network")
        .add("bytesIn", service->bytes_in.load())
        .add("bytesOut", service->bytes_out.load())
        .add("numRequests", service->requests.load())
        .close();
}

void add_operations(bson::Builder& b, const ServerState& state) {
    const auto& o = state.operations;
    b.open("opcounters")
        .add("insert", o.insert.load())
        .add("query", o.query.load())
        .add("update", o.update.load())
        .add("delete", o.remove.load());
    std::int64_t commands = 0;
    const auto table = command_table();
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto name = table[i]->name;
        const bool counted_apart = name == "insert" || name == "find" || name == "update" ||
                                   name == "delete" || name == "getMore";
        if (!counted_apart) commands += state.counters[i].total.load();
    }
    b.add("getmore", o.get_more.load()).add("command", commands).close();
}

void add_metrics(bson::Builder& b, const ServerState& state) {
    b.open("metrics").open("commands");
    const auto table = command_table();
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto total = state.counters[i].total.load();
        if (total > 0)
            b.open(table[i]->name)
                .add("total", total)
                .add("failed", state.counters[i].failed.load())
                .close();
    }
    b.add("<UNKNOWN>", state.counters[table.size()].total.load()).close().close();
}

Result<void> server_status(const CallPtr& call) {
    Engine& engine = call->engine();
    const auto uptime = std::chrono::duration_cast<milliseconds>(
        engine.options().storage.clock->steady_now() - call->state().started);
    const auto& host = call->connection()->advertised_host;
    bson::Builder b;
    b.add("host", host)
        .add("version", kServerVersion)
        .add("process", "angelia")
        .add("pid", static_cast<std::int64_t>(::getpid()));
    b.add("uptime", static_cast<double>(uptime.count()) / 1000.0)
        .add("uptimeMillis", static_cast<std::int64_t>(uptime.count()));
    b.add("localTime", bson::Date{engine.options().storage.clock->system_millis()});
    add_door(b, call->state());
    add_operations(b, call->state());
    b.open("mem")
        .add("bits", std::int32_t{64})
        .add("resident", resident_megabytes())
        .add("virtual", std::int32_t{0})
        .add("supported", true)
        .close();
    b.open("repl")
        .add("setName", engine.options().replica_set_name)
        .add("isWritablePrimary", true)
        .add("ismaster", true)
        .add("hosts", bson::array(host));
    b.add("primary", host).add("me", host).close();
    b.open("storageEngine")
        .add("name", "rocksdb")
        .add("supportsCommittedReads", true)
        .add("persistent", !engine.storage().memory())
        .add("readOnly", false);
    b.add("supportsSnapshotReadConcern", true).close();
    const auto status = engine.status();
    b.add("transactions", status.view()["transactions"]);
    b.open("logicalSessionRecordCache")
        .add("activeSessionsCount", status.view().find_path("sessions.open"))
        .close();
    add_metrics(b, call->state());
    b.open("oplog")
        .add("earliestOptime", engine.oplog().oldest())
        .add("latestOptime", engine.oplog().newest_durable())
        .close();
    const auto storage = engine.storage().statistics();
    b.open("angelia").add("version", kProductVersion).add("durability", durability_name(engine));
    b.open("storage")
        .add("commits", static_cast<std::int64_t>(storage.commits))
        .add("syncs", static_cast<std::int64_t>(storage.syncs));
    b.add("bytesWritten", static_cast<std::int64_t>(storage.bytes_written))
        .add("applyMicrosMax", static_cast<std::int64_t>(storage.apply_us_max));
    b.add("diskBytes", static_cast<std::int64_t>(storage.disk_bytes))
        .add("oplogBytes", static_cast<std::int64_t>(storage.oplog_bytes));
    b.add("writable", storage.writable).add("writeError", storage.write_error).close();
    b.add("engine", status).close();
    call->succeed(std::move(b));
    return {};
}

Result<void> host_info(const CallPtr& call) {
    const auto names = machine();
    struct sysinfo memory {};
    const bool known = ::sysinfo(&memory) == 0;
    const auto megabytes =
        known ? static_cast<std::int64_t>(memory.totalram) * memory.mem_unit / (1024 * 1024) : 0;
    bson::Builder b;
    b.open("system")
        .add("currentTime", bson::Date{call->engine().options().storage.clock->system_millis()})
        .add("hostname", names.nodename);
    b.add("cpuAddrSize", std::int32_t{64})
        .add("memSizeMB", static_cast<std::int64_t>(megabytes))
        .add("memLimitMB", static_cast<std::int64_t>(megabytes));
    b.add("numCores", static_cast<std::int32_t>(std::thread::hardware_concurrency()))
        .add("cpuArch", names.machine)
        .add("numaEnabled", false)
        .close();
    b.open("os")
        .add("type", names.sysname)
        .add("name", names.sysname)
        .add("version", names.release)
        .close()
        .add("extra", bson::Document());
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kServerStatusCommand{.name = "serverStatus",
                                               .handler = server_status,
                                               .flags = kAnyFields | kReads,
                                               .help = "counters of the server since its start"};
extern const CommandEntry kHostInfoCommand{.name = "hostInfo",
                                           .handler = host_info,
                                           .flags = kAdminOnly,
                                           .help = "the machine that the server runs on"};

}  // namespace angelia::engine::command
