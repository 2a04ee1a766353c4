// The stored form of the catalog: one BSON document per collection, its indexes inside, and 24
// bytes of counters beside it.
#include "engine/catalog/catalog.h"

#include <algorithm>

namespace angelia::engine {

namespace {

void put_u64(std::string& out, std::uint64_t v) {
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(v >> shift));
}

std::uint64_t take_u64(std::string_view& bytes) {
    std::uint64_t v = 0;
    for (int i = 0; i < 8; ++i)
        v = (v << 8) | static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i)]);
    bytes.remove_prefix(8);
    return v;
}

Error damaged_catalog(std::string_view what) {
    return Error(ErrorCode::InternalError, "the catalog is damaged: " + std::string(what));
}

void add_spec_options(bson::Builder& b, const IndexSpec& spec) {
    if (spec.unique) b.add("unique", true);
    if (spec.sparse) b.add("sparse", true);
    if (spec.expire_after_seconds) {
        // Listed as the number drivers expect: an int32 whenever it is one.
        if (*spec.expire_after_seconds <= INT32_MAX && *spec.expire_after_seconds >= INT32_MIN)
            b.add("expireAfterSeconds", static_cast<std::int32_t>(*spec.expire_after_seconds));
        else
            b.add("expireAfterSeconds", *spec.expire_after_seconds);
    }
    if (!spec.partial_filter.empty()) b.add("partialFilterExpression", spec.partial_filter);
    for (const auto& option : spec.extra.view()) b.add(option.key, option.value);
}

Result<IndexPtr> decode_index(bson::DocumentView stored) {
    const auto id = stored["id"].to_int64();
    const auto name = stored["name"].get_string();
    const auto key = stored["key"].get_document();
    if (!id || !name || !key) return damaged_catalog("an index without id, name or key");
    IndexSpec spec;
    spec.name = std::string(*name);
    spec.key = bson::Document(*key);
    spec.unique = stored["unique"].truthy();
    spec.sparse = stored["sparse"].truthy();
    spec.expire_after_seconds = stored["ttl"].to_int64();
    if (auto partial = stored["partial"].get_document())
        spec.partial_filter = bson::Document(*partial);
    if (auto extra = stored["extra"].get_document()) spec.extra = bson::Document(*extra);
    return make_index(static_cast<storage::IndexId>(*id), spec, stored["multikey"].truthy());
}

}  // namespace

std::string encode_u32(std::uint32_t v) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(v >> shift));
    return out;
}

std::string catalog_prefix() { return "catalog/collection/"; }
std::string catalog_key(storage::CollectionId id) { return catalog_prefix() + encode_u32(id); }
std::string catalog_next_id_key() { return "catalog/next_id"; }
std::string counter_key(storage::CollectionId id) { return "counter/" + encode_u32(id); }

std::string encode_counters(const Counters& counters) {
    std::string out;
    out.reserve(24);
    put_u64(out, static_cast<std::uint64_t>(counters.count));
    put_u64(out, static_cast<std::uint64_t>(counters.bytes));
    put_u64(out, counters.next_record);
    return out;
}

Counters decode_counters(std::string_view bytes) {
    Counters counters;
    if (bytes.size() != 24) return counters;
    counters.count = static_cast<std::int64_t>(take_u64(bytes));
    counters.bytes = static_cast<std::int64_t>(take_u64(bytes));
    counters.next_record = take_u64(bytes);
    return counters;
}

IndexSpec copy_spec(const IndexSpec& spec) {
    IndexSpec copy;
    copy.name = spec.name;
    copy.key = spec.key.copy();
    copy.unique = spec.unique;
    copy.sparse = spec.sparse;
    copy.expire_after_seconds = spec.expire_after_seconds;
    copy.partial_filter = spec.partial_filter.copy();
    copy.extra = spec.extra.copy();
    return copy;
}

Result<IndexPtr> make_index(storage::IndexId id, const IndexSpec& spec, bool multikey) {
    auto index = std::make_shared<Index>();
    index->id = id;
    index->spec = copy_spec(spec);
    ANGELIA_TRY_ASSIGN(index->pattern, query::IndexKeyPattern::parse(spec.key));
    if (!spec.partial_filter.empty()) {
        ANGELIA_TRY_ASSIGN(index->partial, query::Matcher::parse(spec.partial_filter));
    }
    index->multikey = multikey;
    return IndexPtr(std::move(index));
}

