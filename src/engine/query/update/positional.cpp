#include "engine/query/update/positional.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query::update {
namespace {

using bson::Type;
using bson::ValueView;

Error array_filter_error(std::string message) {
    return {ErrorCode::FailedToParse,
            "Error parsing array filter :: caused by :: " + std::move(message)};
}

/// "name" of "$[name]"; empty for "$[]" and others.
std::string_view identifier_of(std::string_view part) {
    return part.size() > 3 && part.starts_with("$[") ? part.substr(2, part.size() - 3)
                                                     : std::string_view();
}

bool is_identifier(std::string_view name) {
    const auto letter_or_digit = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
           std::all_of(name.begin(), name.end(), letter_or_digit);
}

/// Finds the one name that all paths of a filter start with.
Result<void> collect_identifier(bson::DocumentView filter, std::string& identifier, int depth) {
    if (depth > bson::kNestingMax) return array_filter_error("nested too deep");
    for (const bson::Element& e : filter) {
        if (e.key.starts_with('$')) {
            if (!e.value.is(Type::Array)) continue;
            for (const bson::Element& branch : e.value.as_document()) {
                if (const auto document = branch.value.get_document())
                    ANGELIA_TRY(collect_identifier(*document, identifier, depth + 1));
            }
            continue;
        }
        const std::string_view name = e.key.substr(0, e.key.find('.'));
        if (!identifier.empty() && identifier != name) {
            return array_filter_error(fmt::format(
                "Expected a single top-level field name, found '{}' and '{}'", identifier, name));
        }
        if (!is_identifier(name)) {
            return bad_operand(
                fmt::format("Error parsing array filter :: caused by :: The top-level field name "
                            "must be an alphanumeric string "
                            "beginning with a lowercase letter, found '{}'",
                            name));
        }
        identifier = std::string(name);
    }
    return {};
}

/// Follows one path through one document and collects the plain paths.
class PathResolver {
  public:
    PathResolver(const FieldPath& path, bson::DocumentView document, const ArrayFilters& filters,
                 const Matcher* query)
        : path_(path), document_(document), filters_(filters), query_(query) {
        for (std::size_t i = 0; i < path.size(); ++i) {
            if (is_positional_part(path[i])) parts_to_resolve_ = i + 1;
        }
    }

    Result<std::vector<FieldPath>> run() {
        ANGELIA_TRY(
            from(0, "", ValueView(Type::Document, document_.data(), document_.size_bytes())));
        return std::move(found_);
    }

  private:
    static std::string extended(const std::string& path, std::string_view part) {
        return path.empty() ? std::string(part) : path + "." + std::string(part);
    }

    static ValueView child_of(ValueView value, std::string_view part) {
        if (value.is(Type::Document)) return value.as_document().find(part);
        const auto index = array_index_of(part);
        if (!value.is(Type::Array) || !index) return {};
        std::uint32_t left = *index;
        for (const bson::Element& e : value.as_document()) {
            if (left-- == 0) return e.value;
        }
        return {};
    }

    Result<void> from(std::size_t at, std::string so_far, ValueView value) {
        for (; at < parts_to_resolve_; ++at) {
            if (path_[at] == "$") {
                ANGELIA_TRY_ASSIGN(const std::string index, matched_index(so_far));
                so_far = extended(so_far, index);
                value = child_of(value, index);
            } else if (is_positional_part(path_[at])) {
                return each_element(at, so_far, value);
            } else {
                so_far = extended(so_far, path_[at]);
                value = child_of(value, path_[at]);
            }
        }
        for (; at < path_.size(); ++at) so_far = extended(so_far, path_[at]);
        found_.emplace_back(so_far);
        return {};
    }

