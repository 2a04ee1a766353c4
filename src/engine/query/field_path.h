// A dotted path, split once.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::engine::query {

inline constexpr std::size_t kPathPartsMax =
    static_cast<std::size_t>(bson::kNestingMax);  // no document is deeper

/// "a.b.0" as parts. Immutable after construction. Threads: safe.
class FieldPath {
  public:
    FieldPath() = default;
    /// Splits at every dot; empty parts are kept (a filter may ask for a field with an empty name).
    explicit FieldPath(std::string_view dotted);
    /// For paths from outside: bounds the number of parts. Errors: Overflow.
    static Result<FieldPath> parse(std::string_view dotted);

    const std::string& dotted() const noexcept { return dotted_; }
    const std::vector<std::string>& parts() const noexcept { return parts_; }
    std::size_t size() const noexcept { return parts_.size(); }
    const std::string& operator[](std::size_t i) const { return parts_[i]; }
    const std::string& front() const { return parts_.front(); }
    const std::string& back() const { return parts_.back(); }

    /// The path without its first `parts` parts; `parts` < size().
    FieldPath without_front(std::size_t parts) const;
    /// True when this path is `other` or leads to it ("a" is a prefix of "a.b").
    bool is_prefix_of(const FieldPath& other) const noexcept;
    bool operator==(const FieldPath& other) const noexcept { return dotted_ == other.dotted_; }

  private:
    std::string dotted_;
    std::vector<std::string> parts_;
};

/// The array index that a path part means: decimal digits without a leading zero (except "0");
/// nothing for names and for numbers too large to be one.
std::optional<std::uint32_t> array_index_of(std::string_view part) noexcept;

/// Order of field names in updates: array indexes by number, before names; names by bytes.
bool part_less(std::string_view a, std::string_view b) noexcept;
/// The same, part by part.
bool path_less(const FieldPath& a, const FieldPath& b) noexcept;

}  // namespace angelia::engine::query
