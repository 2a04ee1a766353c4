#include "engine/command/concerns.h"

#include "engine/command/arguments.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::int64_t kReplicaSetMembersMax = 50;  // MongoDB limit; also of `w`

Result<void> parse_w(bson::ValueView w, WriteConcern& concern) {
    if (const auto tag = w.get_string()) {
        if (*tag != "majority") {
            concern.unsatisfiable = Error(
                ErrorCode::UnknownReplWriteConcern,
                fmt::format("No write concern mode named '{}' found in replica set configuration",
                            *tag));
        }
        return {};
    }
    if (!w.is_number())
        return Error(ErrorCode::FailedToParse, fmt::format("w has to be a number or string, not {}",
                                                           bson::type_alias(w.type())));
    const auto number = w.to_int64();
    if (!number || *number < 0 || *number > kReplicaSetMembersMax)
        return Error(ErrorCode::FailedToParse,
                     fmt::format("w has to be a non-negative number and not greater than {}",
                                 kReplicaSetMembersMax));
    concern.unacknowledged = *number == 0;
    if (*number > 1)
        concern.unsatisfiable =
            Error(ErrorCode::UnsatisfiableWriteConcern, "Not enough data-bearing nodes");
    return {};
}

}  // namespace

Result<WriteConcern> parse_write_concern(bson::ValueView value) {
    if (!value.is(bson::Type::Document)) return wrong_type("writeConcern", value, "object");
    WriteConcern concern;
    concern.source = bson::Document(value.as_document());
    bool journal = false;
    for (const auto& [key, v] : concern.source.view()) {
        if (key == "w") {
            ANGELIA_TRY(parse_w(v, concern));
        } else if (key == "j" || key == "fsync") {
            if (!v.is(bson::Type::Bool) && !v.is_number())
                return wrong_type(fmt::format("writeConcern.{}", key), v, "bool");
            journal = journal || v.truthy();
        } else if (key == "wtimeout") {
            if (!v.is_number()) return wrong_type("writeConcern.wtimeout", v, "number");
        } else if (key != "provenance" && key != "getLastError" && key != "wOpTime" &&
                   key != "wElectionId") {
            return Error(ErrorCode::Location40415,
                         fmt::format("BSON field 'writeConcern.{}' is an unknown field.", key));
        }
    }
    if (concern.unacknowledged && journal)
        return Error(ErrorCode::FailedToParse,
                     "writeConcern {w: 0} waits for nothing and cannot ask for {j: true}");
    return concern;
}

Result<ReadConcern> parse_read_concern(bson::ValueView value) {
    if (!value.is(bson::Type::Document)) return wrong_type("readConcern", value, "object");
    ReadConcern concern;
    for (const auto& [key, v] : value.as_document()) {
        if (key == "level") {
            if (!v.is(bson::Type::String)) return wrong_type("readConcern.level", v, "string");
            concern.level = v.as_string();
        } else if (key == "afterClusterTime") {
            concern.after_cluster_time = v.get_timestamp();
            if (!concern.after_cluster_time)
                return wrong_type("readConcern.afterClusterTime", v, "timestamp");
        } else if (key == "atClusterTime") {
            concern.at_cluster_time = v.get_timestamp();
            if (!concern.at_cluster_time || *concern.at_cluster_time == bson::Timestamp{})
                return wrong_type("readConcern.atClusterTime", v, "timestamp");
        } else if (key != "provenance") {
            return Error(ErrorCode::Location40415,
                         fmt::format("BSON field 'readConcern.{}' is an unknown field.", key));
        }
    }
    const auto& level = concern.level;
    if (!level.empty() && level != "local" && level != "available" && level != "majority" &&
        level != "linearizable" && level != "snapshot") {
        return Error(ErrorCode::FailedToParse,
                     fmt::format("readConcern.level '{}' is unknown; local, available, majority, "
                                 "linearizable and snapshot are allowed",
                                 level));
    }
    if (concern.after_cluster_time && (level == "linearizable" || level == "available"))
        return Error(
            ErrorCode::InvalidOptions,
            fmt::format("readConcern.afterClusterTime does not go with level '{}'", level));
    if (concern.at_cluster_time && level != "snapshot")
        return Error(ErrorCode::InvalidOptions,
                     "readConcern.atClusterTime is only allowed with level 'snapshot'");
    if (concern.at_cluster_time && concern.after_cluster_time)
        return Error(ErrorCode::InvalidOptions,
                     "readConcern takes either atClusterTime or afterClusterTime, not both");
    return concern;
}

bson::Document write_concern_error(const WriteConcern& concern) {
    const Error& e = *concern.unsatisfiable;
    bson::Builder given;
    given.add_all(concern.source);
    if (!concern.source.has("provenance")) given.add("provenance", "clientSupplied");
    return bson::make("code", static_cast<std::int32_t>(e.code), "codeName",
                      error_code_name(e.code), "errmsg", e.message, "errInfo",
                      bson::make("writeConcern", given.take()));
}

}  // namespace angelia::engine::command
