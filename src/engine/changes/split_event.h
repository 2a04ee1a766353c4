// An event that is larger than a document may be, as several documents
// ($changeStreamSplitLargeEvent).
#pragma once

#include "engine/changes/resume_token.h"

#include <vector>

namespace angelia::engine::changes {

/// The fragments of an event: each has `_id` (the event's token with the fragment's number),
/// `splitEvent {fragment, of}` and a share of the other fields, small ones first. None is larger
/// than `bytes_max`. `token` is the event's. Errors: BSONObjectTooLarge (one field alone is too
/// large).
Result<std::vector<bson::Document>> split_event(bson::DocumentView event, const ResumeToken& token,
                                                std::size_t bytes_max);

}  // namespace angelia::engine::changes