IndexSpec id_index_spec() {
    IndexSpec spec;
    spec.name = "_id_";
    spec.key = bson::make("_id", std::int32_t{1});
    spec.unique = true;
    return spec;
}

void refresh_index_infos(Collection& collection) {
    collection.index_infos.clear();
    for (const auto& index : collection.indexes) {
        query::IndexInfo info;
        info.name = index->spec.name;
        info.pattern = index->pattern;
        info.unique = index->spec.unique;
        info.sparse = index->spec.sparse;
        info.partial_filter = index->partial;
        info.multikey = index->multikey;
        info.hidden = index->spec.extra["hidden"].truthy();
        collection.index_infos.push_back(std::move(info));
    }
}

bool wants_images(bson::DocumentView options) {
    return options.find_path("changeStreamPreAndPostImages.enabled").truthy();
}

std::shared_ptr<Collection> copy_collection(const Collection& collection) {
    auto copy = std::make_shared<Collection>();
    copy->ns = collection.ns;
    copy->id = collection.id;
    copy->uuid = collection.uuid;
    copy->options = collection.options.copy();
    copy->keeps_images = collection.keeps_images;
    copy->indexes = collection.indexes;
    copy->index_infos = collection.index_infos;
    copy->index_generation = collection.index_generation;
    copy->live = collection.live;
    return copy;
}

bson::Document index_document(const IndexSpec& spec) {
    bson::Builder b;
    b.add("v", std::int32_t{2}).add("key", spec.key).add("name", spec.name);
    // MongoDB does not list `unique` for _id_.
    if (spec.name != "_id_") add_spec_options(b, spec);
    return b.take();
}

bson::Document encode_collection(const Collection& collection) {
    bson::Builder b;
    b.add("id", static_cast<std::int64_t>(collection.id))
        .add("db", collection.ns.db)
        .add("name", collection.ns.collection);
    b.add("uuid",
          bson::BinaryView{
              4, {reinterpret_cast<const char*>(collection.uuid.data()), collection.uuid.size()}});
    b.add("options", collection.options).open_array("indexes");
    for (const auto& index : collection.indexes) {
        b.push_document()
            .add("id", static_cast<std::int64_t>(index->id))
            .add("name", index->spec.name)
            .add("key", index->spec.key);
        b.add("unique", index->spec.unique)
            .add("sparse", index->spec.sparse)
            .add("multikey", index->multikey);
        if (index->spec.expire_after_seconds) b.add("ttl", *index->spec.expire_after_seconds);
        if (!index->spec.partial_filter.empty()) b.add("partial", index->spec.partial_filter);
        if (!index->spec.extra.empty()) b.add("extra", index->spec.extra);
        b.close();
    }
    return b.close().take();
}

Result<std::shared_ptr<Collection>> decode_collection(bson::DocumentView stored) {
    const auto id = stored["id"].to_int64();
    const auto db = stored["db"].get_string();
    const auto name = stored["name"].get_string();
    const auto indexes = stored["indexes"].get_array();
    if (!id || !db || !name || !indexes || !stored["uuid"].is(bson::Type::Binary))
        return damaged_catalog("a collection without id or name");
    auto collection = std::make_shared<Collection>();
    collection->ns = {std::string(*db), std::string(*name)};
    collection->id = static_cast<storage::CollectionId>(*id);
    const auto uuid = stored["uuid"].as_binary().bytes;
    if (uuid.size() != collection->uuid.size())
        return damaged_catalog("a uuid of the wrong length");
    std::copy(uuid.begin(), uuid.end(), reinterpret_cast<char*>(collection->uuid.data()));
    if (auto options = stored["options"].get_document())
        collection->options = bson::Document(*options);
    collection->keeps_images = wants_images(collection->options);
    for (const auto& element : *indexes) {
        const auto index = element.value.get_document();
        if (!index) return damaged_catalog("an index that is no document");
        ANGELIA_TRY_ASSIGN(auto decoded, decode_index(*index));
        collection->indexes.push_back(std::move(decoded));
    }
    if (collection->indexes.empty()) return damaged_catalog("a collection without an _id index");
    refresh_index_infos(*collection);
    return collection;
}

}  // namespace angelia::engine
