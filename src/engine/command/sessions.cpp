// Logical sessions. A session exists by being named: nothing is kept for it here but retry records
// and cursors, which age by themselves.
#include "engine/command/announce.h"
#include "engine/command/arguments.h"
#include "engine/command/commands.h"

#include <fmt/format.h>

#include <random>

namespace angelia::engine::command {
namespace {

constexpr std::size_t kSessionsPerCommandMax = 10'000;  // MongoDB limit

Result<void> start_session(const CallPtr& call) {
    std::array<std::uint8_t, 16> id{};
    std::random_device random;
    for (auto& byte : id) byte = static_cast<std::uint8_t>(random());
    id[6] = static_cast<std::uint8_t>((id[6] & 0x0F) | 0x40);  // UUID version 4
    id[8] = static_cast<std::uint8_t>((id[8] & 0x3F) | 0x80);
    const std::string_view bytes(reinterpret_cast<const char*>(id.data()), id.size());
    bson::Builder b;
    b.open("id")
        .add("id", bson::BinaryView{4, bytes})
        .close()
        .add("timeoutMinutes", kSessionMinutes);
    call->succeed(std::move(b));
    return {};
}

/// endSessions and its like: a list of session ids; unknown ones are no error.
Result<void> accept_sessions(const CallPtr& call) {
    const auto list = (*call->body().begin()).value;
    if (!list.is(bson::Type::Array)) return wrong_type(call->entry().name, list, "array");
    if (const auto count = list.as_document().count(); count > kSessionsPerCommandMax)
        return Error(ErrorCode::BadValue,
                     fmt::format("{} takes at most {} sessions, got {}", call->entry().name,
                                 kSessionsPerCommandMax, count));
    for (const auto& element : list.as_document())
        if (!element.value.is(bson::Type::Document))
            return wrong_type(call->entry().name, element.value, "object");
    call->succeed({});
    return {};
}

/// The cursors of an ended session go with it; its retry records stay, a late retry must still find
/// them.
Result<void> end_sessions(const CallPtr& call) {
    const auto list = (*call->body().begin()).value;
    if (list.is(bson::Type::Array))
        for (const auto& element : list.as_document())
            if (element.value.is(bson::Type::Document))
                call->engine().end_session(element.value.as_document());
    return accept_sessions(call);
}

}  // namespace

extern const CommandEntry kStartSessionCommand{
    .name = "startSession", .handler = start_session, .help = "a new session id"};
extern const CommandEntry kEndSessionsCommand{.name = "endSessions",
                                              .handler = end_sessions,
                                              .flags = kApiVersion1 | kDuringShutdown,
                                              .help = "says that sessions are no longer used"};
extern const CommandEntry kRefreshSessionsCommand{.name = "refreshSessions",
                                                  .handler = accept_sessions,
                                                  .flags = kApiVersion1,
                                                  .help = "says that sessions are still used"};
extern const CommandEntry kKillSessionsCommand{
    .name = "killSessions", .handler = end_sessions, .help = "ends sessions"};
extern const CommandEntry kKillAllSessionsCommand{
    .name = "killAllSessions", .handler = accept_sessions, .help = "ends the sessions of users"};
extern const CommandEntry kKillAllSessionsByPatternCommand{.name = "killAllSessionsByPattern",
                                                           .handler = accept_sessions,
                                                           .help = "ends the sessions that match"};

}  // namespace angelia::engine::command
