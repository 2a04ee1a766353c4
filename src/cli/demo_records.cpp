#include "cli/demo_records.h"

#include <fmt/format.h>

namespace angelia::cli::demo {
namespace {

Result<std::vector<bson::Document>> all_of(store::Store& store, const char* collection) {
    store::FindRequest find;
    find.collection = store.collection(collection);
    return store.find(find);
}

Error damaged(const char* collection, const bson::Document& d) {
    return {ErrorCode::BadValue,
            fmt::format("a record of {} has not the fields it was written with ({} bytes)",
                        collection, d.size_bytes())};
}

}  // namespace

const char* kind_name(Kind kind) {
    switch (kind) {
        case Kind::Broadcast:
            return "broadcast";
        case Kind::Work:
            return "work";
        case Kind::Request:
            return "request";
    }
    return "?";
}

std::string topic_of(const std::string& topic, Kind kind) {
    switch (kind) {
        case Kind::Broadcast:
            return topic;
        case Kind::Work:
            return topic + ".work";
        case Kind::Request:
            return topic + ".ask";
    }
    return topic;
}

bson::Document effect_document(const Message& m, const std::string& node, std::int64_t at_ms,
                               bool with_payload) {
    bson::Builder b;
    b.add("_id", bson::ObjectId::generate())
        .add("message", m.id)
        .add("node", node)
        .add("topic", m.topic)
        .add("attempt", m.attempt);
    b.add("at", bson::Date{at_ms}).add("leased_until", m.leased_until.value_or(bson::Date{0}));
    if (with_payload && m.map_value) b.add("payload", *m.map_value);
    return b.take();
}

Result<Records> load_records(store::Store& store) {
    Records records;
    ANGELIA_TRY_ASSIGN(const auto published, all_of(store, kPublished));
    for (const auto& d : published) {
        const auto id = d.find("_id").get_object_id();
        const auto kind = d.find("kind").to_int64();
        if (!id || !kind || *kind < 0 || *kind > 2) return damaged(kPublished, d);
        records.published.push_back({*id, static_cast<Kind>(*kind)});
    }
    ANGELIA_TRY_ASSIGN(const auto effects, all_of(store, kEffects));
    for (const auto& d : effects) {
        const auto message = d.find("message").get_object_id();
        const auto node = d.find("node").get_string();
        const auto attempt = d.find("attempt").to_int64();
        const auto at = d.find("at").get_date();
        const auto leased_until = d.find("leased_until").get_date();
        if (!message || !node || !attempt || !at || !leased_until) return damaged(kEffects, d);
        records.effects.push_back({*message, std::string(*node),
                                   static_cast<std::int32_t>(*attempt), at->millis,
                                   leased_until->millis});
    }
    ANGELIA_TRY_ASSIGN(const auto answered, all_of(store, kAnswered));
    for (const auto& d : answered) {
        if (!d.find("_id").get_object_id()) return damaged(kAnswered, d);
        records.answered.push_back(*d.find("_id").get_object_id());
    }
    ANGELIA_TRY_ASSIGN(const auto kills, all_of(store, kKills));
    for (const auto& d : kills) {
        if (!d.find("_id").get_string() || !d.find("at").get_date()) return damaged(kKills, d);
        records.kills.push_back(
            {std::string(*d.find("_id").get_string()), d.find("at").get_date()->millis});
    }
    ANGELIA_TRY_ASSIGN(const auto nodes, all_of(store, kNodes));
    for (const auto& d : nodes) {
        if (!d.find("_id").get_string() || !d.find("role").get_string()) return damaged(kNodes, d);
        if (*d.find("role").get_string() == "broadcast")
            records.broadcast_listeners.emplace_back(*d.find("_id").get_string());
    }
    return records;
}

}  // namespace angelia::cli::demo
