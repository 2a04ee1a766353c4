#include "engine/command/labels.h"

#include "engine/command/command_table.h"

#include <algorithm>
#include <iterator>

namespace angelia::engine::command {
namespace {

bool is_retryable_write(const Call& call) {
    if (!call.generic().txn_number) return false;
    if (call.entry().has(kEndsTransaction)) return true;
    return call.entry().has(kRetryable) && !call.generic().in_transaction;
}

/// Contract 6.3: the whole transaction may be tried again.
bool is_transient(const Call& call, ErrorCode code) {
    if (!call.generic().in_transaction || call.entry().name == "abortTransaction") return false;
    switch (code) {
        case ErrorCode::WriteConflict:
        case ErrorCode::LockTimeout:
        case ErrorCode::NoSuchTransaction:
        case ErrorCode::PreparedTransactionInProgress:
        case ErrorCode::SnapshotUnavailable:
        case ErrorCode::SnapshotTooOld:
            return true;
        case ErrorCode::TemporarilyUnavailable:
            return !call.entry().has(kEndsTransaction);
        default:
            return !call.entry().has(kEndsTransaction) && is_retriable(code);
    }
}

}  // namespace

bool is_state_change(ErrorCode code) {
    switch (code) {
        case ErrorCode::InterruptedAtShutdown:
        case ErrorCode::InterruptedDueToReplStateChange:
        case ErrorCode::NotPrimaryOrSecondary:
        case ErrorCode::PrimarySteppedDown:
        case ErrorCode::ShutdownInProgress:
        case ErrorCode::NotWritablePrimary:
        case ErrorCode::NotPrimaryNoSecondaryOk:
        case ErrorCode::LegacyNotPrimary:
            return true;
        default:
            return false;
    }
}

void add_change_stream_label(Error& error) {
    constexpr std::int32_t kResumable[] = {6,   7,    63,    89,    91,    133,   150,   189,  234,
                                           262, 9001, 10107, 11600, 11602, 13388, 13435, 13436};
    const auto code = static_cast<std::int32_t>(error.code);
    const char* label = nullptr;
    if (std::find(std::begin(kResumable), std::end(kResumable), code) != std::end(kResumable))
        label = "ResumableChangeStreamError";
    if (error.code == ErrorCode::ChangeStreamHistoryLost ||
        error.code == ErrorCode::ChangeStreamFatalError)
        label = "NonResumableChangeStreamError";
    if (label != nullptr && !error.has_label(label)) error.labels.emplace_back(label);
}

std::vector<std::string> labels_for(Call& call, const Error& error) {
    if (call.fail_point() && call.fail_point()->error_code && call.fail_point()->error_labels)
        return *call.fail_point()->error_labels;
    auto labels = error.labels;
    if (is_retryable_write(call) && is_retriable(error.code) &&
        !error.has_label("RetryableWriteError"))
        labels.emplace_back("RetryableWriteError");
    if (is_transient(call, error.code) && !error.has_label("TransientTransactionError"))
        labels.emplace_back("TransientTransactionError");
    return labels;
}

std::vector<std::string> labels_for_write_concern_error(Call& call, ErrorCode code) {
    const auto& hit = call.fail_point();
    if (hit && hit->error_labels && !hit->write_concern_error.empty()) return *hit->error_labels;
    if (is_retryable_write(call) && is_retriable(code)) return {"RetryableWriteError"};
    return {};
}

}  // namespace angelia::engine::command
