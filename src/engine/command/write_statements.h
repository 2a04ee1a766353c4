// The statements of update, delete and bulkWrite, from their fields to what the engine runs.
#pragma once

#include "engine/command/call.h"

#include <optional>

namespace angelia::engine::command {

/// Still as bytes of the request.
struct UpdateStatement {
    bson::DocumentView filter;
    bson::ValueView update;
    std::optional<bson::DocumentView> array_filters;
    bson::DocumentView sort;
    bson::ValueView hint;
    bool multi = false;
    bool upsert = false;
};
struct DeleteStatement {
    bson::DocumentView filter;
    bson::ValueView hint;
    bool multi = false;
};

/// Errors: those of the filter and of the update; each is the statement's own.
Result<ConditionalWrite> make_write(const Namespace& ns, const UpdateStatement& s);
Result<ConditionalWrite> make_write(const Namespace& ns, const DeleteStatement& s);
ConditionalWrite make_insert(const Namespace& ns, bson::DocumentView document);

}  // namespace angelia::engine::command
