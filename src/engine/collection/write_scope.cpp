#include "engine/collection/write_scope.h"

#include <random>

namespace angelia::engine {

namespace {

Uuid random_uuid() {
    static thread_local std::mt19937_64 generator{[] {
        std::random_device device;
        std::seed_seq seed{device(), device(), device(), device()};
        return std::mt19937_64(seed);
    }()};
    Uuid uuid;
    for (auto& byte : uuid) byte = static_cast<std::uint8_t>(generator());
    uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0F) | 0x40);  // RFC 4122, version 4
    uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3F) | 0x80);
    return uuid;
}

}  // namespace

WriteScope::~WriteScope() {
    const auto stay =
        std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - entered_)
            .count();
    auto& longest = core_.counters.section_us_max;
    auto known = longest.load(std::memory_order_relaxed);
    while (stay > known && !longest.compare_exchange_weak(known, stay)) {
    }
}

void WriteScope::log(OpKind kind, const Collection& collection, bson::ValueView id,
                     bson::DocumentView payload, const RetryReference& retry,
                     const Images& images) {
    OplogFields fields;
    fields.kind = kind;
    fields.db = collection.ns.db;
    fields.collection = collection.ns.collection;
    fields.collection_id = collection.id;
    fields.uuid = collection.uuid;
    fields.id = id;
    fields.payload = payload;
    fields.wall = wall_;
    fields.lsid = retry.lsid;
    fields.txn_number = retry.txn_number;
    fields.stmt_id = retry.stmt_id;
    fields.before_image = images.before;
    fields.after_image = images.after;
    append(fields);
}

void WriteScope::log_command(const std::string& db, const std::string& collection, std::uint32_t id,
                             const Uuid& uuid, bson::DocumentView payload) {
    OplogFields fields;
    fields.kind = OpKind::Command;
    fields.db = db;
    fields.collection = collection;
    fields.collection_id = id;
    fields.uuid = uuid;
    fields.payload = payload;
    fields.wall = wall_;
    append(fields);
}

Result<std::shared_ptr<Collection>> make_collection(Core& core, const Namespace& ns,
                                                    const bson::Document& options,
                                                    const std::function<std::uint32_t()>& next_id) {
    auto collection = std::make_shared<Collection>();
    collection->ns = ns;
    collection->id = next_id();
    collection->uuid = random_uuid();
    collection->options = options.copy();
    collection->keeps_images = wants_images(collection->options);
    collection->live = std::make_shared<LiveState>();
    ANGELIA_TRY_ASSIGN(auto id_index, make_index(next_id(), id_index_spec(), false));
    collection->indexes.push_back(std::move(id_index));
    collection->index_generation = core.catalog.next_generation();
    refresh_index_infos(*collection);
    return collection;
}

bson::Document create_payload(const Collection& collection) {
    bson::Builder payload;
    payload.add("create", collection.ns.collection).add_all(collection.options);
    payload.add("idIndex", index_document(collection.id_index().spec));
    return payload.take();
}

std::shared_ptr<Collection> with_multikey(const Collection& collection, std::size_t index) {
    auto changed = copy_collection(collection);
    auto flagged = std::make_shared<Index>();
    const Index& old = *collection.indexes[index];
    flagged->id = old.id;
    flagged->spec = copy_spec(old.spec);
    flagged->pattern = old.pattern;
    flagged->partial = old.partial;
    flagged->gaps = old.gaps;
    flagged->multikey = true;
    changed->indexes[index] = std::move(flagged);
    refresh_index_infos(*changed);
    return changed;
}

std::string index_entry_key(const Index& index, std::string_view encoded,
                            storage::RecordId record) {
    return index.spec.unique ? storage::unique_entry(index.id, encoded)
                             : storage::index_entry(index.id, encoded, record);
}

}  // namespace angelia::engine
