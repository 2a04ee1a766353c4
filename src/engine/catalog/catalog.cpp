// Views of the catalog and how they are loaded.
#include "engine/catalog/catalog.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine {

namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::optional<std::size_t> Collection::index_named(std::string_view name) const {
    for (std::size_t i = 0; i < indexes.size(); ++i)
        if (indexes[i]->spec.name == name) return i;
    return std::nullopt;
}

CollectionPtr CatalogView::find(const Namespace& ns) const {
    auto it = collections.find(ns);
    return it == collections.end() ? nullptr : it->second;
}

std::vector<CollectionPtr> CatalogView::in_database(std::string_view db) const {
    std::vector<CollectionPtr> found;
    for (auto it = collections.lower_bound(Namespace{std::string(db), ""});
         it != collections.end() && it->first.db == db; ++it)
        found.push_back(it->second);
    return found;
}

std::vector<std::string> CatalogView::databases() const {
    std::vector<std::string> names;
    for (const auto& [ns, collection] : collections)
        if (names.empty() || names.back() != ns.db) names.push_back(ns.db);
    return names;
}

Result<void> CatalogView::check_database_case(const std::string& db) const {
    for (const auto& name : databases())
        if (name != db && equal_ignoring_case(name, db))
            return Error(ErrorCode::DatabaseDifferCase,
                         fmt::format("db already exists with different case already have: [{}] "
                                     "trying to create [{}]",
                                     name, db));
    return {};
}

Result<void> Catalog::load(const storage::Reader& reader) {
    auto next = std::make_shared<CatalogView>();
    auto it = reader.iterate(storage::Family::Meta, catalog_prefix(),
                             storage::prefix_end(catalog_prefix()));
    std::uint32_t highest = 0;
    for (it->seek_to_first(); it->valid(); it->next()) {
        ANGELIA_TRY_ASSIGN(auto collection, decode_collection(bson::DocumentView(it->value())));
        collection->index_generation = next_generation();
        collection->live = std::make_shared<LiveState>();
        std::string bytes;
        ANGELIA_TRY_ASSIGN(bool found,
                           reader.get(storage::Family::Meta, counter_key(collection->id), bytes));
        const Counters counters = found ? decode_counters(bytes) : Counters{};
        collection->live->count = counters.count;
        collection->live->bytes = counters.bytes;
        collection->live->next_record = counters.next_record;
        highest = std::max(highest, collection->id);
        for (const auto& index : collection->indexes) highest = std::max(highest, index->id);
        auto ns = collection->ns;
        next->collections.emplace(std::move(ns), std::move(collection));
    }
    ANGELIA_TRY(it->status());
    std::string bytes;
    ANGELIA_TRY_ASSIGN(bool found, reader.get(storage::Family::Meta, catalog_next_id_key(), bytes));
    next_id_ = highest + 1;
    if (found && bytes.size() == 4) {
        std::uint32_t stored = 0;
        for (char c : bytes) stored = (stored << 8) | static_cast<std::uint8_t>(c);
        next_id_ = std::max(next_id_, stored);
    }
    publish(std::move(next));
    return {};
}

CatalogViewPtr Catalog::view() const {
    std::lock_guard lock(mutex_);
    return view_;
}

void Catalog::publish(CatalogViewPtr view) {
    std::lock_guard lock(mutex_);
    view_.swap(view);
}

}  // namespace angelia::engine
