#include "engine/command/arguments.h"

#include "engine/command/command_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace angelia::engine::command {
namespace {

// Accepted on every command and without meaning here, or read by read_generic_arguments().
constexpr std::string_view kGenericFields[] = {
    "$audit",
    "$client",
    "$clusterTime",
    "$configServerState",
    "$configTime",
    "$db",
    "$oplogQueryData",
    "$queryOptions",
    "$readPreference",
    "$replData",
    "$topologyTime",
    "allowImplicitCollectionCreation",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "comment",
    "databaseVersion",
    "help",
    "lsid",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "rawData",
    "readConcern",
    "recoveryToken",
    "shardVersion",
    "startTransaction",
    "stmtId",
    "stmtIds",
    "txnNumber",
    "writeConcern",
};
static_assert(std::is_sorted(std::begin(kGenericFields), std::end(kGenericFields)));

bool contains(std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

Result<bson::Document> read_session(bson::ValueView value) {
    if (!value.is(bson::Type::Document)) return wrong_type("lsid", value, "object");
    const auto id = value.as_document().find("id");
    if (id.is_missing()) return missing_field("lsid.id");
    if (!id.is(bson::Type::Binary) || id.as_binary().subtype != 4 ||
        id.as_binary().bytes.size() != 16)
        return Error(ErrorCode::InvalidOptions,
                     "lsid.id has to be a UUID: binary of subtype 4 with 16 bytes");
    return bson::make("id", id);
}

Result<std::vector<std::int32_t>> read_statement_ids(bson::DocumentView body) {
    std::vector<std::int32_t> ids;
    const auto push = [&ids](bson::ValueView v) -> Result<void> {
        const auto n = v.to_int64();
        if (!n || *n < 0 || *n > INT32_MAX) return wrong_type("stmtIds", v, "int");
        ids.push_back(static_cast<std::int32_t>(*n));
        return {};
    };
    if (const auto list = body.find("stmtIds").get_array())
        for (const auto& element : *list) ANGELIA_TRY(push(element.value));
    else if (const auto one = body.find("stmtId"); !one.is_missing())
        ANGELIA_TRY(push(one));
    return ids;
}

/// What makes a command a statement of a transaction (contract 6.2).
Result<void> read_statement_fields(Call& call) {
    const auto& entry = call.entry();
    const auto autocommit = call.body().find("autocommit");
    const auto start = call.body().find("startTransaction");
    if (!call.generic().txn_number || call.generic().lsid.empty())
        return Error(ErrorCode::InvalidOptions,
                     "'autocommit' and 'startTransaction' need 'lsid' and 'txnNumber'");
    if (autocommit.is_missing())
        return Error(ErrorCode::InvalidOptions,
                     "'startTransaction' field requires 'autocommit' field to also be specified");
    if (!autocommit.is(bson::Type::Bool) || autocommit.as_bool())
        return Error(ErrorCode::InvalidOptions,
                     "Specifying 'autocommit' other than false is not allowed.");
    if (!start.is_missing() && (!start.is(bson::Type::Bool) || !start.as_bool()))
        return Error(ErrorCode::InvalidOptions,
                     "Specifying 'startTransaction' other than true is not allowed.");
    call.generic().in_transaction = true;
    call.generic().starts_transaction = !start.is_missing();
    if (entry.has(kEndsTransaction)) {
        if (call.generic().starts_transaction)
            return Error(ErrorCode::InvalidOptions,
                         fmt::format("Cannot run '{}' with 'startTransaction'", entry.name));
        return {};
    }
    if (!entry.has(kInTransaction))
        return Error(ErrorCode::OperationNotSupportedInTransaction,
                     fmt::format("Cannot run '{}' in a multi-document transaction.", entry.name));
    if (call.request().unacknowledged)
        return Error(ErrorCode::InvalidOptions,
                     "a statement of a transaction cannot be unacknowledged");
    return {};
}

Result<void> read_transaction_fields(Call& call, const Arguments& arguments) {
    const auto body = call.body();
    ANGELIA_TRY_ASSIGN(call.generic().txn_number, arguments.integer("txnNumber"));
    if (call.generic().txn_number && *call.generic().txn_number < 0)
        return Error(
            ErrorCode::InvalidOptions,
            fmt::format("txnNumber must not be negative, got {}", *call.generic().txn_number));
    if (body.has("autocommit") || body.has("startTransaction")) {
        ANGELIA_TRY(read_statement_fields(call));
        return {};
    }
    if (!call.generic().txn_number) return {};
    if (call.generic().lsid.empty())
        return Error(ErrorCode::InvalidOptions,
                     "Transaction number requires a session ID to also be specified");
    if (*call.generic().txn_number < 0)
        return Error(ErrorCode::InvalidOptions,
                     fmt::format("txnNumber cannot be negative: {}", *call.generic().txn_number));
    if (!call.entry().has(kRetryable))
        return Error(ErrorCode::Location50768,
                     fmt::format("Command '{}' takes no txnNumber outside of a transaction",
                                 call.entry().name));
    ANGELIA_TRY_ASSIGN(call.generic().stmt_ids, read_statement_ids(body));
    return {};
}

Result<void> check_concerns_in_transaction(const Call& call) {
    const auto& entry = call.entry();
    if (call.body().has("writeConcern") && !entry.has(kEndsTransaction))
        return Error(ErrorCode::InvalidOptions,
                     "writeConcern is not allowed within a multi-statement transaction");
    if (!call.body().has("readConcern")) return {};
    if (!call.generic().starts_transaction)
        return Error(ErrorCode::InvalidOptions,
                     "Only the first command in a transaction may specify a readConcern");
    const auto& level = call.generic().read_concern.level;
    if (!level.empty() && level != "local" && level != "majority" && level != "snapshot")
        return Error(ErrorCode::InvalidOptions,
                     fmt::format("The readConcern level must be either 'local' (default), "
                                 "'majority' or 'snapshot' in order to run in a transaction, not "
                                 "'{}'",
                                 level));
    return {};
}

Result<void> read_concerns(Call& call) {
    const auto write = call.body().find("writeConcern");
    if (!write.is_missing()) {
        if (!call.entry().has(kWrites))
            return Error(
                ErrorCode::InvalidOptions,
                fmt::format("Command {} does not support writeConcern", call.entry().name));
        ANGELIA_TRY_ASSIGN(call.generic().write_concern, parse_write_concern(write));
    }
    const auto read = call.body().find("readConcern");
    if (!read.is_missing()) {
        ANGELIA_TRY_ASSIGN(call.generic().read_concern, parse_read_concern(read));
    }
    if (call.generic().in_transaction) return check_concerns_in_transaction(call);
    const auto& level = call.generic().read_concern.level;
    const bool allowed = level.empty() || level == "local" || level == "available" ||
                         (call.entry().has(kReads) && level != "snapshot") ||
                         (call.entry().has(kSnapshotReads) && level == "snapshot");
    if (!allowed)
        return Error(ErrorCode::InvalidOptions,
                     fmt::format("Command {} does not support read concern level '{}'",
                                 call.entry().name, level));
    return {};
}

Result<void> check_api_version(const Call& call, const Arguments& arguments) {
    ANGELIA_TRY_ASSIGN(const auto version, arguments.string("apiVersion"));
    ANGELIA_TRY_ASSIGN(const bool strict, arguments.boolean("apiStrict", false));
    ANGELIA_TRY_ASSIGN(const bool deprecation, arguments.boolean("apiDeprecationErrors", false));
    if (!version) {
        if (strict || deprecation)
            return Error(ErrorCode::InvalidOptions,
                         "Provided apiStrict or apiDeprecationErrors without passing apiVersion");
        return {};
    }
    if (*version != "1")
        return Error(ErrorCode::APIVersionError,
                     fmt::format("API version '{}' is unknown; '1' is supported", *version));
    if (strict && !call.entry().has(kApiVersion1)) {
        return Error(
            ErrorCode::APIStrictError,
            fmt::format("Provided apiStrict:true, but the command {} is not in API Version 1",
                        call.entry().name));
    }
    return {};
}

/// The client's view of the cluster's time moves ours, within limits that the store knows.
Result<void> adopt_cluster_time(Call& call) {
    const auto given = call.body().find("$clusterTime");
    if (const auto document = given.get_document()) {
        const auto time = document->find("clusterTime").get_timestamp();
        if (!time)
            return wrong_type("$clusterTime.clusterTime", document->find("clusterTime"),
                              "timestamp");
        if (*time > call.engine().operation_time())
            ANGELIA_TRY(call.engine().storage().adopt_cluster_time(*time));
    } else if (!given.is_missing()) {
        return wrong_type("$clusterTime", given, "object");
    }
    return {};
}

}  // namespace

Error wrong_type(std::string_view field, bson::ValueView value, std::string_view expected) {
    return Error(ErrorCode::TypeMismatch,
                 fmt::format("BSON field '{}' is the wrong type '{}', expected type '{}'", field,
                             bson::type_alias(value.type()), expected));
}
Error missing_field(std::string_view field) {
    return Error(ErrorCode::Location40414,
                 fmt::format("BSON field '{}' is missing but a required field", field));
}
Error unknown_field(std::string_view field) {
    return Error(ErrorCode::Location40415,
                 fmt::format("BSON field '{}' is an unknown field.", field));
}

std::string Arguments::path(std::string_view field) const {
    return fmt::format("{}.{}", where_, field);
}

bson::ValueView Arguments::value(std::string_view field) const {
    const auto v = document_.find(field);
    return v.is_null() || v.is(bson::Type::Undefined) ? bson::ValueView() : v;
}

Result<bson::ValueView> Arguments::required(std::string_view field) const {
    const auto v = document_.find(field);
    if (v.is_missing()) return missing_field(path(field));
    return v;
}

Result<bool> Arguments::boolean(std::string_view field, bool otherwise) const {
    const auto v = value(field);
    if (v.is_missing()) return otherwise;
    if (!v.is(bson::Type::Bool) && !v.is_number()) return wrong_type(path(field), v, "bool");
    return v.truthy();
}

Result<std::optional<std::int64_t>> Arguments::integer(std::string_view field) const {
    const auto v = value(field);
    if (v.is_missing()) return std::optional<std::int64_t>();
    if (!v.is_number()) return wrong_type(path(field), v, "long");
    if (const auto n = v.to_int64()) return std::optional(*n);
    // A double with a fraction is cut, as MongoDB does; what does not fit at all is an error.
    const auto d = v.to_double();
    if (!d || !(*d > -9.2e18 && *d < 9.2e18))
        return Error(
            ErrorCode::BadValue,
            fmt::format("BSON field '{}' does not fit into a 64-bit integer", path(field)));
    return std::optional(static_cast<std::int64_t>(*d));
}

Result<std::int64_t> Arguments::non_negative(std::string_view field, std::int64_t otherwise) const {
    ANGELIA_TRY_ASSIGN(const auto n, integer(field));
    if (n && *n < 0)
        return Error(
            ErrorCode::Location51024,
            fmt::format("BSON field '{}' value must be >= 0, actual value '{}'", field, *n));
    return n.value_or(otherwise);
}

Result<bson::DocumentView> Arguments::document(std::string_view field) const {
    const auto v = value(field);
    if (v.is_missing()) return bson::DocumentView();
    if (!v.is(bson::Type::Document)) return wrong_type(path(field), v, "object");
    return v.as_document();
}

Result<std::optional<bson::DocumentView>> Arguments::array(std::string_view field) const {
    const auto v = value(field);
    if (v.is_missing()) return std::optional<bson::DocumentView>();
    if (!v.is(bson::Type::Array)) return wrong_type(path(field), v, "array");
    return std::optional(v.as_document());
}

Result<std::optional<std::string_view>> Arguments::string(std::string_view field) const {
    const auto v = value(field);
    if (v.is_missing()) return std::optional<std::string_view>();
    if (!v.is(bson::Type::String)) return wrong_type(path(field), v, "string");
    return std::optional(v.as_string());
}

Result<void> Arguments::none_of(std::span<const std::string_view> fields) const {
    for (const auto field : fields) {
        const auto v = value(field);
        const bool says_nothing = v.is_missing() || (v.is(bson::Type::Bool) && !v.as_bool()) ||
                                  (v.is_container() && v.as_document().empty());
        if (!says_nothing)
            return Error(ErrorCode::NotImplemented,
                         fmt::format("'{}' is not supported by this server yet", path(field)));
    }
    return {};
}

Result<void> Arguments::no_collation() const {
    ANGELIA_TRY_ASSIGN(const auto collation, document("collation"));
    if (collation.empty() || collation.find("locale").get_string() == "simple") return {};
    return Error(
        ErrorCode::NotImplemented,
        fmt::format("'{}' is not supported by this server yet, except {{locale: \"simple\"}}",
                    path("collation")));
}

Result<void> Arguments::only(std::span<const std::string_view> allowed) const {
    for (const auto& element : document_)
        if (!contains(allowed, element.key)) return unknown_field(path(element.key));
    return {};
}

Result<void> read_generic_arguments(Call& call) {
    const auto& entry = call.entry();
    const Arguments arguments(entry.name, call.body());
    bool first = true;
    bool generic = false;
    for (const auto& [key, value] : call.body()) {
        if (std::exchange(first, false) || contains(entry.fields, key) || key == "$db") continue;
        if (std::binary_search(std::begin(kGenericFields), std::end(kGenericFields), key))
            generic = true;
        else if (!entry.has(kAnyFields))
            return unknown_field(fmt::format("{}.{}", entry.name, key));
    }
    for (const auto& sequence : call.request().sequences)
        if (!contains(entry.fields, sequence.name) && !entry.has(kAnyFields))
            return unknown_field(fmt::format("{}.{}", entry.name, sequence.name));
    if (!generic) return {};
    if (const auto lsid = call.body().find("lsid"); !lsid.is_missing()) {
        ANGELIA_TRY_ASSIGN(call.generic().lsid, read_session(lsid));
    }
    ANGELIA_TRY(check_api_version(call, arguments));
    ANGELIA_TRY(read_transaction_fields(call, arguments));
    ANGELIA_TRY(read_concerns(call));
    ANGELIA_TRY_ASSIGN(const auto max_time, arguments.non_negative("maxTimeMS", 0));
    if (max_time > INT32_MAX)
        return Error(ErrorCode::BadValue,
                     fmt::format("{} is out of range for maxTimeMS, at most {} is allowed",
                                 max_time, INT32_MAX));
    if (max_time > 0) call.generic().max_time = milliseconds(max_time);
    ANGELIA_TRY(adopt_cluster_time(call));
    if (const auto after = call.generic().read_concern.after_cluster_time;
        after && *after > call.engine().operation_time()) {
        // One node: whatever carries that time was given out by its clock, so a later time than
        // that is a mistake or another cluster's.
        ANGELIA_TRY(call.engine().storage().adopt_cluster_time(*after));
    }
    return {};
}

}  // namespace angelia::engine::command
