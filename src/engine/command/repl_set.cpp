// The replica set of one member that this server presents itself as.
#include "engine/command/commands.h"
#include "engine/command/server_state.h"

namespace angelia::engine::command {
namespace {

constexpr std::int64_t kReplTerm = 1;

Result<void> repl_set_status(const CallPtr& call) {
    const Engine& engine = call->engine();
    const auto time = engine.operation_time();
    const auto op_time = bson::make("ts", time, "t", kReplTerm);
    const bson::Date written{std::int64_t{time.seconds} * 1000};
    const bson::Date now{engine.options().storage.clock->system_millis()};
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(
                            engine.options().storage.clock->steady_now() - call->state().started)
                            .count();
    bson::Builder b;
    b.add("set", engine.options().replica_set_name)
        .add("date", now)
        .add("myState", std::int32_t{1})
        .add("term", kReplTerm);
    b.add("heartbeatIntervalMillis", std::int64_t{2000})
        .add("majorityVoteCount", std::int32_t{1})
        .add("writeMajorityCount", std::int32_t{1});
    b.add("votingMembersCount", std::int32_t{1}).add("writableVotingMembersCount", std::int32_t{1});
    b.open("optimes")
        .add("lastCommittedOpTime", op_time)
        .add("lastCommittedWallTime", written)
        .add("readConcernMajorityOpTime", op_time);
    b.add("appliedOpTime", op_time).add("durableOpTime", op_time).close();
    b.open_array("members")
        .push_document()
        .add("_id", std::int32_t{0})
        .add("name", call->connection()->advertised_host)
        .add("health", 1.0);
    b.add("state", std::int32_t{1})
        .add("stateStr", "PRIMARY")
        .add("uptime", static_cast<std::int64_t>(uptime))
        .add("optime", op_time)
        .add("optimeDate", written);
    b.add("electionTime", bson::Timestamp{1, 1})
        .add("configVersion", std::int32_t{1})
        .add("configTerm", kReplTerm)
        .add("self", true);
    b.add("lastHeartbeatMessage", "").close().close();
    call->succeed(std::move(b));
    return {};
}

Result<void> repl_set_config(const CallPtr& call) {
    bson::Builder b;
    b.open("config")
        .add("_id", call->engine().options().replica_set_name)
        .add("version", std::int32_t{1})
        .add("term", kReplTerm);
    b.open_array("members")
        .push_document()
        .add("_id", std::int32_t{0})
        .add("host", call->connection()->advertised_host)
        .add("arbiterOnly", false);
    b.add("buildIndexes", true)
        .add("hidden", false)
        .add("priority", 1.0)
        .add("tags", bson::Document())
        .add("secondaryDelaySecs", std::int64_t{0});
    b.add("votes", std::int32_t{1}).close().close();
    b.add("protocolVersion", std::int64_t{1})
        .add("writeConcernMajorityJournalDefault", true)
        .add("settings", bson::Document())
        .close();
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kReplSetGetStatusCommand{
    .name = "replSetGetStatus",
    .handler = repl_set_status,
    .flags = kAdminOnly | kAnyFields,
    .help = "the replica set: one member, the primary"};
extern const CommandEntry kReplSetGetConfigCommand{.name = "replSetGetConfig",
                                                   .handler = repl_set_config,
                                                   .flags = kAdminOnly | kAnyFields,
                                                   .help = "the configuration of that set"};

}  // namespace angelia::engine::command
