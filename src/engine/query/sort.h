// Sort specifications, and a sorter with a limit and a memory bound.
#pragma once

#include "engine/query/key_encoding.h"

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace angelia::engine::query {

inline constexpr std::size_t kSortKeysMax = 32;  // MongoDB limit
inline constexpr std::size_t kSortBytesMax =
    std::size_t{100} << 20;  // MongoDB limit for a blocking sort without disk use

/// {field: 1 | -1, ...} or {$natural: ±1}. Immutable. Threads: safe.
class SortSpec {
  public:
    /// An empty specification is legal and means no order. Errors: BadValue, NotImplemented
    /// ($meta).
    static Result<SortSpec> parse(bson::DocumentView specification);

    bool empty() const noexcept { return pattern_.fields.empty() && natural_ == 0; }
    /// +1 or -1 for {$natural: ±1}, else 0; then there are no keys.
    int natural() const noexcept { return natural_; }
    const IndexKeyPattern& pattern() const noexcept { return pattern_; }

    /// Bytes whose memcmp order is the order of documents under this specification. Array fields
    /// count with the element that sorts first. Errors: BadValue (two fields of the specification
    /// lead through different arrays).
    Result<std::string> sort_key(bson::DocumentView document) const;
    /// <0, 0, >0.
    Result<int> compare(bson::DocumentView a, bson::DocumentView b) const;

  private:
    IndexKeyPattern pattern_;
    int natural_ = 0;
};

/// Takes documents in any order, gives them back sorted; equal keys keep the order of adding. With
/// a limit it keeps only the best `limit`. Not thread-safe.
class Sorter {
  public:
    explicit Sorter(const SortSpec& specification,
                    std::optional<std::uint64_t> limit = std::nullopt,
                    std::size_t bytes_max = kSortBytesMax);

    /// Errors: QueryExceededMemoryLimitNoDiskUseAllowed, and those of sort_key.
    Result<void> add(bson::Document document);
    /// Ends adding. Call once, before next().
    void finish();
    std::optional<bson::Document> next();

  private:
    struct Item {
        std::string key;
        std::uint64_t sequence;
        bson::Document document;
    };
    static bool before(const Item& a, const Item& b);
    SortSpec specification_;
    std::optional<std::uint64_t> limit_;
    std::size_t bytes_max_;
    std::size_t bytes_ = 0;
    std::uint64_t sequence_ = 0;
    std::vector<Item> items_;  ///< a max-heap while adding under a limit
    std::size_t at_ = 0;
};

}  // namespace angelia::engine::query
