// The reply of commands that hand out documents: {cursor: {id, ns, firstBatch | nextBatch,
// postBatchResumeToken?}}.
#pragma once

#include "engine/command/call.h"

namespace angelia::engine::command {

inline bson::Builder cursor_reply(const CursorBatch& batch, bool first) {
    bson::Builder b;
    b.open("cursor").open_array(first ? "firstBatch" : "nextBatch");
    for (const auto& document : batch.documents) b.push(document);
    b.close();
    if (batch.post_batch_resume_token)
        b.add("postBatchResumeToken", *batch.post_batch_resume_token);
    if (batch.at_cluster_time) b.add("atClusterTime", *batch.at_cluster_time);
    b.add("id", batch.cursor_id).add("ns", batch.ns).close();
    return b;
}

inline constexpr std::int64_t kFirstBatchDefault = 101;  // MongoDB

}  // namespace angelia::engine::command
