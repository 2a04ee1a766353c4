#include "engine/query/field_path.h"

#include <algorithm>

namespace angelia::engine::query {

Result<FieldPath> FieldPath::parse(std::string_view dotted) {
    if (static_cast<std::size_t>(std::count(dotted.begin(), dotted.end(), '.')) >= kPathPartsMax) {
        return Error(ErrorCode::Overflow, "FieldPath is too long: at most " +
                                              std::to_string(kPathPartsMax) + " parts are allowed");
    }
    return FieldPath(dotted);
}

FieldPath::FieldPath(std::string_view dotted) : dotted_(dotted) {
    std::size_t from = 0;
    for (;;) {
        const auto dot = dotted.find('.', from);
        parts_.emplace_back(dotted.substr(from, dot - from));
        if (dot == std::string_view::npos) return;
        from = dot + 1;
    }
}

FieldPath FieldPath::without_front(std::size_t parts) const {
    std::size_t skipped = 0;
    for (std::size_t i = 0; i < parts; ++i) skipped += parts_[i].size() + 1;
    return FieldPath(std::string_view(dotted_).substr(skipped));
}

bool FieldPath::is_prefix_of(const FieldPath& other) const noexcept {
    if (parts_.size() > other.parts_.size()) return false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i] != other.parts_[i]) return false;
    }
    return true;
}

std::optional<std::uint32_t> array_index_of(std::string_view part) noexcept {
    if (part.empty() || part.size() > 9 || (part.size() > 1 && part[0] == '0')) return std::nullopt;
    std::uint32_t value = 0;
    for (const char c : part) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<std::uint32_t>(c - '0');
    }
    return value;
}

bool part_less(std::string_view a, std::string_view b) noexcept {
    const auto left = array_index_of(a);
    const auto right = array_index_of(b);
    if (left && right) return *left < *right;
    if (left.has_value() != right.has_value()) return left.has_value();
    return a < b;
}

bool path_less(const FieldPath& a, const FieldPath& b) noexcept {
    const std::size_t shared = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < shared; ++i) {
        if (a[i] != b[i]) return part_less(a[i], b[i]);
    }
    return a.size() < b.size();
}

}  // namespace angelia::engine::query
