// The server's bulkWrite command: several collections and kinds of writes in one round trip, and an
// outcome for each. The driver in use does not know it and so does not repeat it after a lost
// reply; it is for callers that can. Servers without it are asked once.
#include "store_mongo/driver_error.h"
#include "store_mongo/mongo_store.h"

#include <angelia/bson/builder.h>

#include <algorithm>

namespace angelia::store::mongo {
namespace {

constexpr std::size_t kCommandOpsMax = 1000;             // one batch of the reply holds them all
constexpr std::size_t kCommandBytesMax = 4u << 20;       // well below a document's limit
constexpr std::size_t kCommandOverheadBytesPerOp = 100;  // keys and flags around the documents

std::size_t bytes_of(const BulkOp& op) {
    return op.document.size_bytes() + op.update.filter.size_bytes() +
           op.update.update.size_bytes() + op.remove.filter.size_bytes() +
           kCommandOverheadBytesPerOp;
}

bool fits_one_command(std::span<const BulkOp* const> ops) {
    if (ops.size() > kCommandOpsMax) return false;
    std::size_t bytes = 0;
    for (const BulkOp* op : ops) bytes += bytes_of(*op);
    return bytes <= kCommandBytesMax;
}

/// The server does not have the command, or not for us.
bool is_refusal(ErrorCode code) {
    return code == ErrorCode::CommandNotFound || code == ErrorCode::CommandNotSupported ||
           code == ErrorCode::Unauthorized;
}

bson::Document bulk_command(std::span<const BulkOp* const> ops, bool ordered) {
    std::vector<const CollectionName*> names;
    const auto index_of = [&](const CollectionName& name) {
        const auto at = std::find_if(names.begin(), names.end(),
                                     [&](const CollectionName* known) { return *known == name; });
        if (at != names.end()) return static_cast<std::int32_t>(at - names.begin());
        names.push_back(&name);
        return static_cast<std::int32_t>(names.size() - 1);
    };
    bson::Builder b;
    b.add("bulkWrite", std::int32_t{1}).open_array("ops");
    for (const BulkOp* op : ops) {
        const std::int32_t name = index_of(op->collection);
        b.push_document();
        switch (op->kind) {
            case BulkOp::Kind::Insert:
                b.add("insert", name).add("document", op->document);
                break;
            case BulkOp::Kind::Update:
                b.add("update", name)
                    .add("filter", op->update.filter)
                    .add("updateMods", op->update.update)
                    .add("multi", op->update.multi)
                    .add("upsert", op->update.upsert);
                break;
            case BulkOp::Kind::Delete:
                b.add("delete", name)
                    .add("filter", op->remove.filter)
                    .add("multi", op->remove.multi);
                break;
        }
        b.close();
    }
    b.close().open_array("nsInfo");
    for (const CollectionName* name : names) b.push(bson::make("ns", name->full()));
    b.close().add("ordered", ordered);
    b.open("cursor").add("batchSize", static_cast<std::int32_t>(ops.size() + 1)).close();
    return b.take();
}

Result<BulkResult> read_reply(bson::DocumentView reply, std::span<const BulkOp* const> ops) {
    const auto cursor = reply["cursor"].get_document();
    const auto batch = cursor ? (*cursor)["firstBatch"].get_array() : std::nullopt;
    if (!batch || (*cursor)["id"].to_int64().value_or(0) != 0)
        return {ErrorCode::ProtocolError, "a reply to bulkWrite has no complete list of outcomes"};
    BulkResult result;
    result.effective.resize(ops.size());
    result.inserted = reply["nInserted"].to_int64().value_or(0);
    result.matched = reply["nMatched"].to_int64().value_or(0);
    result.modified = reply["nModified"].to_int64().value_or(0);
    result.upserted = reply["nUpserted"].to_int64().value_or(0);
    result.deleted = reply["nDeleted"].to_int64().value_or(0);
    for (const auto& [key, value] : *batch) {
        const auto one = value.get_document();
        const auto index = one ? (*one)["idx"].to_int64() : std::nullopt;
        if (!index || *index < 0 || *index >= static_cast<std::int64_t>(ops.size()))
            return {ErrorCode::ProtocolError, "an outcome in a reply to bulkWrite names no op"};
        const auto at = static_cast<std::size_t>(*index);
        if ((*one)["ok"].to_int64().value_or(0) == 0) {
            result.errors.push_back({at, from_server(*one)});
            continue;
        }
        const bool update = ops[at]->kind == BulkOp::Kind::Update;
        const auto changed = (*one)[update ? "nModified" : "n"].to_int64().value_or(0);
        result.effective[at] = changed > 0 || one->has("upserted");
    }
    std::sort(result.errors.begin(), result.errors.end(),
              [](const WriteError& a, const WriteError& b) { return a.index < b.index; });
    return result;
}

}  // namespace

std::optional<Result<BulkResult>> run_bulk_command(mongoc_client_t* client, Learned& learned,
                                                   std::span<const BulkOp* const> ops, bool ordered,
                                                   const CallOptions& options) {
    if (!learned.bulk_command || options.acknowledge == Acknowledge::None || !fits_one_command(ops))
        return std::nullopt;
    bson::Builder b;
    append_write_concern(b, options);
    const bson::Document concern = b.take();
    const auto reply = run_command(client, "admin", bulk_command(ops, ordered), CommandKind::Write,
                                   BsonArgument(concern.view()));
    if (!reply && is_refusal(reply.error().code)) {
        learned.bulk_command = false;
        return std::nullopt;
    }
    if (!reply) return Result<BulkResult>(reply.error());
    return read_reply(*reply, ops);
}

}  // namespace angelia::store::mongo
