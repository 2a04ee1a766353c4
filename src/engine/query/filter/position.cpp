// Which array element a filter was met by: the meaning of `$` in update paths.
#include "engine/query/filter/node.h"
#include "engine/query/matcher.h"

namespace angelia::engine::query {
namespace {

using filter::GroupNode;
using filter::Node;
using filter::PathNode;
using filter::Test;
using Position = std::optional<std::uint32_t>;

bool element_passes(const Test& test, bson::ValueView element) {
    switch (test.kind()) {
        case Test::Kind::ElemMatchValue:
            return static_cast<const filter::ElemMatchValueTest&>(test).matches_element(element);
        case Test::Kind::ElemMatchFields:
            return static_cast<const filter::ElemMatchFieldsTest&>(test).matches_element(element);
        case Test::Kind::Size:
            return false;
        default:
            return test.matches_value(element);
    }
}

/// `rest`: what the predicate's path has below the array; nullptr when it ends there.
Position test_position(const Test& test, bson::DocumentView array, const FieldPath* rest) {
    if (test.kind() == Test::Kind::Not) return std::nullopt;
    if (test.kind() == Test::Kind::All) {
        Position last;
        for (const auto& child : static_cast<const filter::AllOfTest&>(test).children()) {
            if (const Position p = test_position(*child, array, rest)) last = p;
        }
        return last;
    }
    std::uint32_t position = 0;
    for (const bson::Element& e : array) {
        const bool passes = rest == nullptr ? element_passes(test, e.value)
                                            : e.value.is(bson::Type::Document) &&
                                                  test.matches_at(e.value.as_document(), *rest);
        if (passes) return position;
        ++position;
    }
    return std::nullopt;
}

Position node_position(const Node& node, bson::DocumentView document, const FieldPath& array_path,
                       bson::DocumentView array) {
    switch (node.kind()) {
        case Node::Kind::Path: {
            const auto& at = static_cast<const PathNode&>(node);
            if (!array_path.is_prefix_of(at.path())) return std::nullopt;
            if (array_path.size() == at.path().size())
                return test_position(at.test(), array, nullptr);
            const FieldPath rest = at.path().without_front(array_path.size());
            return test_position(at.test(), array, &rest);
        }
        case Node::Kind::And: {
            Position last;
            for (const auto& child : static_cast<const GroupNode&>(node).children()) {
                if (const Position p = node_position(*child, document, array_path, array)) last = p;
            }
            return last;
        }
        case Node::Kind::Or:
            for (const auto& child : static_cast<const GroupNode&>(node).children()) {
                if (!child->matches(document)) continue;
                if (const Position p = node_position(*child, document, array_path, array)) return p;
            }
            return std::nullopt;
        case Node::Kind::Nor:
        case Node::Kind::Constant:
            return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> Matcher::matched_position(bson::DocumentView document,
                                                       const FieldPath& array_path) const {
    const auto array = document.find_path(array_path.dotted()).get_array();
    if (!array) return std::nullopt;
    return node_position(root(), document, array_path, *array);
}

}  // namespace angelia::engine::query
