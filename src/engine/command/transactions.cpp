// commitTransaction and abortTransaction. Both may come again after a lost answer.
#include "engine/command/commands.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

Result<void> check_within_transaction(const Call& call) {
    if (call.generic().in_transaction) return {};
    return Error(ErrorCode::CommandFailed,
                 fmt::format("{} must be run within a transaction", call.entry().name));
}

Result<void> commit_transaction(const CallPtr& call) {
    ANGELIA_TRY(check_within_transaction(*call));
    call->engine().commit_transaction(call->transaction_key(),
                                      [call](Result<bson::Timestamp> committed) {
                                          if (!call->failed(committed))
                                              call->succeed({}, *committed);
                                      });
    return {};
}

Result<void> abort_transaction(const CallPtr& call) {
    ANGELIA_TRY(check_within_transaction(*call));
    ANGELIA_TRY(call->engine().abort_transaction(call->transaction_key()));
    call->succeed({});
    return {};
}

constexpr std::string_view kEndFields[] = {"recoveryToken"};

}  // namespace

extern const CommandEntry kCommitTransactionCommand{
    .name = "commitTransaction",
    .handler = commit_transaction,
    .fields = kEndFields,
    .flags = kAdminOnly | kWrites | kApiVersion1 | kEndsTransaction,
    .help = "makes the changes of a transaction visible and durable, all at once"};
extern const CommandEntry kAbortTransactionCommand{
    .name = "abortTransaction",
    .handler = abort_transaction,
    .fields = kEndFields,
    .flags = kAdminOnly | kWrites | kApiVersion1 | kEndsTransaction,
    .help = "throws the changes of a transaction away"};

}  // namespace angelia::engine::command
