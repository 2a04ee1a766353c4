// writeConcern and readConcern of a command (contract 6.7).
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>

#include <optional>
#include <string>

namespace angelia::engine::command {

struct WriteConcern {
    bool unacknowledged = false;         ///< w: 0
    std::optional<Error> unsatisfiable;  ///< a single node cannot do it: reported beside the
                                         ///< result, after the write was applied
    bson::Document source;               ///< as the client gave it
};

struct ReadConcern {
    std::string level;  ///< empty = not given
    std::optional<bson::Timestamp> after_cluster_time;
    std::optional<bson::Timestamp> at_cluster_time;  ///< only with level "snapshot"
};

/// Errors: TypeMismatch, FailedToParse (w out of 0..50, w: 0 with j: true), BadValue (unknown
/// field).
Result<WriteConcern> parse_write_concern(bson::ValueView value);
/// Errors: TypeMismatch, FailedToParse (unknown level or field), InvalidOptions (a level that does
/// not go with afterClusterTime or atClusterTime).
Result<ReadConcern> parse_read_concern(bson::ValueView value);

/// {code, codeName, errmsg, errInfo: {writeConcern}}.
bson::Document write_concern_error(const WriteConcern& concern);

}  // namespace angelia::engine::command
