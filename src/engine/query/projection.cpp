#include "engine/query/projection.h"

#include "engine/query/field_path.h"
#include "engine/query/matcher.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace angelia::engine::query {

using bson::Type;
using bson::ValueView;

namespace projection_tree {  // named, because Projection::State holds a node

struct Slice {
    std::int64_t skip = 0;  ///< negative: from the end
    std::int64_t count = 0;

    void write(bson::Builder& b, std::string_view key, bson::DocumentView array) const {
        const auto size = static_cast<std::int64_t>(array.count());
        const std::int64_t from =
            skip >= 0 ? std::min(skip, size) : std::max<std::int64_t>(0, size + skip);
        const std::int64_t to = count > size - from ? size : from + count;
        b.open_array(key);
        std::int64_t at = 0;
        for (const bson::Element& e : array) {
            if (at >= from && at < to) b.push(e.value);
            ++at;
        }
        b.close();
    }
};

struct ProjectionNode {
    enum class Action { Branch, Include, Exclude, Slice, ElemMatch };
    Action action = Action::Branch;
    std::map<std::string, ProjectionNode, std::less<>> children;
    Slice slice;
    std::optional<Matcher> elem_match;  ///< asks about {"": [element]}

    const ProjectionNode* child(std::string_view key) const {
        const auto it = children.find(key);
        return it == children.end() ? nullptr : &it->second;
    }
};

/// Collects what the specification says before it is clear whether it includes or excludes.
struct ProjectionParse {
    ProjectionNode root;
    std::optional<bool> inclusion;  ///< decided by the first field other than _id
    std::optional<bool> id;         ///< what is said about _id
    bool has_elem_match = false;
    ProjectionUse use = ProjectionUse::Find;

    Result<ProjectionNode*> add(const FieldPath& path) {
        ProjectionNode* node = &root;
        for (std::size_t i = 0; i < path.size(); ++i) {
            if (node != &root && node->action != ProjectionNode::Action::Branch) {
                return Error(
                    ErrorCode::Location31249,
                    fmt::format("Path collision at {} remaining portion {}", path.dotted(),
                                path.dotted().substr(path.dotted().size() - rest_size(path, i))));
            }
            auto [it, fresh] = node->children.try_emplace(path[i]);
            if (i + 1 == path.size() && !fresh)
                return Error(ErrorCode::Location31250,
                             fmt::format("Path collision at {}", path.dotted()));
            node = &it->second;
        }
        return node;
    }

    Result<void> field(std::string_view dotted, ValueView value) {
        ANGELIA_TRY_ASSIGN(const FieldPath path, FieldPath::parse(dotted));
        for (const std::string& part : path.parts()) {
            if (part.empty())
                return Error(ErrorCode::Location40353,
                             fmt::format("FieldPath must not have an empty part: '{}'", dotted));
            if (part == "$")
                return Error(
                    ErrorCode::NotImplemented,
                    fmt::format("positional projection is not supported yet: '{}'", dotted));
            if (part[0] == '$')
                return Error(
                    ErrorCode::Location16410,
                    fmt::format("FieldPath field names may not start with '$': '{}'", dotted));
        }
        if (const auto document = value.get_document()) return sub_document(path, *document);
        if (!value.is_number() && !value.is(Type::Bool)) {
            return Error(
                ErrorCode::NotImplemented,
                fmt::format("computed fields are not supported yet: '{}' is a {}; use 1 or 0",
                            dotted, bson::type_alias(value.type())));
        }
        return in_or_out(path, value.truthy());
    }

    Result<void> in_or_out(const FieldPath& path, bool in) {
        if (path.dotted() == "_id") {
            id = in;
        } else {
            if (!inclusion) inclusion = in;
            if (*inclusion && !in) {
                return Error(ErrorCode::Location31254,
                             fmt::format("Cannot do exclusion on field {} in inclusion projection",
                                         path.dotted()));
            }
            if (!*inclusion && in) {
                return Error(ErrorCode::Location31253,
                             fmt::format("Cannot do inclusion on field {} in exclusion projection",
                                         path.dotted()));
            }
        }
        ANGELIA_TRY_ASSIGN(ProjectionNode * node, add(path));
        node->action = in ? ProjectionNode::Action::Include : ProjectionNode::Action::Exclude;
        return {};
    }