    Result<void> each_element(std::size_t at, const std::string& so_far, ValueView value) {
        if (value.is_missing()) {
            return bad_operand(fmt::format(
                "The path '{}' must exist in the document in order to apply array updates.",
                so_far));
        }
        if (!value.is(Type::Array)) {
            const std::string_view name = std::string_view(so_far).substr(so_far.rfind('.') + 1);
            return bad_operand(fmt::format("Cannot apply array updates to non-array element {}",
                                           element_text(name, value)));
        }
        const std::string_view identifier = identifier_of(path_[at]);
        std::uint32_t position = 0;
        for (const bson::Element& e : value.as_document()) {
            const std::uint32_t here = position++;
            if (!identifier.empty() && !filters_.matches(identifier, e.value)) continue;
            ANGELIA_TRY(from(at + 1, extended(so_far, std::to_string(here)), e.value));
        }
        return {};
    }

    Result<std::string> matched_index(const std::string& array_path) const {
        if (query_ != nullptr) {
            if (const auto position = query_->matched_position(document_, FieldPath(array_path)))
                return std::to_string(*position);
        }
        return bad_operand("The positional operator did not find the match needed from the query.");
    }

    const FieldPath& path_;
    bson::DocumentView document_;
    const ArrayFilters& filters_;
    const Matcher* query_;
    std::size_t parts_to_resolve_ = 0;  ///< behind the last positional part the path is plain
    std::vector<FieldPath> found_;
};

}  // namespace

bool is_positional_part(std::string_view part) {
    return part == "$" || (part.starts_with("$[") && part.ends_with(']'));
}

bool is_positional(const FieldPath& path) {
    return std::any_of(path.parts().begin(), path.parts().end(), is_positional_part);
}

Result<ArrayFilters> ArrayFilters::parse(std::optional<bson::DocumentView> list) {
    ArrayFilters result;
    if (!list) return result;
    for (const bson::Element& e : *list) {
        const auto document = e.value.get_document();
        if (!document)
            return Error(ErrorCode::TypeMismatch,
                         fmt::format("arrayFilters must hold documents, not {}",
                                     bson::type_alias(e.value.type())));
        Filter filter;
        ANGELIA_TRY(collect_identifier(*document, filter.identifier, 0));
        if (filter.identifier.empty()) {
            return Error(ErrorCode::FailedToParse,
                         "Cannot use an expression without a top-level field name in arrayFilters");
        }
        if (result.find(filter.identifier) != nullptr) {
            return Error(
                ErrorCode::FailedToParse,
                fmt::format("Found multiple array filters with the same top-level field name {}",
                            filter.identifier));
        }
        ANGELIA_TRY_ASSIGN(filter.matcher, Matcher::parse(*document));
        result.filters_.push_back(std::move(filter));
    }
    return result;
}

const ArrayFilters::Filter* ArrayFilters::find(std::string_view identifier) const {
    for (const Filter& filter : filters_) {
        if (filter.identifier == identifier) return &filter;
    }
    return nullptr;
}

Result<void> ArrayFilters::check_use(const std::vector<Operation>& operations,
                                     bson::DocumentView update) const {
    std::vector<std::string_view> used;
    for (const Operation& operation : operations) {
        for (const std::string& part : operation.path.parts()) {
            const std::string_view identifier = identifier_of(part);
            if (identifier.empty()) continue;
            used.push_back(identifier);
            if (find(identifier) != nullptr) continue;
            return bad_operand(fmt::format("No array filter found for identifier '{}' in path '{}'",
                                           identifier, operation.path.dotted()));
        }
    }
    for (const Filter& filter : filters_) {
        if (std::find(used.begin(), used.end(), filter.identifier) != used.end()) continue;
        return Error(
            ErrorCode::FailedToParse,
            fmt::format("The array filter for identifier '{}' was not used in the update {}",
                        filter.identifier, bson::to_json(update).substr(0, 500)));
    }
    return {};
}

bool ArrayFilters::matches(std::string_view identifier, ValueView element) const {
    const Filter* filter = find(identifier);
    return filter != nullptr && filter->matcher.matches(bson::make(identifier, element));
}

Result<std::vector<FieldPath>> resolve_path(const FieldPath& path, bson::DocumentView document,
                                            const ArrayFilters& filters, const Matcher* query) {
    return PathResolver(path, document, filters, query).run();
}

}  // namespace angelia::engine::query::update
