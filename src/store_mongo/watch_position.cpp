#include "store_mongo/watch_position.h"

#include <algorithm>

namespace angelia::store::mongo {
namespace {

bool is_history_lost(const Error& error) {
    return error.code == ErrorCode::ChangeStreamHistoryLost ||
           error.message.find("ChangeStreamHistoryLost") != std::string::npos ||
           error.message.find("resume point may no longer be in the oplog") != std::string::npos;
}

/// Trying again with the same token would fail for ever.
bool token_is_dead(const Error& error) {
    return is_history_lost(error) || error.code == ErrorCode::InvalidResumeToken ||
           error.code == ErrorCode::ChangeStreamFatalError ||
           error.has_label("NonResumableChangeStreamError");
}

bool is_unsupported(const Error& error) {
    return error.code == ErrorCode::Location40573 ||
           error.message.find("only supported on replica sets") != std::string::npos ||
           (error.code == ErrorCode::Location40324 &&
            error.message.find("$changeStream") != std::string::npos);
}

}  // namespace

WatchPosition::WatchPosition(const WatchRequest& request) : start_at_(request.start_at) {
    if (request.resume_after) token_ = request.resume_after->copy();
}

bson::Document WatchPosition::stage(bool update_lookup, bool start_after) const {
    bson::Builder b;
    if (update_lookup) b.add("fullDocument", "updateLookup");
    if (token_) {
        b.add(start_after ? "startAfter" : "resumeAfter", *token_);
    } else if (start_at_) {
        b.add("startAtOperationTime", *start_at_);
    }
    return bson::make("$changeStream", b.take());
}

void WatchPosition::established(bson::DocumentView reply) {
    if (token_ || start_at_) return;
    start_at_ = reply["operationTime"].get_timestamp();
}

bson::Document WatchPosition::token_of(bson::DocumentView cursor,
                                       bson::DocumentView last_event) const {
    if (const auto batch_token = cursor["postBatchResumeToken"].get_document())
        return bson::Document(*batch_token);
    if (const auto event_token = last_event["_id"].get_document())
        return bson::Document(*event_token);
    return token_ ? token_->copy() : bson::Document();
}

void WatchPosition::handed_over(bson::DocumentView cursor, bson::DocumentView last_event) {
    bson::Document token = token_of(cursor, last_event);
    if (token.empty()) return;
    token_ = std::move(token);
    start_at_.reset();
}

WatchPosition::Verdict WatchPosition::failed(const Error& error) {
    Verdict verdict;
    if (is_unsupported(error)) {
        verdict.fatal = true;
        return verdict;
    }
    if (error.code == ErrorCode::Location40415 &&
        error.message.find("startAfter") != std::string::npos) {
        verdict.start_after_unknown = true;
        return verdict;
    }
    if (token_is_dead(error)) {
        token_.reset();
        start_at_.reset();
        verdict.pause = kHistoryLostPause;
        return verdict;
    }
    verdict.pause = pause_;
    pause_ = std::min(pause_ * 2, kLongestPause);
    return verdict;
}

}  // namespace angelia::store::mongo