    Result<void> sub_document(const FieldPath& path, bson::DocumentView document) {
        if (document.empty()) {
            return Error(
                ErrorCode::Location51270,
                fmt::format(
                    "An empty sub-projection is not a valid value. Found empty object at path '{}'",
                    path.dotted()));
        }
        const bson::Element first = *document.begin();
        if (!first.key.starts_with('$')) {
            for (const bson::Element& e : document)
                ANGELIA_TRY(field(path.dotted() + "." + std::string(e.key), e.value));
            return {};
        }
        const bool single = document.count() == 1;
        if (single && use == ProjectionUse::Find && first.key == "$slice")
            return slice(path, first.value);
        if (single && use == ProjectionUse::Find && first.key == "$elemMatch")
            return elem_match(path, first.value);
        return Error(ErrorCode::NotImplemented,
                     fmt::format("the expression {} for field '{}' is not supported yet", first.key,
                                 path.dotted()));
    }

    Result<void> slice(const FieldPath& path, ValueView operand) {
        Slice s;
        if (const auto list = operand.get_array()) {
            std::vector<std::int64_t> numbers;
            for (const bson::Element& e : *list) {
                const auto number = whole_number(e.value);
                if (!number) return bad_slice();
                numbers.push_back(*number);
            }
            if (numbers.size() != 2 || numbers[1] <= 0) return bad_slice();
            s = {numbers[0], numbers[1]};
        } else {
            const auto number = whole_number(operand);
            if (!number) return bad_slice();
            s = *number >= 0 ? Slice{0, *number}
                             : Slice{*number, std::numeric_limits<std::int64_t>::max()};
        }
        ANGELIA_TRY_ASSIGN(ProjectionNode * node, add(path));
        node->action = ProjectionNode::Action::Slice;
        node->slice = s;
        return {};
    }

    Result<void> elem_match(const FieldPath& path, ValueView operand) {
        if (path.size() > 1)
            return Error(ErrorCode::BadValue,
                         fmt::format("Cannot use $elemMatch projection on a nested field: '{}'",
                                     path.dotted()));
        if (!operand.is(Type::Document))
            return Error(ErrorCode::BadValue, "elemMatch: Invalid argument, object required");
        ANGELIA_TRY_ASSIGN(Matcher matcher,
                           Matcher::parse(bson::make("", bson::make("$elemMatch", operand))));
        ANGELIA_TRY_ASSIGN(ProjectionNode * node, add(path));
        node->action = ProjectionNode::Action::ElemMatch;
        node->elem_match = std::move(matcher);
        has_elem_match = true;
        return {};
    }

    static std::size_t rest_size(const FieldPath& path, std::size_t from) {
        std::size_t size = 0;
        for (std::size_t i = from; i < path.size(); ++i)
            size += path[i].size() + (i > from ? 1 : 0);
        return size;
    }
    /// Numbers beyond int64 mean "as many as there are", as does any other huge one.
    static std::optional<std::int64_t> whole_number(ValueView v) {
        if (const auto exact = v.to_int64())
            return std::max(*exact, -std::numeric_limits<std::int64_t>::max());
        return std::nullopt;
    }
    static Error bad_slice() {
        return {ErrorCode::BadValue,
                "$slice needs an integer, or [skip, count] with a positive count"};
    }
};

}  // namespace projection_tree

using projection_tree::ProjectionNode;
using projection_tree::ProjectionParse;

struct Projection::State {
    ProjectionNode root;
    bool inclusion = false;
    bool identity = false;

