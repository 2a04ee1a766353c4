// Writes: the driver's bulk makes of each run of like operations one command, splits what is too
// large, retries it once by its transaction number, and reports every failed operation.
#include "store_mongo/driver_error.h"
#include "store_mongo/mongo_store.h"

#include <angelia/bson/builder.h>

#include <map>

namespace angelia::store::mongo {
namespace {

bool is_replacement(bson::DocumentView update) {
    const auto first = update.begin();
    return first == update.end() || first->key.empty() || first->key.front() != '$';
}

bool append_operation(mongoc_bulk_operation_t* bulk, const BulkOp& op, bson_error_t* error) {
    const bson::Document unchecked =
        bson::make("validate", false);  // the server's rules are the rules
    if (op.kind == BulkOp::Kind::Insert) {
        return mongoc_bulk_operation_insert_with_opts(bulk, BsonArgument(op.document.view()),
                                                      BsonArgument(unchecked.view()), error);
    }
    if (op.kind == BulkOp::Kind::Delete) {
        const BsonArgument filter(op.remove.filter.view());
        return op.remove.multi
                   ? mongoc_bulk_operation_remove_many_with_opts(bulk, filter, nullptr, error)
                   : mongoc_bulk_operation_remove_one_with_opts(bulk, filter, nullptr, error);
    }
    const BsonArgument filter(op.update.filter.view());
    const BsonArgument update(op.update.update.view());
    const bson::Document given = bson::make("validate", false, "upsert", op.update.upsert);
    const BsonArgument options(given.view());
    if (op.update.multi)
        return mongoc_bulk_operation_update_many_with_opts(bulk, filter, update, options, error);
    return is_replacement(op.update.update)
               ? mongoc_bulk_operation_replace_one_with_opts(bulk, filter, update, options, error)
               : mongoc_bulk_operation_update_one_with_opts(bulk, filter, update, options, error);
}

std::vector<const BulkOp*> pointers(const std::vector<BulkOp>& ops) {
    std::vector<const BulkOp*> out;
    for (const auto& op : ops) out.push_back(&op);
    return out;
}

void add(BulkResult& total, BulkResult part, const std::vector<std::size_t>& positions) {
    total.inserted += part.inserted;
    total.matched += part.matched;
    total.modified += part.modified;
    total.deleted += part.deleted;
    total.upserted += part.upserted;
    for (auto& error : part.errors) {
        if (error.index < positions.size()) error.index = positions[error.index];
        total.errors.push_back(std::move(error));
    }
}

}  // namespace

void append_write_concern(bson::Builder& options, const CallOptions& call) {
    if (call.acknowledge == Acknowledge::Majority) {
        options.open("writeConcern")
            .add("w", "majority")
            .add("wtimeout", static_cast<std::int64_t>(call.timeout.count()))
            .close();
    } else if (call.acknowledge == Acknowledge::None) {
        options.open("writeConcern").add("w", std::int32_t{0}).close();
    }
}

Result<BulkResult> run_bulk(Connection client, const CollectionName& name,
                            std::span<const BulkOp* const> ops, bool ordered,
                            const CallOptions& options,
                            std::vector<std::pair<std::size_t, bson::Value>>* upserted) {
    const CollectionPtr collection(
        mongoc_client_get_collection(client, name.db.c_str(), name.collection.c_str()));
    bson::Builder b;
    b.add("ordered", ordered);
    append_write_concern(b, options);
    ANGELIA_TRY(append_session(b, client));
    const bson::Document bulk_options = b.take();
    const BulkPtr bulk(mongoc_collection_create_bulk_operation_with_opts(
        collection.get(), BsonArgument(bulk_options.view())));
    bson_error_t error{};
    for (const BulkOp* op : ops) {
        if (!append_operation(bulk.get(), *op, &error)) return from_driver(error);
    }
    ReplyBson raw;
    const std::uint32_t server = mongoc_bulk_operation_execute(bulk.get(), raw.out(), &error);
    if (server != 0 && options.acknowledge == Acknowledge::None) return BulkResult{};
    ANGELIA_TRY_ASSIGN(const bson::Document reply, take_document(raw.get()));
    BulkResult result;
    result.errors = write_errors(reply);
    if (auto concern = write_concern_error(reply)) return *std::move(concern);
    if (server == 0 && result.errors.empty()) return from_driver(error, raw.get());
    result.inserted = reply["nInserted"].to_int64().value_or(0);
    result.matched = reply["nMatched"].to_int64().value_or(0);
    result.modified = reply["nModified"].to_int64().value_or(0);
    result.deleted = reply["nRemoved"].to_int64().value_or(0);
    result.upserted = reply["nUpserted"].to_int64().value_or(0);
    if (const auto list = reply["upserted"].get_array(); list && upserted != nullptr) {
        for (const auto& [key, entry] : *list) {
            const auto one = entry.get_document();
            if (one)
                upserted->emplace_back(
                    static_cast<std::size_t>((*one)["index"].to_int64().value_or(0)),
                    bson::Value((*one)["_id"]));
        }
    }
    return result;
}

Result<InsertResult> MongoStore::insert(const CollectionName& name,
                                        std::span<const bson::DocumentView> documents, bool ordered,
                                        const CallOptions& options) {
    std::vector<BulkOp> ops(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i)
        ops[i].document = bson::Document(documents[i]);
    return with_client<InsertResult>(options, [&](Connection client) -> Result<InsertResult> {
        ANGELIA_TRY_ASSIGN(BulkResult done,
                           run_bulk(client, name, pointers(ops), ordered, options));
        return InsertResult{done.inserted, std::move(done.errors)};
    });
}

Result<UpdateResult> MongoStore::update(const CollectionName& name, std::vector<UpdateOp> updates,
                                        bool ordered, const CallOptions& options) {
    std::vector<BulkOp> ops(updates.size());
    for (std::size_t i = 0; i < updates.size(); ++i) {
        ops[i].kind = BulkOp::Kind::Update;
        ops[i].update = std::move(updates[i]);
    }
    return with_client<UpdateResult>(options, [&](Connection client) -> Result<UpdateResult> {
        UpdateResult result;
        ANGELIA_TRY_ASSIGN(BulkResult done, run_bulk(client, name, pointers(ops), ordered, options,
                                                     &result.upserted));
        result.matched = done.matched;
        result.modified = done.modified;
        result.errors = std::move(done.errors);
        if (ops.size() == 1)
            result.effective.push_back(result.modified > 0 || !result.upserted.empty());
        return result;
    });
}

Result<DeleteResult> MongoStore::remove(const CollectionName& name, std::vector<DeleteOp> removals,
                                        bool ordered, const CallOptions& options) {
    std::vector<BulkOp> ops(removals.size());
    for (std::size_t i = 0; i < removals.size(); ++i) {
        ops[i].kind = BulkOp::Kind::Delete;
        ops[i].remove = std::move(removals[i]);
    }
    return with_client<DeleteResult>(options, [&](Connection client) -> Result<DeleteResult> {
        ANGELIA_TRY_ASSIGN(BulkResult done,
                           run_bulk(client, name, pointers(ops), ordered, options));
        return DeleteResult{done.deleted, std::move(done.errors)};
    });
}

// A bulk of the driver is about one collection. Ordered: each run of neighbours is one bulk, and
// the first error ends it. Unordered: one bulk for each collection.
Result<BulkResult> MongoStore::bulk_write(std::vector<BulkOp> ops, bool ordered,
                                          const CallOptions& options) {
    struct Part {
        CollectionName name;
        std::vector<const BulkOp*> ops;
        std::vector<std::size_t> positions;
    };
    std::vector<Part> parts;
    std::map<CollectionName, std::size_t> known;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const CollectionName& name = ops[i].collection;
        const bool joins =
            ordered ? !parts.empty() && parts.back().name == name : known.count(name) != 0;
        if (!joins) {
            known[name] = parts.size();
            parts.push_back({name, {}, {}});
        }
        Part& part = parts[ordered ? parts.size() - 1 : known[name]];
        part.ops.push_back(&ops[i]);
        part.positions.push_back(i);
    }
    return with_client<BulkResult>(options, [&](Connection client) -> Result<BulkResult> {
        if (options.repeatable && !client.session && ops.size() > 1) {
            auto done = run_bulk_command(client, *learned_, pointers(ops), ordered, options);
            if (done && (*done || !leaves_open(done->error()))) return *std::move(done);
        }
        BulkResult total;
        for (const Part& part : parts) {
            ANGELIA_TRY_ASSIGN(BulkResult done,
                               run_bulk(client, part.name, part.ops, ordered, options));
            add(total, std::move(done), part.positions);
            if (ordered && !total.errors.empty()) break;
        }
        std::sort(total.errors.begin(), total.errors.end(),
                  [](const WriteError& a, const WriteError& b) { return a.index < b.index; });
        return total;
    });
}

