#include "engine/command/labels.h"

#include "engine/command/command_table.h"

#include <algorithm>

namespace angelia::engine::command {
namespace {

bool is_retryable_write(const Call& call) { return call.entry().has(kRetryable) && call.generic().txn_number.has_value(); }

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

std::vector<std::string> labels_for(Call& call, const Error& error) {
    if (call.fail_point() && call.fail_point()->error_labels) return *call.fail_point()->error_labels;
    auto labels = error.labels;
    if (is_retryable_write(call) && is_retriable(error.code) && !error.has_label("RetryableWriteError")) labels.emplace_back("RetryableWriteError");
    return labels;
}

std::vector<std::string> labels_for_write_concern_error(Call& call, ErrorCode code) {
    if (call.fail_point() && call.fail_point()->error_labels) return *call.fail_point()->error_labels;
    if (is_retryable_write(call) && is_retriable(code)) return {"RetryableWriteError"};
    return {};
}

}  // namespace angelia::engine::command
