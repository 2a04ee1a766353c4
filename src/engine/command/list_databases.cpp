#include "engine/command/arguments.h"
#include "engine/command/commands.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kListDatabasesFields[] = {"filter", "nameOnly", "authorizedDatabases"};

std::int64_t database_bytes(Engine& engine, const std::string& db) {
    std::int64_t bytes = 0;
    for (const auto& collection : engine.list_collections(db))
        if (const auto stats = engine.collection_stats({db, collection.name}))
            bytes += stats->bytes;  // else it was dropped just now
    return bytes;
}

Result<void> list_databases(const CallPtr& call) {
    const Arguments arguments("listDatabases", call->body());
    ANGELIA_TRY_ASSIGN(const auto filter_document, arguments.document("filter"));
    ANGELIA_TRY_ASSIGN(const auto filter, query::Matcher::parse(filter_document));
    ANGELIA_TRY_ASSIGN(const bool name_only, arguments.boolean("nameOnly", false));
    bson::Builder b;
    std::int64_t total = 0;
    b.open_array("databases");
    for (const auto& db : call->engine().list_databases()) {
        const std::int64_t bytes = name_only ? 0 : database_bytes(call->engine(), db);
        const auto full = bson::make("name", db, "sizeOnDisk", bytes, "empty", bytes == 0);
        if (!filter.matches(full)) continue;
        total += bytes;
        if (name_only)
            b.push(bson::make("name", db));
        else
            b.push(full);
    }
    b.close();
    if (!name_only) b.add("totalSize", total).add("totalSizeMb", total / (1024 * 1024));
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kListDatabasesCommand{.name = "listDatabases",
                                                .handler = list_databases,
                                                .fields = kListDatabasesFields,
                                                .flags = kAdminOnly | kReads | kApiVersion1,
                                                .help = "names and sizes of the databases"};

}  // namespace angelia::engine::command
