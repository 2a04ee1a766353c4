#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/server_state.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kConfigureFailPointFields[] = {"mode", "data"};

Result<void> configure_fail_point(const CallPtr& call) {
    const auto name = (*call->body().begin()).value;
    if (!name.is(bson::Type::String))
        return wrong_type("configureFailPoint.configureFailPoint", name, "string");
    const Arguments arguments("configureFailPoint", call->body());
    const auto mode = call->body().find("mode");
    if (mode.is_missing())
        return Error(ErrorCode::IllegalOperation,
                     "When setting a failpoint, you must supply a 'mode'");
    ANGELIA_TRY_ASSIGN(const auto data, arguments.document("data"));
    ANGELIA_TRY_ASSIGN(const auto count,
                       call->state().fail_points.configure(name.as_string(), mode, data));
    bson::Builder b;
    b.add("count", count);
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kConfigureFailPointCommand{
    .name = "configureFailPoint",
    .handler = configure_fail_point,
    .fields = kConfigureFailPointFields,
    .flags = kAdminOnly | kTestOnly,
    .help = "makes commands fail on purpose; only with test commands enabled"};

}  // namespace angelia::engine::command
