#include "engine/command/fail_point_hit.h"

#include "engine/command/command_table.h"
#include "engine/command/server_state.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

/// Of the collection that a command names; else its database.
std::string fail_point_namespace(const Call& call) {
    auto named = (*call.body().begin()).value;
    if (call.entry().name == "getMore") named = call.body().find("collection");
    return named.is(bson::Type::String) ? fmt::format("{}.{}", call.database(), named.as_string())
                                        : call.database();
}

void obey_fail_point(const CallPtr& call, const std::function<void(const CallPtr&)>& go_on) {
    const auto& hit = *call->fail_point();
    if (hit.close_connection) return call->hang_up();
    if (hit.error_code)
        return call->fail(Error(static_cast<ErrorCode>(*hit.error_code),
                                "Failing command via 'failCommand' failpoint"));
    go_on(call);
}

}  // namespace

bool meet_fail_point(const CallPtr& call, std::function<void(const CallPtr&)> go_on) {
    const std::string ns = call->body().empty() ? call->database() : fail_point_namespace(*call);
    const std::string_view sent =
        call->body().empty() ? call->entry().name : (*call->body().begin()).key;
    call->fail_point() = call->state().fail_points.on_command(
        {call->entry(), sent, call->connection()->application_name, ns});
    if (!call->fail_point()) return false;
    const auto block = call->fail_point()->block;
    if (block.count() == 0) {
        obey_fail_point(call, go_on);
        return true;
    }
    // maxTimeMS of a getMore bounds its wait for events, not its running time.
    const auto& max_time = call->generic().max_time;
    const bool too_late = max_time && *max_time < block && call->entry().name != "getMore";
    call->engine().timers().post_after(
        too_late ? *max_time : block, [call, too_late, go_on = std::move(go_on)] {
            if (!too_late) return obey_fail_point(call, go_on);
            call->fail(Error(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit"));
        });
    return true;
}

}  // namespace angelia::engine::command
