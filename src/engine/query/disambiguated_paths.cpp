#include "engine/query/disambiguated_paths.h"

#include <algorithm>
#include <charconv>

namespace angelia::engine::query {
namespace {

bool is_numeric(std::string_view part) {
    return !part.empty() &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Component {
    std::string_view name;
    bool index = false;  ///< of an array
};

/// Finds `path` in `container`, names with dots included; the last component need not be there.
bool resolve(bson::ValueView container, std::string_view path, std::vector<Component>& parts) {
    const auto descend = [&](std::string_view name, bool index, bson::ValueView value) {
        parts.push_back({name, index});
        if (name.size() == path.size()) return true;
        if (value.is_container() && resolve(value, path.substr(name.size() + 1), parts))
            return true;
        parts.pop_back();
        return false;
    };
    const std::string_view first = path.substr(0, path.find('.'));
    if (!container.is_container()) return false;
    const bson::DocumentView document = container.as_document();
    if (container.is(bson::Type::Array))
        return is_numeric(first) && descend(first, true, document.find(first));
    for (const bson::Element& e : document) {
        const bool leads = path.substr(0, e.key.size()) == e.key &&
                           (path.size() == e.key.size() || path[e.key.size()] == '.');
        if (leads && descend(e.key, false, e.value)) return true;
    }
    // A field that the update took away.
    return first.size() == path.size() && descend(first, false, {});
}

/// Cheap look at a path before it is taken apart: one name, or plain names all the way.
bool may_be_ambiguous(std::string_view path, bson::DocumentView document) {
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return false;
    if (document.find(path.substr(0, dot)).is_missing()) return true;
    for (std::size_t at = dot; at != std::string_view::npos; at = path.find('.', at + 1)) {
        const auto part = path.substr(at + 1, path.find('.', at + 1) - at - 1);
        if (part.empty() || is_numeric(part)) return true;
    }
    return !document.find(path).is_missing();
}

void add_path(bson::Builder& b, std::string_view path, bson::DocumentView document) {
    if (!may_be_ambiguous(path, document)) return;
    std::vector<Component> parts;
    if (!resolve(bson::ValueView(bson::Type::Document, document.data(), document.size_bytes()),
                 path, parts))
        return;
    bool ambiguous = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Component& part = parts[i];
        ambiguous = ambiguous || part.name.find('.') != std::string_view::npos ||
                    (i > 0 && !part.index && is_numeric(part.name));
    }
    if (!ambiguous) return;
    b.open_array(path);
    for (const Component& part : parts) {
        std::int32_t index = 0;
        if (part.index &&
            std::from_chars(part.name.data(), part.name.data() + part.name.size(), index).ec ==
                std::errc()) {
            b.push(index);
        } else {
            b.push(part.name);
        }
    }
    b.close();
}

}  // namespace

bson::Document disambiguated_paths(const UpdateDescription& description, bson::DocumentView before,
                                   bson::DocumentView after) {
    bson::Builder b;
    for (const bson::Element& field : description.updated_fields.view())
        add_path(b, field.key, after);
    for (const bson::Element& field : description.removed_fields.view())
        add_path(b, field.value.as_string(), before);
    for (const bson::Element& array : description.truncated_arrays.view())
        if (const auto path = array.value.as_document()["field"].get_string())
            add_path(b, *path, after);
    return b.take();
}

}  // namespace angelia::engine::query
