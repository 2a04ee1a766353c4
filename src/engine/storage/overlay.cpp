#include "engine/storage/overlay.h"

#include "engine/storage/byte_order.h"
#include "engine/storage/database.h"
#include "engine/storage/rocksdb_options.h"

#include <angelia/base/check.h>

#include <rocksdb/write_batch.h>

#include <cstring>

namespace angelia::engine::storage {

Overlay::Overlay(std::size_t first_block)
    : first_block_(first_block), memory_(first_block_.data(), first_block_.size()) {
    make_maps();
}

void Overlay::make_maps() {
    maps_.emplace(
        std::array<Map, kFamilyCount>{Map(&memory_), Map(&memory_), Map(&memory_), Map(&memory_)});
}

void Overlay::clear() {
    maps_.reset();
    memory_.release();
    make_maps();
    operations_.clear();
    ranges_.clear();
    oplog_.clear();
    bytes_ = 0;
    record_puts_ = 0;
}

std::string_view Overlay::keep(std::string_view bytes) {
    if (bytes.empty()) return {};
    auto* copy = static_cast<char*>(memory_.allocate(bytes.size(), 1));
    std::memcpy(copy, bytes.data(), bytes.size());
    return {copy, bytes.size()};
}

void Overlay::change(Kind kind, Family family, std::string_view key, std::string_view value) {
    const auto index = static_cast<std::uint32_t>(operations_.size());
    const auto stored_value = keep(value);
    auto at = map(family).lower_bound(key);
    if (at != map(family).end() && at->first == key) {
        operations_.push_back({kind, family, at->second, at->first, stored_value});
        at->second = index;
    } else {
        const auto stored_key = keep(key);
        map(family).emplace_hint(at, stored_key, index);
        operations_.push_back({kind, family, kNone, stored_key, stored_value});
    }
    bytes_ += key.size() + value.size();
    if (kind == Kind::Put && family == Family::Records) ++record_puts_;
}

void Overlay::put(Family family, std::string_view key, std::string_view value) {
    change(Kind::Put, family, key, value);
}
void Overlay::erase(Family family, std::string_view key) { change(Kind::Erase, family, key, {}); }

void Overlay::erase_range(Family family, std::string_view lower, std::string_view upper) {
    ANGELIA_CHECK(lower.size() <= kPlacePrefixBytes ||
                  (family != Family::Records && family != Family::Indexes));
    // Changes made before in this range are undone one by one, so that look-ups need no order
    // between keys and ranges.
    for (auto at = map(family).lower_bound(lower);
         at != map(family).end() && (upper.empty() || at->first < upper); ++at) {
        change(Kind::Erase, family, at->first, {});
    }
    const Range range{family, keep(lower), keep(upper)};
    ranges_.push_back(range);
    operations_.push_back({Kind::EraseRange, family, kNone, range.lower, range.upper});
    bytes_ += lower.size() + upper.size();
}

void Overlay::append_oplog(OplogEntryPtr entry) {
    bytes_ += entry->bytes()->size();
    operations_.push_back(
        {Kind::Oplog, Family::Oplog, static_cast<std::uint32_t>(oplog_.size()), {}, {}});
    oplog_.push_back(std::move(entry));
}

void Overlay::rollback_to(std::size_t mark) {
    ANGELIA_CHECK(mark <= operations_.size());
    while (operations_.size() > mark) {
        const auto operation = operations_.back();
        operations_.pop_back();
        switch (operation.kind) {
            case Kind::Put:
                if (operation.family == Family::Records) --record_puts_;
                [[fallthrough]];
            case Kind::Erase: {
                auto at = map(operation.family).find(operation.key);
                if (operation.previous == kNone) {
                    map(operation.family).erase(at);
                } else {
                    at->second = operation.previous;
                }
                bytes_ -= operation.key.size() + operation.value.size();
                break;
            }
            case Kind::EraseRange:
                ranges_.pop_back();
                bytes_ -= operation.key.size() + operation.value.size();
                break;
            case Kind::Oplog:
                bytes_ -= oplog_.back()->bytes()->size();
                oplog_.pop_back();
                break;
        }
    }
}

Overlay::Found Overlay::find(Family family, std::string_view key, std::string_view& value) const {
    if (const auto at = map(family).find(key); at != map(family).end()) {
        const auto& operation = operations_[at->second];
        if (operation.kind == Kind::Erase) return Found::Erased;
        value = operation.value;
        return Found::Value;
    }
    return hiding(family, key) != nullptr ? Found::Erased : Found::Nothing;
}

std::optional<Overlay::Entry> Overlay::entry(Family family, Map::const_iterator at) const {
    if (at == map(family).end()) return std::nullopt;
    const auto& operation = operations_[at->second];
    return Entry{at->first, operation.value, operation.kind == Kind::Erase};
}

std::optional<Overlay::Entry> Overlay::at_or_after(Family family, std::string_view key) const {
    return entry(family, map(family).lower_bound(key));
}

std::optional<Overlay::Entry> Overlay::after(Family family, std::string_view key) const {
    return entry(family, map(family).upper_bound(key));
}

std::optional<Overlay::Entry> Overlay::before(Family family, std::string_view key) const {
    auto at = map(family).lower_bound(key);
    if (at == map(family).begin()) return std::nullopt;
    return entry(family, std::prev(at));
}

std::optional<Overlay::Entry> Overlay::last(Family family) const {
    if (map(family).empty()) return std::nullopt;
    return entry(family, std::prev(map(family).end()));
}

const Overlay::Range* Overlay::hiding(Family family, std::string_view key) const {
    for (const auto& range : ranges_) {
        if (range.covers(family, key)) return &range;
    }
    return nullptr;
}

void Overlay::fill(rocksdb::WriteBatch& batch,
                   const std::array<rocksdb::ColumnFamilyHandle*, kFamilyCount>& families) const {
    for (std::uint32_t i = 0; i < operations_.size(); ++i) {
        const auto& operation = operations_[i];
        auto* family = families[static_cast<std::size_t>(operation.family)];
        switch (operation.kind) {
            case Kind::Put:
            case Kind::Erase:
                if (map(operation.family).find(operation.key)->second != i)
                    break;  // changed again later
                if (operation.kind == Kind::Put) {
                    (void)batch.Put(family, slice(operation.key), slice(operation.value));
                } else {
                    (void)batch.Delete(family, slice(operation.key));
                }
                break;
            case Kind::EraseRange: {
                // RocksDB has no "to the end"; no id of ours starts a key with this many 0xFF.
                const std::string end(64, '\xff');
                (void)batch.DeleteRange(
                    family, slice(operation.key),
                    operation.value.empty() ? rocksdb::Slice(end) : slice(operation.value));
                break;
            }
            case Kind::Oplog: {
                const auto& entry = *oplog_[operation.previous];
                (void)batch.Put(family, oplog_key(entry.time(), entry.sub()), *entry.bytes());
                break;
            }
        }
    }
}

Result<bool> get_over(const Overlay& changes, const Reader& stored, Family family,
                      std::string_view key, std::string& value) {
    std::string_view own;
    switch (changes.find(family, key, own)) {
        case Overlay::Found::Value:
            value.assign(own);
            return true;
        case Overlay::Found::Erased:
            return false;
        case Overlay::Found::Nothing:
            break;
    }
    return stored.get(family, key, value);
}

std::string oplog_key(bson::Timestamp time, std::uint32_t sub) {
    std::string key;
    key.reserve(12);
    append_big(key, time.seconds);
    append_big(key, time.increment);
    append_big(key, sub);
    return key;
}

}  // namespace angelia::engine::storage
