// collStats, dbStats and validate: sizes, and the check that records, indexes and oplog agree.
#include "engine/command/arguments.h"
#include "engine/command/commands.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kStatsFields[] = {"scale", "freeStorage", "verbose"};
constexpr std::string_view kValidateFields[] = {"full", "metadata", "repair",
                                                "checkBSONConformance", "background"};

Result<std::int64_t> read_scale(const Call& call) {
    ANGELIA_TRY_ASSIGN(const auto scale,
                       Arguments(call.entry().name, call.body()).integer("scale"));
    if (scale.value_or(1) < 1)
        return Error(ErrorCode::BadValue, "scale has to be a positive number");
    return scale.value_or(1);
}

Result<void> collection_statistics(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY_ASSIGN(const auto scale, read_scale(*call));
    CollectionStats stats;
    if (auto found = call->engine().collection_stats(ns))
        stats = std::move(found).value();
    else if (found.error().code != ErrorCode::NamespaceNotFound)
        return std::move(found).error();
    bson::Builder b;
    b.add("ns", ns.full()).add("size", stats.bytes / scale).add("count", stats.count);
    if (stats.count > 0) b.add("avgObjSize", stats.bytes / stats.count);
    b.add("storageSize", stats.bytes / scale)
        .add("freeStorageSize", std::int64_t{0})
        .add("capped", false);
    b.add("nindexes", static_cast<std::int32_t>(stats.indexes.size()))
        .add("indexBuilds", bson::Array())
        .add("totalIndexSize", std::int64_t{0});
    b.add("totalSize", stats.bytes / scale).open("indexSizes");
    for (const auto& index : stats.indexes)
        b.add(index.name, std::int64_t{0});  // the store does not account for indexes apart
    b.close().add("scaleFactor", scale);
    call->succeed(std::move(b));
    return {};
}

Result<void> database_statistics(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto scale, read_scale(*call));
    std::int64_t collections = 0, objects = 0, bytes = 0, indexes = 0;
    for (const auto& info : call->engine().list_collections(call->database())) {
        const auto stats = call->engine().collection_stats({call->database(), info.name});
        if (!stats) continue;  // dropped just now
        ++collections;
        objects += stats->count;
        bytes += stats->bytes;
        indexes += static_cast<std::int64_t>(stats->indexes.size());
    }
    const auto disk = static_cast<std::int64_t>(call->engine().storage().statistics().disk_bytes);
    bson::Builder b;
    b.add("db", call->database())
        .add("collections", collections)
        .add("views", std::int64_t{0})
        .add("objects", objects);
    b.add("avgObjSize",
          objects > 0 ? static_cast<double>(bytes) / static_cast<double>(objects) : 0.0)
        .add("dataSize", static_cast<double>(bytes) / static_cast<double>(scale));
    b.add("storageSize", static_cast<double>(bytes) / static_cast<double>(scale))
        .add("indexes", indexes)
        .add("indexSize", 0.0)
        .add("totalSize", static_cast<double>(bytes) / static_cast<double>(scale));
    b.add("scaleFactor", scale)
        .add("fsUsedSize", static_cast<double>(disk))
        .add("fsTotalSize", static_cast<double>(disk));
    call->succeed(std::move(b));
    return {};
}

Result<void> validate(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY_ASSIGN(const auto report, call->engine().validate(ns));
    bson::Builder b;
    for (const auto& [key, value] : report.view())
        if (key != "ok") b.add(key, value);
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kCollStatsCommand{.name = "collStats",
                                            .aliases = {"collstats"},
                                            .handler = collection_statistics,
                                            .fields = kStatsFields,
                                            .flags = kReads,
                                            .help = "count and size of a collection"};
extern const CommandEntry kDbStatsCommand{.name = "dbStats",
                                          .aliases = {"dbstats"},
                                          .handler = database_statistics,
                                          .fields = kStatsFields,
                                          .flags = kReads,
                                          .help = "counts and sizes of a database"};
extern const CommandEntry kValidateCommand{
    .name = "validate",
    .handler = validate,
    .fields = kValidateFields,
    .flags = kReads | kLong,
    .help = "checks records against indexes and the oplog against records"};

}  // namespace angelia::engine::command
