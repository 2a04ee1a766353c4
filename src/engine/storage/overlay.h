// The changes of one apply section before they are written: what was put, erased, and in which
// order, so that the section reads its own changes and a failed write in the middle of a list can
// be undone. Internal to this folder.
#pragma once

#include "engine/changes/oplog.h"
#include "engine/storage/storage.h"

#include <map>
#include <memory_resource>
#include <optional>
#include <vector>

namespace rocksdb {
class WriteBatch;
class ColumnFamilyHandle;
}  // namespace rocksdb

namespace angelia::engine::storage {

using OplogEntryPtr = std::shared_ptr<const OplogEntry>;

/// Used by one section at a time and then again by the next one, so that its memory is touched
/// once. Not thread-safe.
class Overlay {
  public:
    static constexpr std::size_t kFirstBlockBytes = 256 * 1024;

    /// `first_block`: what is kept for good; more is taken as it is needed.
    explicit Overlay(std::size_t first_block = kFirstBlockBytes);
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;

    void put(Family family, std::string_view key, std::string_view value);
    void erase(Family family, std::string_view key);
    void erase_range(Family family, std::string_view lower, std::string_view upper);
    void append_oplog(OplogEntryPtr entry);

    std::size_t mark() const { return operations_.size(); }
    void rollback_to(std::size_t mark);
    void clear();

    bool empty() const { return operations_.empty(); }
    std::size_t bytes() const { return bytes_; }
    bool puts_records() const { return record_puts_ > 0; }
    const std::vector<OplogEntryPtr>& oplog() const { return oplog_; }

    enum class Found { Nothing, Value, Erased };
    /// What the changes say about a key; `value` stays valid until clear().
    Found find(Family family, std::string_view key, std::string_view& value) const;

    // -- for the merging iterator
    struct Entry {
        std::string_view key;
        std::string_view value;
        bool erased = false;
    };
    std::optional<Entry> at_or_after(Family family, std::string_view key) const;
    std::optional<Entry> after(Family family, std::string_view key) const;
    std::optional<Entry> before(Family family, std::string_view key) const;
    std::optional<Entry> last(Family family) const;
    struct Range {
        Family family;
        std::string_view lower, upper;  ///< empty upper: to the end of the family
        bool covers(Family f, std::string_view key) const {
            return f == family && key >= lower && (upper.empty() || key < upper);
        }
    };
    /// The erased range that hides a stored key, if any.
    const Range* hiding(Family family, std::string_view key) const;

    /// Writes everything into `batch`: the last change of each key, ranges in order, oplog entries.
    void fill(rocksdb::WriteBatch& batch,
              const std::array<rocksdb::ColumnFamilyHandle*, kFamilyCount>& families) const;

  private:
    enum class Kind : std::uint8_t { Put, Erase, EraseRange, Oplog };
    struct Operation {
        Kind kind;
        Family family;
        std::uint32_t previous;  ///< operation on the same key before this one, or kNone
        std::string_view key, value;
    };
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;
    using Map = std::pmr::map<std::string_view, std::uint32_t, std::less<>>;

    std::string_view keep(std::string_view bytes);
    void change(Kind kind, Family family, std::string_view key, std::string_view value);
    std::optional<Entry> entry(Family family, Map::const_iterator at) const;
    const Map& map(Family f) const { return (*maps_)[static_cast<std::size_t>(f)]; }
    Map& map(Family f) { return (*maps_)[static_cast<std::size_t>(f)]; }
    void make_maps();

    std::vector<std::byte> first_block_;
    std::pmr::monotonic_buffer_resource memory_;  ///< keys, values and map nodes of this section
    std::optional<std::array<Map, kFamilyCount>> maps_;
    std::vector<Operation> operations_;
    std::vector<Range> ranges_;
    std::vector<OplogEntryPtr> oplog_;
    std::size_t bytes_ = 0;
    std::size_t record_puts_ = 0;
};

/// What `stored` holds under a key, with the changes on top.
Result<bool> get_over(const Overlay& changes, const Reader& stored, Family family,
                      std::string_view key, std::string& value);

/// The stored state of one family with the changes of a section on top. Sees changes that are made
/// while it is used.
IteratorPtr merge(IteratorPtr stored, const Overlay& changes, Family family, std::string_view lower,
                  std::string_view upper);

/// Key of an oplog entry: seconds, increment, sub; big endian.
std::string oplog_key(bson::Timestamp time, std::uint32_t sub);

}  // namespace angelia::engine::storage
