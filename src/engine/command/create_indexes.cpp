#include "engine/command/arguments.h"
#include "engine/command/commands.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kCreateIndexesFields[] = {"indexes", "commitQuorum",
                                                     "ignoreUnknownIndexOptions"};
// Options that would change what the index does and do not exist here.
constexpr std::string_view kIndexUnsupported[] = {"prepareUnique", "clustered",
                                                  "wildcardProjection", "columnstoreProjection"};
// Options of index types that do not exist here; the type itself is refused by its key.
constexpr std::string_view kIndexOfOtherTypes[] = {"weights",
                                                   "default_language",
                                                   "language_override",
                                                   "textIndexVersion",
                                                   "2dsphereIndexVersion",
                                                   "bits",
                                                   "min",
                                                   "max",
                                                   "bucketSize",
                                                   "storageEngine"};
// Accepted and dropped.
constexpr std::string_view kIndexDropped[] = {"background", "v", "ns", "dropDups", "safe"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
    for (const auto n : names)
        if (n == name) return true;
    return false;
}

Result<void> read_index_key(bson::ValueView key) {
    if (!key.is(bson::Type::Document))
        return wrong_type("createIndexes.indexes.key", key, "object");
    if (key.as_document().empty())
        return Error(ErrorCode::CannotCreateIndex, "Index keys cannot be an empty object");
    for (const auto& [field, direction] : key.as_document()) {
        if (const auto type = direction.get_string())
            return Error(
                ErrorCode::CannotCreateIndex,
                fmt::format(
                    "index type '{}' of field '{}' is not supported by this server; 1 and -1 are",
                    *type, field));
        const auto number = direction.to_double();
        if (!direction.is_number() || !number || *number == 0 || *number != *number)
            return Error(
                ErrorCode::CannotCreateIndex,
                fmt::format(
                    "Values in the index key pattern cannot be {}; field '{}' needs 1 or -1",
                    direction.is_number() ? "0" : bson::type_alias(direction.type()), field));
    }
    return {};
}

Result<void> read_index_option(IndexSpec& spec, bson::Builder& extra, std::string_view key,
                               bson::ValueView value, bool ignore_unknown) {
    const std::string where = fmt::format("createIndexes.indexes.{}", key);
    if (key == "unique" || key == "sparse" || key == "hidden") {
        if (!value.is(bson::Type::Bool) && !value.is_number())
            return wrong_type(where, value, "bool");
        if (key == "unique") spec.unique = value.truthy();
        if (key == "sparse") spec.sparse = value.truthy();
        if (key == "hidden" && value.truthy()) extra.add("hidden", true);
    } else if (key == "expireAfterSeconds") {
        if (!value.is_number()) return wrong_type(where, value, "number");
        spec.expire_after_seconds = value.to_int64();
        if (!spec.expire_after_seconds)
            spec.expire_after_seconds = static_cast<std::int64_t>(value.to_double().value_or(-1));
        if (*spec.expire_after_seconds < 0 || *spec.expire_after_seconds > INT32_MAX) {
            return Error(ErrorCode::CannotCreateIndex,
                         fmt::format("TTL index 'expireAfterSeconds' option must be within 0 to {}",
                                     INT32_MAX));
        }
    } else if (key == "partialFilterExpression") {
        if (!value.is(bson::Type::Document)) return wrong_type(where, value, "object");
        spec.partial_filter = bson::Document(value.as_document());
    } else if (key == "collation") {
        if (!value.is(bson::Type::Document)) return wrong_type(where, value, "object");
        if (value.as_document().find("locale").get_string() != "simple")
            return Error(ErrorCode::CannotCreateIndex,
                         "index collations are not supported by this server yet, except {locale: "
                         "\"simple\"}");
    } else if (is_one_of(kIndexUnsupported, key)) {
        return Error(ErrorCode::CannotCreateIndex,
                     fmt::format("index option '{}' is not supported by this server yet", key));
    } else if (!is_one_of(kIndexOfOtherTypes, key) && !is_one_of(kIndexDropped, key) &&
               !ignore_unknown) {
        return Error(
            ErrorCode::InvalidIndexSpecificationOption,
            fmt::format(
                "The field '{}' is not valid for an index specification. Specification: index '{}'",
                key, spec.name));
    }
    return {};
}

