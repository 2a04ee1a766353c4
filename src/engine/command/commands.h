// The rows of the command table; each is defined in the file of its name.
#pragma once

#include "engine/command/command_table.h"

namespace angelia::engine::command {

extern const CommandEntry kAbortTransactionCommand;
extern const CommandEntry kAggregateCommand;
extern const CommandEntry kBuildInfoCommand;
extern const CommandEntry kBulkWriteCommand;
extern const CommandEntry kCollModCommand;
extern const CommandEntry kCollStatsCommand;
extern const CommandEntry kCommitTransactionCommand;
extern const CommandEntry kConfigureFailPointCommand;
extern const CommandEntry kConnectionStatusCommand;
extern const CommandEntry kCountCommand;
extern const CommandEntry kCreateCommand;
extern const CommandEntry kCreateIndexesCommand;
extern const CommandEntry kDbStatsCommand;
extern const CommandEntry kDeleteCommand;
extern const CommandEntry kDistinctCommand;
extern const CommandEntry kDropCommand;
extern const CommandEntry kDropDatabaseCommand;
extern const CommandEntry kDropIndexesCommand;
extern const CommandEntry kEndSessionsCommand;
extern const CommandEntry kFindCommand;
extern const CommandEntry kFindAndModifyCommand;
extern const CommandEntry kGetCmdLineOptsCommand;
extern const CommandEntry kGetLogCommand;
extern const CommandEntry kGetMoreCommand;
extern const CommandEntry kGetParameterCommand;
extern const CommandEntry kHelloCommand;
extern const CommandEntry kHostInfoCommand;
extern const CommandEntry kInsertCommand;
extern const CommandEntry kKillAllSessionsCommand;
extern const CommandEntry kKillAllSessionsByPatternCommand;
extern const CommandEntry kKillCursorsCommand;
extern const CommandEntry kKillSessionsCommand;
extern const CommandEntry kListCollectionsCommand;
extern const CommandEntry kListCommandsCommand;
extern const CommandEntry kListDatabasesCommand;
extern const CommandEntry kListIndexesCommand;
extern const CommandEntry kPingCommand;
extern const CommandEntry kRefreshSessionsCommand;
extern const CommandEntry kRenameCollectionCommand;
extern const CommandEntry kReplSetGetConfigCommand;
extern const CommandEntry kReplSetGetStatusCommand;
extern const CommandEntry kServerStatusCommand;
extern const CommandEntry kSetParameterCommand;
extern const CommandEntry kStartSessionCommand;
extern const CommandEntry kUpdateCommand;
extern const CommandEntry kValidateCommand;
extern const CommandEntry kWhatsMyUriCommand;

}  // namespace angelia::engine::command