Result<std::optional<bson::Document>> MongoStore::find_and_modify(FindAndModifyRequest request,
                                                                  const CallOptions& options) {
    using Found = std::optional<bson::Document>;
    return with_client<Found>(options, [&](Connection client) -> Result<Found> {
        const CollectionPtr collection(mongoc_client_get_collection(
            client, request.collection.db.c_str(), request.collection.collection.c_str()));
        const FindAndModifyOptionsPtr modify(mongoc_find_and_modify_opts_new());
        int flags = MONGOC_FIND_AND_MODIFY_NONE;
        if (request.remove) flags |= MONGOC_FIND_AND_MODIFY_REMOVE;
        if (request.upsert) flags |= MONGOC_FIND_AND_MODIFY_UPSERT;
        if (request.return_new) flags |= MONGOC_FIND_AND_MODIFY_RETURN_NEW;
        mongoc_find_and_modify_opts_set_flags(modify.get(),
                                              static_cast<mongoc_find_and_modify_flags_t>(flags));
        if (!request.remove)
            mongoc_find_and_modify_opts_set_update(modify.get(),
                                                   BsonArgument(request.update.view()));
        if (!request.sort.empty())
            mongoc_find_and_modify_opts_set_sort(modify.get(), BsonArgument(request.sort.view()));
        if (!request.projection.empty())
            mongoc_find_and_modify_opts_set_fields(modify.get(),
                                                   BsonArgument(request.projection.view()));
        mongoc_find_and_modify_opts_set_max_time_ms(
            modify.get(), static_cast<std::uint32_t>(options.timeout.count()));
        bson::Builder b;
        append_write_concern(b, options);
        ANGELIA_TRY(append_session(b, client));
        const bson::Document extra = b.take();
        if (!extra.empty())
            mongoc_find_and_modify_opts_append(modify.get(), BsonArgument(extra.view()));
        ReplyBson raw;
        bson_error_t error{};
        if (!mongoc_collection_find_and_modify_with_opts(collection.get(),
                                                         BsonArgument(request.filter.view()),
                                                         modify.get(), raw.out(), &error)) {
            return from_driver(error, raw.get());
        }
        ANGELIA_TRY_ASSIGN(const bson::Document reply, take_document(raw.get()));
        const auto value = reply["value"].get_document();
        return value ? Found(bson::Document(*value)) : Found();
    });
}

}  // namespace angelia::store::mongo
