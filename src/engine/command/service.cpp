// Runs a command: looks it up, checks what all commands have in common, and hands it to its
// handler.
#include "engine/command/arguments.h"
#include "engine/command/command_table.h"
#include "engine/command/fail_point_hit.h"
#include "engine/command/labels.h"
#include "engine/command/server_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace angelia::engine::command {

ServerState::ServerState(bool test_commands_enabled)
    : test_commands(test_commands_enabled),
      counters(std::make_unique<CommandCounter[]>(command_table().size() + 1)) {
}  // and one for unknown commands

bson::Document ServerState::topology_version() const {
    return bson::make("processId", process_id, "counter", topology_counter.load());
}

namespace {

Error legacy_error(std::string_view name) {
    return {ErrorCode::UnsupportedOpQueryCommand,
            fmt::format("Unsupported OP_QUERY command: {}. Only hello and isMaster are answered "
                        "there; the client driver may be too old",
                        name)};
}

Result<void> refuse_unknown(const CallPtr& call) {
    const std::string_view name = (*call->body().begin()).key;
    if (call->request().legacy_query) return legacy_error(name);
    return Error(ErrorCode::CommandNotFound, fmt::format("no such command: '{}'", name));
}
const CommandEntry kUnknownCommand{.name = "<unknown>",
                                   .handler = refuse_unknown,
                                   .flags = kAnyFields | kWrites | kReads | kRetryable};

Error shutdown_error() {
    return {ErrorCode::ShutdownInProgress, "The server is in quiesce mode and will shut down"};
}

class CommandServiceImpl final : public CommandService {
  public:
    CommandServiceImpl(Engine& engine, const ServiceOptions& options)
        : engine_(engine),
          state_(std::make_shared<ServerState>(options.enable_test_commands ||
                                               engine.options().enable_test_commands)) {
        state_->started = engine.options().storage.clock->steady_now();
        state_->service = this;
    }
    ~CommandServiceImpl() override { state_->service = nullptr; }

    void run(const std::shared_ptr<Connection>& connection, Request request,
             ReplyFunction reply) override {
        const std::string_view name = (*request.body.begin()).key;
        const CommandEntry* entry = find_command(name);
        if (entry == nullptr || (entry->has(kTestOnly) && !state_->test_commands))
            entry = &kUnknownCommand;
        auto& counter = state_->counters[command_index(*entry)];
        counter.total.fetch_add(1, std::memory_order_relaxed);
        auto call = std::make_shared<Call>(*entry, engine_, state_, connection, std::move(request),
                                           std::move(reply));
        if (auto checked = check(*call); !checked) return call->fail(checked.error());
        if (const auto& lsid = call->generic().lsid; !lsid.empty()) engine_.refresh_session(lsid);
        if (state_->fail_points.any() && meet_fail_point(call, dispatch)) return;
        dispatch(call);
    }

    void connection_closed(const std::shared_ptr<Connection>& connection) override {
        state_->awaits.end_connection(connection->id);
    }

    void begin_shutdown() override {
        state_->shutting_down = true;
        ++state_->topology_counter;
        state_->awaits.shut_down();
    }

  private:
    Result<void> check(Call& call) {
        const auto& entry = call.entry();
        if (call.request().legacy_query && entry.name != "hello" && entry.name != "buildInfo" &&
            &entry != &kUnknownCommand)
            return legacy_error(entry.name);
        if (state_->shutting_down && !entry.has(kDuringShutdown)) {
            Error error = shutdown_error();
            if (entry.name == "getMore")
                add_change_stream_label(error);  // means nothing to other cursors, and lets a
                                                 // stream go on after the restart
            return error;
        }
        if (entry.has(kAdminOnly) && call.database() != "admin")
            return Error(ErrorCode::Unauthorized,
                         fmt::format("{} may only be run against the admin database.", entry.name));
        return read_generic_arguments(call);
    }

    static void dispatch(const CallPtr& call) {
        if (!call->entry().has(kLong)) return handle(call);
        call->engine().workers().post([call] { handle(call); });
    }

    static void handle(const CallPtr& call) {
        if (call->generic().in_transaction && call->entry().has(kInTransaction)) {
            if (auto begun = call->begin_statement(); !begun) return call->fail(begun.error());
        }
        if (auto done = call->entry().handler(call); !done) call->fail(done.error());
    }

    Engine& engine_;
    const std::shared_ptr<ServerState> state_;  // shared with running calls
};

}  // namespace

std::unique_ptr<CommandService> CommandService::create(Engine& engine, ServiceOptions options) {
    return std::make_unique<CommandServiceImpl>(engine, options);
}

void run_in_process(CommandService& service, std::string_view database, bson::Document command,
                    std::function<void(bson::Document)> done) {
    auto connection = std::make_shared<Connection>();
    connection->peer = "in process";
    auto bytes = std::make_shared<const bson::Document>(std::move(command));
    Request request;
    request.body = bytes->view();
    request.database = database;
    request.bytes = bytes;
    service.run(connection, std::move(request),
                [done = std::move(done)](Reply reply) { done(std::move(reply.body)); });
}

}  // namespace angelia::engine::command
