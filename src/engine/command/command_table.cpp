#include "engine/command/command_table.h"

#include "engine/command/commands.h"

#include <algorithm>
#include <unordered_map>

namespace angelia::engine::command {
namespace {

// Sorted by name.
const CommandEntry* const kCommandTable[] = {
    &kAbortTransactionCommand,
    &kAggregateCommand,
    &kBuildInfoCommand,
    &kBulkWriteCommand,
    &kCollModCommand,
    &kCollStatsCommand,
    &kCommitTransactionCommand,
    &kConfigureFailPointCommand,
    &kConnectionStatusCommand,
    &kCountCommand,
    &kCreateCommand,
    &kCreateIndexesCommand,
    &kDbStatsCommand,
    &kDeleteCommand,
    &kDistinctCommand,
    &kDropCommand,
    &kDropDatabaseCommand,
    &kDropIndexesCommand,
    &kEndSessionsCommand,
    &kFindCommand,
    &kFindAndModifyCommand,
    &kGetCmdLineOptsCommand,
    &kGetLogCommand,
    &kGetMoreCommand,
    &kGetParameterCommand,
    &kHelloCommand,
    &kHostInfoCommand,
    &kInsertCommand,
    &kKillAllSessionsCommand,
    &kKillAllSessionsByPatternCommand,
    &kKillCursorsCommand,
    &kKillSessionsCommand,
    &kListCollectionsCommand,
    &kListCommandsCommand,
    &kListDatabasesCommand,
    &kListIndexesCommand,
    &kPingCommand,
    &kRefreshSessionsCommand,
    &kRenameCollectionCommand,
    &kReplSetGetConfigCommand,
    &kReplSetGetStatusCommand,
    &kServerStatusCommand,
    &kSetParameterCommand,
    &kStartSessionCommand,
    &kUpdateCommand,
    &kValidateCommand,
    &kWhatsMyUriCommand,
};

std::unordered_map<std::string_view, const CommandEntry*> make_command_index() {
    std::unordered_map<std::string_view, const CommandEntry*> index;
    for (const CommandEntry* entry : kCommandTable) {
        ANGELIA_CHECK(index.emplace(entry->name, entry).second);
        for (const auto& alias : entry->aliases)
            if (!alias.empty()) ANGELIA_CHECK(index.emplace(alias, entry).second);
    }
    return index;
}

}  // namespace

std::span<const CommandEntry* const> command_table() { return kCommandTable; }

const CommandEntry* find_command(std::string_view name) {
    static const auto index = make_command_index();
    const auto found = index.find(name);
    return found == index.end() ? nullptr : found->second;
}

std::size_t command_index(const CommandEntry& entry) {
    const auto table = command_table();
    return static_cast<std::size_t>(std::find(table.begin(), table.end(), &entry) - table.begin());
}

}  // namespace angelia::engine::command
