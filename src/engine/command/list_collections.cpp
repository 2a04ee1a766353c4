#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/cursor_reply.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kListCollectionsFields[] = {"filter", "nameOnly",
                                                       "authorizedCollections", "cursor"};

bson::Document describe_collection(const CollectionInfo& info) {
    const std::string_view uuid(reinterpret_cast<const char*>(info.uuid.data()), info.uuid.size());
    return bson::make("name", info.name, "type", "collection", "options", info.options, "info",
                      bson::make("readOnly", false, "uuid", bson::BinaryView{4, uuid}), "idIndex",
                      bson::make("v", std::int32_t{2}, "key", bson::make("_id", std::int32_t{1}),
                                 "name", "_id_"));
}

Result<void> list_collections(const CallPtr& call) {
    const Arguments arguments("listCollections", call->body());
    ANGELIA_TRY_ASSIGN(const auto filter_document, arguments.document("filter"));
    ANGELIA_TRY_ASSIGN(const auto filter, query::Matcher::parse(filter_document));
    ANGELIA_TRY_ASSIGN(const bool name_only, arguments.boolean("nameOnly", false));
    CursorBatch batch;
    batch.ns = call->database() + ".$cmd.listCollections";
    for (const auto& info : call->engine().list_collections(call->database())) {
        auto full = describe_collection(info);
        if (filter.matches(full))
            batch.documents.push_back(
                name_only ? bson::make("name", info.name, "type", "collection") : std::move(full));
    }
    call->succeed(cursor_reply(batch, true));
    return {};
}

}  // namespace

extern const CommandEntry kListCollectionsCommand{.name = "listCollections",
                                                  .handler = list_collections,
                                                  .fields = kListCollectionsFields,
                                                  .flags = kReads | kApiVersion1,
                                                  .help = "the collections of a database"};

}  // namespace angelia::engine::command
