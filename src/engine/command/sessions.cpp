// Logical sessions. A session exists by being named; what it owns (cursors, a transaction) is known
// to the engine, which ends it.
#include "engine/command/announce.h"
#include "engine/command/arguments.h"
#include "engine/command/commands.h"

#include <fmt/format.h>

#include <random>
#include <unordered_set>

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

// Whose session it is: SHA-256 of nobody's name. Without authentication all sessions are nobody's.
constexpr std::string_view kNobody(
    "\xe3\xb0\xc4\x42\x98\xfc\x1c\x14\x9a\xfb\xf4\xc8\x99\x6f\xb9\x24"
    "\x27\xae\x41\xe4\x64\x9b\x93\x4c\xa4\x95\x99\x1b\x78\x52\xb8\x55",
    32);

Result<bson::DocumentView> session_list(const CallPtr& call) {
    const auto list = (*call->body().begin()).value;
    const std::string where = fmt::format("{0}.{0}", call->entry().name);
    if (!list.is(bson::Type::Array)) return wrong_type(where, list, "array");
    if (const auto count = list.as_document().count(); count > kSessionsPerCommandMax)
        return Error(ErrorCode::BadValue,
                     fmt::format("{} takes at most {} sessions, got {}", call->entry().name,
                                 kSessionsPerCommandMax, count));
    for (const auto& element : list.as_document())
        if (!element.value.is(bson::Type::Document))
            return wrong_type(where, element.value, "object");
    return list.as_document();
}

Result<bool> is_nobody(const std::string& where, bson::ValueView uid) {
    if (!uid.is(bson::Type::Binary)) return wrong_type(where, uid, "binData");
    if (uid.as_binary().bytes.size() != kNobody.size())
        return Error(ErrorCode::InvalidOptions,
                     fmt::format("{} has to be a SHA-256 digest of 32 bytes", where));
    return uid.as_binary().bytes == kNobody;
}

/// {id, uid?} as our sessions are known, or nothing when it names somebody else's.
Result<std::optional<bson::Document>> named_session(const CallPtr& call,
                                                    bson::DocumentView document) {
    constexpr std::string_view kFields[] = {"id", "uid", "txnNumber", "txnUUID"};
    const std::string where = fmt::format("{}.lsid", call->entry().name);
    const Arguments arguments(where, document);
    ANGELIA_TRY(arguments.only(kFields));
    ANGELIA_TRY_ASSIGN(const auto id, arguments.required("id"));
    if (!id.is(bson::Type::Binary)) return wrong_type(where + ".id", id, "binData");
    if (id.as_binary().subtype != 4 || id.as_binary().bytes.size() != 16)
        return Error(
            ErrorCode::InvalidOptions,
            fmt::format("{}.id has to be a UUID: binary of subtype 4 with 16 bytes", where));
    if (const auto uid = arguments.value("uid")) {
        ANGELIA_TRY_ASSIGN(const bool ours, is_nobody(where + ".uid", uid));
        if (!ours) return std::optional<bson::Document>();
    }
    return std::optional(bson::make("id", id));
}

std::string session_key(bson::DocumentView lsid) { return std::string(lsid.bytes()); }
using SessionKeys = std::unordered_set<std::string>;

/// Everything is read before anything happens; unknown sessions are no error.
Result<SessionKeys> named_sessions(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto list, session_list(call));
    SessionKeys keys;
    for (const auto& element : list) {
        ANGELIA_TRY_ASSIGN(const auto lsid, named_session(call, element.value.as_document()));
        if (lsid) keys.insert(session_key(*lsid));
    }
    return keys;
}

Result<void> refresh_sessions(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto keys, named_sessions(call));
    for (const auto& key : keys)
        call->engine().refresh_session(bson::DocumentView{std::string_view(key)});
    call->succeed({});
    return {};
}

void kill_named(const CallPtr& call, const SessionKeys& keys) {
    if (!keys.empty())
        call->engine().kill_sessions(
            [&keys](bson::DocumentView lsid) { return keys.count(session_key(lsid)) != 0; });
    call->succeed({});
}

/// endSessions and killSessions: what the sessions own ends with them; their retry records stay, a
/// late retry must still find them.
Result<void> end_sessions(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto keys, named_sessions(call));
    kill_named(call, keys);
    return {};
}

void kill_all(const CallPtr& call) {
    call->engine().kill_sessions([](bson::DocumentView) { return true; });
    call->succeed({});
}

/// A list of users; an empty one means everybody. Without authentication no session is a user's.
Result<void> kill_all_sessions(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto list, session_list(call));
    constexpr std::string_view kFields[] = {"user", "db"};
    for (const auto& element : list) {
        const Arguments user("killAllSessions.killAllSessions", element.value.as_document());
        ANGELIA_TRY(user.only(kFields));
        for (const auto field : kFields) {
            ANGELIA_TRY(user.required(field));
            ANGELIA_TRY(user.string(field));
        }
    }
    if (list.empty())
        kill_all(call);
    else
        call->succeed({});
    return {};
}

Result<void> kill_all_sessions_by_pattern(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto list, session_list(call));
    constexpr std::string_view kFields[] = {"lsid", "uid", "users", "roles"};
    constexpr std::string_view kImpersonation[] = {"users", "roles"};
    const std::string where = "killAllSessionsByPattern.killAllSessionsByPattern";
    bool everything = list.empty();
    SessionKeys keys;
    for (const auto& element : list) {
        const Arguments pattern(where, element.value.as_document());
        ANGELIA_TRY(pattern.only(kFields));
        ANGELIA_TRY(pattern.none_of(kImpersonation));
        ANGELIA_TRY_ASSIGN(const auto lsid, pattern.document("lsid"));
        const auto uid = pattern.value("uid");
        if (pattern.value("lsid")) {
            if (uid)
                return Error(ErrorCode::FailedToParse,
                             where + " takes either 'lsid' or 'uid', not both");
            ANGELIA_TRY_ASSIGN(const auto named, named_session(call, lsid));
            if (named) keys.insert(session_key(*named));
        } else if (uid) {
            ANGELIA_TRY_ASSIGN(const bool ours, is_nobody(where + ".uid", uid));
            everything = everything || ours;
        } else {
            everything = true;
        }
    }
    if (everything)
        kill_all(call);
    else
        kill_named(call, keys);
    return {};
}

}  // namespace

extern const CommandEntry kStartSessionCommand{
    .name = "startSession", .handler = start_session, .help = "a new session id"};
extern const CommandEntry kEndSessionsCommand{.name = "endSessions",
                                              .handler = end_sessions,
                                              .flags = kApiVersion1 | kDuringShutdown,
                                              .help = "says that sessions are no longer used"};
extern const CommandEntry kRefreshSessionsCommand{.name = "refreshSessions",
                                                  .handler = refresh_sessions,
                                                  .flags = kApiVersion1,
                                                  .help = "says that sessions are still used"};
extern const CommandEntry kKillSessionsCommand{
    .name = "killSessions", .handler = end_sessions, .help = "ends sessions"};
extern const CommandEntry kKillAllSessionsCommand{
    .name = "killAllSessions", .handler = kill_all_sessions, .help = "ends the sessions of users"};
extern const CommandEntry kKillAllSessionsByPatternCommand{.name = "killAllSessionsByPattern",
                                                           .handler = kill_all_sessions_by_pattern,
                                                           .help = "ends the sessions that match"};

}  // namespace angelia::engine::command
