#include "engine/command/arguments.h"
#include "engine/command/commands.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kKillCursorsFields[] = {"cursors"};

void add_ids(bson::Builder& b, std::string_view name, const std::vector<std::int64_t>& ids) {
    b.open_array(name);
    for (const auto id : ids) b.push(id);
    b.close();
}

Result<void> kill_cursors(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY_ASSIGN(const auto list, Arguments("killCursors", call->body()).array("cursors"));
    if (!list) return missing_field("killCursors.cursors");
    std::vector<std::int64_t> ids;
    for (const auto& element : *list) {
        if (!element.value.is(bson::Type::Int64))
            return wrong_type("killCursors.cursors", element.value, "long");
        ids.push_back(element.value.as_int64());
    }
    if (ids.empty())
        return Error(ErrorCode::BadValue, "Must specify at least one cursor id in: cursors");
    const auto killed = call->engine().kill_cursors(ns, ids);
    bson::Builder b;
    add_ids(b, "cursorsKilled", killed.killed);
    add_ids(b, "cursorsNotFound", killed.not_found);
    add_ids(b, "cursorsAlive", {});
    add_ids(b, "cursorsUnknown", {});
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kKillCursorsCommand{
    .name = "killCursors",
    .handler = kill_cursors,
    .fields = kKillCursorsFields,
    .flags = kApiVersion1 | kInTransaction | kDuringShutdown,
    .help = "ends cursors; unknown ones are no error"};

}  // namespace angelia::engine::command
