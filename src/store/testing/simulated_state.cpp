#include "store/testing/simulated_state.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/compare.h>
#include <angelia/bson/json.h>

#include <fmt/format.h>

namespace angelia::store::testing {
namespace {

constexpr std::size_t kEventsMax =
    200'000;  // a simulation that needs more history than this asks for it by reading in time

std::string id_key(bson::ValueView id) {
    std::string key;
    query::append_key(key, id);
    return key;
}

Error duplicate(const CollectionName& name, std::string_view index, bson::Document pattern,
                bson::Document value) {
    Error error(ErrorCode::DuplicateKey,
                fmt::format("E11000 duplicate key error collection: {} index: {} dup key: {}",
                            name.full(), index, bson::to_json(value)));
    error.details_bson = bson::make("keyPattern", pattern, "keyValue", value).take_bytes();
    return error;
}

/// `_id` first, made if missing; empty timestamps filled.
Result<bson::Document> complete(bson::DocumentView document, SimulatedServer::State& server) {
    bson::Builder b;
    const bson::ValueView id = document["_id"];
    if (id) {
        ANGELIA_TRY(query::check_id(id));
        b.add("_id", id);
    } else {
        b.add("_id", bson::ObjectId::generate());
    }
    for (const auto& [key, value] : document) {
        if (key != "_id") b.add(key, value);
    }
    bson::Document whole = b.take();
    if (!query::has_empty_timestamp(whole)) return whole;
    return query::fill_empty_timestamps(whole, [&server] { return server.next_time(); });
}

bson::Document event_body(std::string_view operation, bson::Timestamp time, bson::Date wall,
                          const CollectionName& name, bson::DocumentView key,
                          const bson::Document* full, const query::UpdateDescription* description) {
    bson::Builder b;
    b.add("operationType", operation).add("clusterTime", time).add("wallTime", wall);
    if (full != nullptr) b.add("fullDocument", *full);
    b.open("ns").add("db", name.db).add("coll", name.collection).close();
    if (!key.empty()) b.add("documentKey", key);
    if (description != nullptr) {
        b.open("updateDescription");
        b.add("updatedFields", description->updated_fields)
            .add("removedFields", description->removed_fields);
        b.add("truncatedArrays", description->truncated_arrays);
        b.close();
    }
    return b.take();
}

bson::Document key_of(const bson::Document& document) { return bson::make("_id", document["_id"]); }

}  // namespace

bson::Document token_of(bson::Timestamp time) {
    return bson::make("_data", fmt::format("{:016X}", time.as_uint64()));
}

std::optional<bson::Timestamp> time_of(bson::DocumentView token) {
    const auto text = token["_data"].get_string();
    if (!text || text->size() != 16 ||
        text->find_first_not_of("0123456789ABCDEF") != std::string_view::npos)
        return std::nullopt;
    return bson::Timestamp::from_uint64(std::stoull(std::string(*text), nullptr, 16));
}

bson::Timestamp SimulatedServer::State::next_time() {
    const auto seconds = static_cast<std::uint32_t>(now().millis / 1000);
    last_time = seconds > last_time.seconds
                    ? bson::Timestamp{seconds, 1}
                    : bson::Timestamp::from_uint64(last_time.as_uint64() + 1);
    return last_time;
}

Result<void> SimulatedServer::State::enter(const CollectionName& name, SimulatedCollection& c,
                                           std::uint64_t sequence, SharedDocument stored) {
    const std::string key = id_key((*stored)["_id"]);
    if (c.ids.count(key) != 0)
        return duplicate(name, "_id_", bson::make("_id", std::int32_t{1}), key_of(*stored));
    ANGELIA_TRY(touch_document(name, (*stored)["_id"]));
    std::vector<std::pair<SimulatedIndex*, std::string>> added;
    for (auto& index : c.indexes) {
        if (!index.definition->unique) continue;
        ANGELIA_TRY_ASSIGN(const query::IndexKeys keys,
                           query::index_keys(*index.pattern, *stored, index.definition->sparse));
        for (const auto& k : keys.keys) {
            if (index.keys.count(k) != 0) {
                return duplicate(name, index.definition->name, index.definition->key.copy(),
                                 query::key_values(*index.pattern, *stored, k));
            }
            ANGELIA_TRY(touch_unique(name, index, k));
            added.emplace_back(&index, k);
        }
    }
    for (auto& [index, k] : added) index->keys[k] = sequence;
    c.ids[key] = sequence;
    c.documents[sequence] = std::move(stored);
    return {};
}

void SimulatedServer::State::leave(SimulatedCollection& c, std::uint64_t sequence) {
    const SharedDocument stored = c.documents.at(sequence);
    for (auto& index : c.indexes) {
        std::erase_if(index.keys,
                      [sequence](const auto& entry) { return entry.second == sequence; });
    }
    c.ids.erase(id_key((*stored)["_id"]));
    c.documents.erase(sequence);
}

Result<void> SimulatedServer::State::replace(const CollectionName& name, SimulatedCollection& c,
                                             std::uint64_t sequence, SharedDocument after) {
    const SharedDocument before = c.documents.at(sequence);
    ANGELIA_TRY(touch_all(name, c, sequence));
    leave(c, sequence);
    if (auto entered = enter(name, c, sequence, std::move(after)); !entered) {
        ANGELIA_CHECK(enter(name, c, sequence, before).has_value());
        return entered;
    }
    return {};
}

void SimulatedServer::State::log(SimulatedEvent event) {
    events.push_back(std::make_shared<const SimulatedEvent>(std::move(event)));
    if (events.size() > kEventsMax) {
        forgotten = events.front()->time;
        events.pop_front();
    }
}

void SimulatedServer::State::wake_watches() {
    std::erase_if(watches, [](const auto& w) { return w.expired(); });
    for (const auto& weak : watches) {
        if (const auto watch = weak.lock()) watch->wake();
    }
}

Result<bson::Value> SimulatedServer::State::insert(const CollectionName& name,
                                                   bson::DocumentView document_view) {
    ANGELIA_TRY(check_collection(name));
    ANGELIA_TRY_ASSIGN(bson::Document whole, complete(document_view, *this));
    const auto stored = std::make_shared<const bson::Document>(std::move(whole));
    ANGELIA_TRY(enter(name, collections[name], ++last_sequence, stored));
    const bson::Timestamp time = next_time();
    bson::Value id((*stored)["_id"]);
    log({time, name,
         event_body("insert", time, now(), name, key_of(*stored), stored.get(), nullptr), id, false,
         false});
    return id;
}

Result<std::vector<std::uint64_t>> SimulatedServer::State::matching(const CollectionName& name,
                                                                    const query::Matcher& filter,
                                                                    bool one,
                                                                    const query::SortSpec& sort) {
    ANGELIA_TRY(check_collection(name));
    std::vector<std::uint64_t> found;
    const auto at = collections.find(name);
    if (at == collections.end()) return found;
    const SimulatedCollection& c = at->second;
    if (const auto id = filter.id_equality()) {
        const auto entry = c.ids.find(id_key(*id));
        if (entry != c.ids.end() && filter.matches(*c.documents.at(entry->second)))
            found.push_back(entry->second);
        return found;
    }
    for (const auto& [sequence, stored] : c.documents) {
        if (!filter.matches(*stored)) continue;
        found.push_back(sequence);
        if (one && sort.empty()) break;
    }
    if (sort.natural() < 0) std::reverse(found.begin(), found.end());
    if (!sort.empty() && sort.natural() == 0) {
        std::vector<std::pair<std::string, std::uint64_t>> keyed;
        for (const auto sequence : found) {
            ANGELIA_TRY_ASSIGN(std::string key, sort.sort_key(*c.documents.at(sequence)));
            keyed.emplace_back(std::move(key), sequence);
        }
        std::sort(keyed.begin(), keyed.end());
        std::transform(keyed.begin(), keyed.end(), found.begin(),
                       [](const auto& k) { return k.second; });
    }
    if (one && found.size() > 1) found.resize(1);
    return found;
}

Result<SimulatedWrite> SimulatedServer::State::update(const CollectionName& name,
                                                      const query::Matcher& filter,
                                                      const query::Update& change, bool multi,
                                                      bool upsert, const query::SortSpec& sort) {
    SimulatedWrite done;
    ANGELIA_TRY_ASSIGN(const std::vector<std::uint64_t> found,
                       matching(name, filter, !multi, sort));
    for (const auto sequence : found) {
        SimulatedCollection& c = collections[name];
        done.before = c.documents.at(sequence);
        done.after = done.before;
        const query::ApplyContext context{false, now(), last_time};
        ANGELIA_TRY_ASSIGN(query::UpdateOutcome outcome, change.apply(*done.before, context));
        ++done.matched;
        if (!outcome.modified) continue;
        bson::Document next = std::move(outcome.document);
        if (change.is_replacement() && query::has_empty_timestamp(next))
            next = query::fill_empty_timestamps(next, [this] { return next_time(); });
        done.after = std::make_shared<const bson::Document>(std::move(next));
        ANGELIA_TRY(replace(name, c, sequence, done.after));
        ++done.modified;
        const bson::Timestamp time = next_time();
        bson::Value id((*done.after)["_id"]);
        const bool whole = change.is_replacement();
        log({time, name,
             event_body(whole ? "replace" : "update", time, now(), name, key_of(*done.after),
                        whole ? done.after.get() : nullptr, whole ? nullptr : &outcome.description),
             id, !whole, false});
    }
    if (found.empty() && upsert) {
        const query::ApplyContext context{true, now(), last_time};
        ANGELIA_TRY_ASSIGN(const bson::Document made, change.make_upsert(filter, context));
        ANGELIA_TRY_ASSIGN(done.upserted_id, insert(name, made));
        done.after = document(name, done.upserted_id.view());
    }
    return done;
}

Result<SimulatedWrite> SimulatedServer::State::remove(const CollectionName& name,
                                                      const query::Matcher& filter, bool multi,
                                                      const query::SortSpec& sort) {
    SimulatedWrite done;
    ANGELIA_TRY_ASSIGN(const std::vector<std::uint64_t> found,
                       matching(name, filter, !multi, sort));
    for (const auto sequence : found) {
        SimulatedCollection& c = collections[name];
        done.before = c.documents.at(sequence);
        ANGELIA_TRY(touch_all(name, c, sequence));
        leave(c, sequence);
        ++done.matched;
        const bson::Timestamp time = next_time();
        bson::Value id((*done.before)["_id"]);
        log({time, name,
             event_body("delete", time, now(), name, key_of(*done.before), nullptr, nullptr), id,
             false, false});
    }
    return done;
}

SharedDocument SimulatedServer::State::document(const CollectionName& name,
                                                bson::ValueView id) const {
    const auto at = collections.find(name);
    if (at == collections.end()) return nullptr;
    const auto entry = at->second.ids.find(id_key(id));
    return entry == at->second.ids.end() ? nullptr : at->second.documents.at(entry->second);
}

Result<void> SimulatedServer::State::add_index(const CollectionName& name,
                                               const IndexDefinition& definition) {
    ANGELIA_TRY_ASSIGN(query::IndexKeyPattern pattern,
                       query::IndexKeyPattern::parse(definition.key));
    ANGELIA_TRY(check_untouched(name));
    SimulatedCollection& c = collections[name];
    for (const auto& index : c.indexes) {
        const bool same_key = index.definition->key.view().identical(definition.key.view());
        const bool same = same_key && index.definition->unique == definition.unique &&
                          index.definition->sparse == definition.sparse &&
                          index.definition->expire_after_seconds == definition.expire_after_seconds;
        if (same && index.definition->name == definition.name) return {};
        if (same_key || index.definition->name == definition.name) {
            return {same_key ? ErrorCode::IndexOptionsConflict : ErrorCode::IndexKeySpecsConflict,
                    fmt::format("index {} on {} conflicts with the existing index {}",
                                definition.name, name.full(), index.definition->name)};
        }
    }
    SimulatedIndex index{std::make_shared<const IndexDefinition>(IndexDefinition{
                             definition.name, definition.key.copy(), definition.unique,
                             definition.sparse, definition.expire_after_seconds}),
                         std::make_shared<const query::IndexKeyPattern>(std::move(pattern)),
                         {}};
    if (definition.unique) {
        for (const auto& [sequence, stored] : c.documents) {
            ANGELIA_TRY_ASSIGN(const query::IndexKeys keys,
                               query::index_keys(*index.pattern, *stored, definition.sparse));
            for (const auto& key : keys.keys) {
                if (!index.keys.emplace(key, sequence).second) {
                    return duplicate(name, definition.name, definition.key.copy(),
                                     query::key_values(*index.pattern, *stored, key));
                }
            }
        }
    }
    c.indexes.push_back(std::move(index));
    return {};
}

Result<void> SimulatedServer::State::drop(const CollectionName& name) {
    ANGELIA_TRY(check_untouched(name));
    if (collections.erase(name) == 0) return {};
    const bson::Timestamp time = next_time();
    log({time,
         name,
         event_body("drop", time, now(), name, bson::DocumentView(), nullptr, nullptr),
         {},
         false,
         true});
    return {};
}

std::string SimulatedServer::State::document_key(const CollectionName& name,
                                                 bson::ValueView id) const {
    return name.full() + '\0' + '\0' + id_key(id);
}

std::optional<std::uint64_t> SimulatedServer::State::sequence_of(const CollectionName& name,
                                                                 bson::ValueView id) const {
    const auto at = collections.find(name);
    if (at == collections.end()) return std::nullopt;
    const auto entry = at->second.ids.find(id_key(id));
    return entry == at->second.ids.end() ? std::nullopt : std::optional(entry->second);
}

Result<void> SimulatedServer::State::touch_document(const CollectionName& name,
                                                    bson::ValueView id) {
    const bool unchanged = server == nullptr || server->document(name, id) == document(name, id);
    return touch(document_key(name, id), unchanged);
}

Result<void> SimulatedServer::State::touch_unique(const CollectionName& name,
                                                  const SimulatedIndex& index,
                                                  const std::string& key) {
    const auto owner = [&](const SimulatedIndex& of) {
        const auto at = of.keys.find(key);
        return at == of.keys.end() ? std::uint64_t{0} : at->second;
    };
    bool unchanged = true;
    if (server != nullptr) {
        for (const auto& newest : server->collections[name].indexes) {
            if (newest.definition->name == index.definition->name)
                unchanged = owner(newest) == owner(index);
        }
    }
    return touch(name.full() + '\0' + index.definition->name + '\0' + key, unchanged);
}

Result<void> SimulatedServer::State::touch_all(const CollectionName& name, SimulatedCollection& c,
                                               std::uint64_t sequence) {
    ANGELIA_TRY(touch_document(name, (*c.documents.at(sequence))["_id"]));
    for (const auto& index : c.indexes) {
        for (const auto& [key, owner] : index.keys) {
            if (owner == sequence) ANGELIA_TRY(touch_unique(name, index, key));
        }
    }
    return {};
}

Result<void> SimulatedServer::State::check_untouched(const CollectionName& name) const {
    const std::string prefix = name.full() + '\0';
    const auto held = intents.lower_bound(prefix);
    if (held == intents.end() || held->first.rfind(prefix, 0) != 0) return {};
    return {ErrorCode::MaxTimeMSExpired,
            fmt::format("an open transaction has changed {}; a simulated call does not wait for it",
                        name.full())};
}

std::int64_t SimulatedServer::State::expire() {
    std::int64_t count = 0;
    for (auto& [name, c] : collections) {
        std::vector<std::uint64_t> over;
        for (const auto& index : c.indexes) {
            if (!index.definition->expire_after_seconds) continue;
            const std::string field((*index.definition->key.view().begin()).key);
            const std::int64_t limit =
                now().millis - std::int64_t{1000} * *index.definition->expire_after_seconds;
            for (const auto& [sequence, stored] : c.documents) {
                const auto date = stored->view().find_path(field).get_date();
                if (date && date->millis <= limit) over.push_back(sequence);
            }
        }
        for (const auto sequence : over) {
            if (c.documents.count(sequence) == 0) continue;
            const auto filter = query::Matcher::parse(key_of(*c.documents.at(sequence)));
            // What a transaction holds goes with a later pass.
            const auto removed = remove(name, filter.value(), false);
            count += removed ? removed->matched : 0;
        }
    }
    return count;
}

}  // namespace angelia::store::testing