Result<IndexSpec> parse_index_spec(bson::DocumentView document, bool ignore_unknown) {
    IndexSpec spec;
    const auto key = document.find("key");
    const auto name = document.find("name");
    if (key.is_missing())
        return Error(ErrorCode::FailedToParse,
                     "The 'key' field is a required property of an index specification");
    if (name.is_missing())
        return Error(ErrorCode::FailedToParse,
                     "The 'name' field is a required property of an index specification");
    if (!name.is(bson::Type::String))
        return wrong_type("createIndexes.indexes.name", name, "string");
    if (name.as_string().empty() || name.as_string() == "*") {
        return Error(name.as_string().empty() ? ErrorCode::CannotCreateIndex : ErrorCode::BadValue,
                     fmt::format("The index name '{}' is not valid", name.as_string()));
    }
    ANGELIA_TRY(read_index_key(key));
    spec.name = name.as_string();
    spec.key = bson::Document(key.as_document());
    bson::Builder extra;
    for (const auto& [option, value] : document)
        if (option != "key" && option != "name")
            ANGELIA_TRY(read_index_option(spec, extra, option, value, ignore_unknown));
    spec.extra = extra.take();
    return spec;
}

Result<void> check_commit_quorum(bson::ValueView quorum) {
    if (quorum.is_missing()) return {};
    if (const auto word = quorum.get_string()) {
        if (*word == "votingMembers" || *word == "majority") return {};
        return Error(
            ErrorCode::UnknownReplWriteConcern,
            fmt::format(
                "commitQuorum '{}' is unknown; votingMembers, majority, 0 and 1 are allowed",
                *word));
    }
    if (!quorum.is_number())
        return wrong_type("createIndexes.commitQuorum", quorum, "string or number");
    const auto members = quorum.to_int64().value_or(-1);
    if (members < 0)
        return Error(ErrorCode::FailedToParse, "commitQuorum has to be a non-negative number");
    if (members > 1)
        return Error(ErrorCode::UnsatisfiableCommitQuorum,
                     fmt::format("commitQuorum {} cannot be met by a set of one member", members));
    return {};
}

bson::Builder indexes_reply(const IndexBuild& built) {
    bson::Builder b;
    b.add("numIndexesBefore", built.before)
        .add("numIndexesAfter", built.after)
        .add("createdCollectionAutomatically", built.created_collection);
    if (built.all_existed)
        b.add("note", "all indexes already exist");
    else
        b.add("commitQuorum", "votingMembers");
    return b;
}

Result<void> create_indexes(const CallPtr& call) {
    const Arguments arguments("createIndexes", call->body());
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY(check_commit_quorum(arguments.value("commitQuorum")));
    ANGELIA_TRY_ASSIGN(const bool ignore_unknown,
                       arguments.boolean("ignoreUnknownIndexOptions", false));
    ANGELIA_TRY_ASSIGN(const auto documents, call->documents("indexes"));
    if (documents.empty())
        return Error(ErrorCode::BadValue, "Must specify at least one index to create");
    std::vector<IndexSpec> specs;
    for (const auto& document : documents) {
        ANGELIA_TRY_ASSIGN(auto spec, parse_index_spec(document, ignore_unknown));
        specs.push_back(std::move(spec));
    }
    if (call->statement()) {
        ANGELIA_TRY_ASSIGN(const auto built,
                           call->engine().create_indexes_in(call->statement(), ns, specs));
        call->succeed(indexes_reply(built));
        return {};
    }
    call->engine().create_indexes(
        ns, std::move(specs),
        [call](Result<IndexBuild> built) {
            if (!call->failed(built)) call->succeed(indexes_reply(*built), built->operation_time);
        },
        call->deadline());
    return {};
}

}  // namespace

extern const CommandEntry kCreateIndexesCommand{
    .name = "createIndexes",
    .handler = create_indexes,
    .fields = kCreateIndexesFields,
    .flags = kWrites | kLong | kApiVersion1 | kInTransaction,
    .help = "builds indexes; existing ones are no error"};

}  // namespace angelia::engine::command
