#include "engine/query/sort.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query {
namespace {

Error bad_sort(std::string message) { return {ErrorCode::BadValue, std::move(message)}; }

/// +1 or -1; nothing for everything else. MongoDB takes exactly these, in any number type.
std::optional<int> direction_of(bson::ValueView value) {
    const auto number = value.to_double();
    if (number == 1.0) return 1;
    if (number == -1.0) return -1;
    return std::nullopt;
}

}  // namespace

Result<SortSpec> SortSpec::parse(bson::DocumentView specification) {
    SortSpec spec;
    for (const bson::Element& e : specification) {
        if (const auto document = e.value.get_document()) {
            if (document->has("$meta"))
                return Error(ErrorCode::NotImplemented, "sorting by $meta is not supported");
            return bad_sort(fmt::format("Illegal key in $sort specification: {}", e.key));
        }
        const auto direction = direction_of(e.value);
        if (!direction)
            return bad_sort(fmt::format(
                "$sort key ordering must be 1 (for ascending) or -1 (for descending), for '{}'",
                e.key));
        if (e.key == "$natural") {
            if (specification.count() > 1)
                return bad_sort(
                    "$natural sort cannot be set to a value other than -1 or 1 or be combined with "
                    "fields");
            spec.natural_ = *direction;
            return spec;
        }
        ANGELIA_TRY_ASSIGN(FieldPath path, FieldPath::parse(e.key));
        IndexKeyPattern::Field field{std::move(path), *direction < 0};
        for (const std::string& part : field.path.parts()) {
            if (part.empty()) return bad_sort("FieldPath field names may not be empty strings.");
            if (part[0] == '$')
                return bad_sort(
                    fmt::format("FieldPath field names may not start with '$': '{}'", e.key));
        }
        for (const auto& other : spec.pattern_.fields) {
            if (other.path == field.path)
                return bad_sort(fmt::format("duplicate sort key '{}'", e.key));
        }
        spec.pattern_.fields.push_back(std::move(field));
    }
    if (spec.pattern_.fields.size() > kSortKeysMax)
        return bad_sort(fmt::format("too many sort keys, at most {} are allowed", kSortKeysMax));
    return spec;
}

Result<std::string> SortSpec::sort_key(bson::DocumentView document) const {
    if (pattern_.fields.empty()) return std::string();
    auto keys = index_keys(pattern_, document, false);
    if (!keys) {
        if (keys.error().code != ErrorCode::CannotIndexParallelArrays)
            return std::move(keys).error();
        return bad_sort("cannot sort with keys that are parallel arrays");
    }
    return std::move(keys->keys.front());
}

Result<int> SortSpec::compare(bson::DocumentView a, bson::DocumentView b) const {
    ANGELIA_TRY_ASSIGN(const std::string left, sort_key(a));
    ANGELIA_TRY_ASSIGN(const std::string right, sort_key(b));
    return left.compare(right);
}

Sorter::Sorter(const SortSpec& specification, std::optional<std::uint64_t> limit,
               std::size_t bytes_max)
    : specification_(specification), limit_(limit), bytes_max_(bytes_max) {
    if (limit_ == 0) limit_ = std::nullopt;  // as in find: no limit
}

bool Sorter::before(const Item& a, const Item& b) {
    const int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : a.sequence < b.sequence;
}

Result<void> Sorter::add(bson::Document document) {
    ANGELIA_TRY_ASSIGN(std::string key, specification_.sort_key(document.view()));
    Item item{std::move(key), sequence_++, std::move(document)};
    const auto cost = [](const Item& i) {
        return i.key.size() + i.document.size_bytes() + sizeof(Item);
    };
    if (limit_ && items_.size() >= *limit_) {
        if (!before(item, items_.front())) return {};
        std::pop_heap(items_.begin(), items_.end(), before);
        bytes_ -= cost(items_.back());
        items_.pop_back();
    }
    bytes_ += cost(item);
    if (bytes_ > bytes_max_) {
        return Error(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            fmt::format(
                "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                bytes_max_));
    }
    items_.push_back(std::move(item));
    if (limit_) std::push_heap(items_.begin(), items_.end(), before);
    return {};
}

void Sorter::finish() { std::sort(items_.begin(), items_.end(), before); }

std::optional<bson::Document> Sorter::next() {
    if (at_ == items_.size()) return std::nullopt;
    return std::move(items_[at_++].document);
}

}  // namespace angelia::engine::query