    void document(bson::Builder& b, bson::DocumentView document, const ProjectionNode& node) const;
    void value(bson::Builder& b, std::string_view key, ValueView value, const ProjectionNode& node,
               bool in_array) const;
    void elem_matches(bson::Builder& b, bson::DocumentView document) const;
};

void Projection::State::document(bson::Builder& b, bson::DocumentView document,
                                 const ProjectionNode& node) const {
    for (const bson::Element& e : document) {
        const ProjectionNode* child = node.child(e.key);
        if (child == nullptr) {
            if (!inclusion) b.add(e.key, e.value);
            continue;
        }
        switch (child->action) {
            case ProjectionNode::Action::Include:
                b.add(e.key, e.value);
                break;
            case ProjectionNode::Action::Exclude:
            case ProjectionNode::Action::ElemMatch:
                break;
            case ProjectionNode::Action::Slice:
                if (e.value.is(Type::Array)) {
                    child->slice.write(b, e.key, e.value.as_document());
                } else {
                    b.add(e.key, e.value);
                }
                break;
            case ProjectionNode::Action::Branch:
                value(b, e.key, e.value, *child, false);
                break;
        }
    }
}

/// A value on the way of longer paths.
void Projection::State::value(bson::Builder& b, std::string_view key, ValueView v,
                              const ProjectionNode& node, bool in_array) const {
    const auto add_as = [&](auto&& with_key, auto&& in_list) { in_array ? in_list() : with_key(); };
    if (v.is(Type::Document)) {
        add_as([&] { b.open(key); }, [&] { b.push_document(); });
        document(b, v.as_document(), node);
        b.close();
    } else if (v.is(Type::Array)) {
        add_as([&] { b.open_array(key); }, [&] { b.push_open_array(); });
        for (const bson::Element& e : v.as_document()) value(b, {}, e.value, node, true);
        b.close();
    } else if (!inclusion) {
        add_as([&] { b.add(key, v); }, [&] { b.push(v); });
    }
}

/// First matching elements come behind the other fields.
void Projection::State::elem_matches(bson::Builder& b, bson::DocumentView document) const {
    for (const auto& [name, node] : root.children) {
        if (node.action != ProjectionNode::Action::ElemMatch) continue;
        const auto array = document.find(name).get_array();
        if (!array) continue;
        for (const bson::Element& e : *array) {
            if (!node.elem_match->matches(bson::make("", bson::array(e.value)))) continue;
            b.add(name, bson::array(e.value));
            break;
        }
    }
}

Projection::Projection() {
    static const std::shared_ptr<const State> everything = [] {
        auto state = std::make_shared<State>();
        state->identity = true;
        return state;
    }();
    state_ = everything;
}

Result<Projection> Projection::parse(bson::DocumentView specification, ProjectionUse use) {
    if (specification.empty()) {
        if (use == ProjectionUse::Find) return Projection();
        return Error(ErrorCode::Location51272,
                     "Invalid $project :: caused by :: projection specification must have at least "
                     "one field");
    }
    ProjectionParse parse;
    parse.use = use;
    for (const bson::Element& e : specification) ANGELIA_TRY(parse.field(e.key, e.value));
    auto state = std::make_shared<State>();
    state->inclusion = parse.inclusion.value_or(parse.has_elem_match || parse.id.value_or(false));
    // Only $slice beside {_id: 1}: everything is shown.
    const bool only_slices =
        !parse.inclusion && !parse.has_elem_match && parse.root.children.size() > 1;
    if (only_slices) state->inclusion = false;
    state->root = std::move(parse.root);
    if (state->inclusion && !parse.id && state->root.child("_id") == nullptr) {
        state->root.children["_id"].action = ProjectionNode::Action::Include;
    }
    return Projection(std::move(state));
}

bson::Document Projection::apply(bson::DocumentView document) const {
    if (state_->identity) return bson::Document(document);
    bson::Builder b;
    state_->document(b, document, state_->root);
    state_->elem_matches(b, document);
    return b.take();
}

bool Projection::is_identity() const { return state_->identity; }

}  // namespace angelia::engine::query
