// listIndexes and dropIndexes.
#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/cursor_reply.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kListIndexesFields[] = {"cursor", "includeIndexBuildInfo",
                                                   "includeBuildUUIDs"};
constexpr std::string_view kDropIndexesFields[] = {"index"};

bson::Document describe_index(const IndexSpec& spec) {
    bson::Builder b;
    b.add("v", std::int32_t{2}).add("key", spec.key).add("name", spec.name);
    if (spec.unique && spec.name != "_id_") b.add("unique", true);
    if (spec.sparse) b.add("sparse", true);
    if (spec.expire_after_seconds)
        b.add("expireAfterSeconds", static_cast<std::int32_t>(*spec.expire_after_seconds));
    if (!spec.partial_filter.empty()) b.add("partialFilterExpression", spec.partial_filter);
    b.add_all(spec.extra);
    return b.take();
}

Result<void> list_indexes(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    auto indexes = call->engine().list_indexes(ns);
    if (!indexes && indexes.error().code == ErrorCode::NamespaceNotFound)
        return Error(ErrorCode::NamespaceNotFound, fmt::format("ns does not exist: {}", ns.full()));
    if (!indexes) return std::move(indexes).error();
    CursorBatch batch;
    batch.ns = ns.full();
    for (const auto& spec : *indexes) batch.documents.push_back(describe_index(spec));
    call->succeed(cursor_reply(batch, true));
    return {};
}

Result<void> drop_indexes(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY_ASSIGN(const auto which, Arguments("dropIndexes", call->body()).required("index"));
    if (!which.is(bson::Type::String) && !which.is_container())
        return wrong_type("dropIndexes.index", which, "string, object or array");
    call->engine().drop_indexes(
        ns, bson::Value(which),
        [call](Result<std::int32_t> dropped) {
            if (!call->failed(dropped))
                call->succeed(std::move(bson::Builder().add("nIndexesWas", *dropped)));
        },
        call->deadline());
    return {};
}

}  // namespace

extern const CommandEntry kListIndexesCommand{.name = "listIndexes",
                                              .handler = list_indexes,
                                              .fields = kListIndexesFields,
                                              .flags = kReads | kApiVersion1,
                                              .help = "the indexes of a collection"};
extern const CommandEntry kDropIndexesCommand{.name = "dropIndexes",
                                              .aliases = {"deleteIndexes"},
                                              .handler = drop_indexes,
                                              .fields = kDropIndexesFields,
                                              .flags = kWrites | kLong | kApiVersion1,
                                              .help = "removes indexes, except that on _id"};

}  // namespace angelia::engine::command
