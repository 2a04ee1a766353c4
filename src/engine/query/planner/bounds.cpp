#include "engine/query/planner/bounds.h"

#include "engine/query/key_encoding.h"

#include <angelia/bson/builder.h>

#include <algorithm>

namespace angelia::engine::query::planner {
namespace {

using bson::Type;
using bson::ValueView;
using filter::Node;
using filter::Test;

std::string encoded(ValueView value) {
    std::string key;
    append_key(key, value);
    return key;
}

Interval point(ValueView value) {
    std::string key = encoded(value);
    return {{key, true}, {key, true}, true};
}

ValueView bare(Type type) { return {type, reinterpret_cast<const std::uint8_t*>(""), 0}; }

/// All keys of the canonical type of `value`: they share the first byte.
Endpoint type_bracket(ValueView value) { return {encoded(value).substr(0, 1), true}; }

// Byte strings that order the ends. An upper end that is empty lies behind everything.
std::string lower_position(const Endpoint& e) {
    return e.inclusive ? e.prefix : after_prefix(e.prefix);
}
std::string upper_position(const Endpoint& e) {
    return e.inclusive ? after_prefix(e.prefix) : e.prefix;
}
bool upper_less(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty()) return !a.empty();
    return a < b;
}
bool is_empty_interval(const Interval& i) {
    const std::string upper = upper_position(i.upper);
    return !upper.empty() && upper <= lower_position(i.lower);
}

FieldBounds sorted_union(std::vector<Interval> intervals, bool may_be_missing) {
    std::stable_sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
        return lower_position(a.lower) < lower_position(b.lower);
    });
    FieldBounds result{{}, may_be_missing};
    for (Interval& i : intervals) {
        if (is_empty_interval(i)) continue;
        if (result.intervals.empty()) {
            result.intervals.push_back(std::move(i));
            continue;
        }
        Interval& last = result.intervals.back();
        const std::string last_end = upper_position(last.upper);
        const std::string begin = lower_position(i.lower);
        // Neighbours that only touch stay apart: points stay points.
        if (!last_end.empty() && last_end <= begin) {
            result.intervals.push_back(std::move(i));
            continue;
        }
        if (upper_less(last_end, upper_position(i.upper))) last.upper = std::move(i.upper);
        last.is_point = last.is_point && i.is_point && last.lower.prefix == last.upper.prefix;
    }
    return result;
}

FieldBounds equality_bounds(ValueView value) {
    if (value.is_null() || value.is(Type::Undefined)) {
        return {{point(bare(Type::Undefined)), point(bare(Type::Null))}, true};
    }
    if (value.is(Type::Array)) {
        // The array may be an element of the stored one, or be it: then its first element has a key
        // (undefined when there is none).
        const auto elements = value.as_document();
        const Interval first =
            elements.empty() ? point(bare(Type::Undefined)) : point(elements.begin()->value);
        return sorted_union({point(value), first}, false);
    }
    return {{point(value)}, false};
}

FieldBounds comparison_bounds(const filter::ComparisonTest& test) {
    const ValueView v = test.operand();
    const bool or_equal = test.kind() == Test::Kind::Lte || test.kind() == Test::Kind::Gte;
    if (test.kind() == Test::Kind::Eq) return equality_bounds(v);
    if (v.is_null()) return or_equal ? equality_bounds(v) : FieldBounds::nothing();
    if (v.is(Type::MinKey) || v.is(Type::MaxKey)) return FieldBounds::full(true);
    if (v.is(Type::Array))
        return FieldBounds::full(false);  // compares whole arrays, which have no key of their own
    const Endpoint edge{encoded(v), or_equal};
    const bool less = test.kind() == Test::Kind::Lt || test.kind() == Test::Kind::Lte;
    Interval interval =
        less ? Interval{type_bracket(v), edge, false} : Interval{edge, type_bracket(v), false};
    return sorted_union({std::move(interval)}, false);
}

FieldBounds bounds_of_test(const Test& test, bool multikey);

int roughness(const FieldBounds& b) {
    if (b.is_full()) return 1'000'000'000;
    if (b.all_points()) return static_cast<int>(b.intervals.size());
    int ends = 0;
    for (const Interval& i : b.intervals)
        ends += static_cast<int>(i.lower.prefix.size() <= 1) +
                static_cast<int>(i.upper.prefix.size() <= 1);
    return 100'000 + ends;
}

/// Several conditions that all hold.
FieldBounds combine_all(std::vector<FieldBounds> all, bool multikey) {
    if (all.empty()) return FieldBounds::full(true);
    FieldBounds result = std::move(all.front());
    if (result.intervals.empty()) return result;
    for (std::size_t i = 1; i < all.size(); ++i) {
        FieldBounds& b = all[i];
        if (!multikey) {
            result = intersect(result, b);
        } else if (b.intervals.empty() || roughness(b) < roughness(result) ||
                   (b.is_full() && result.is_full() && !b.may_be_missing)) {
            result = std::move(b);
            if (result.intervals.empty()) return result;
        }
    }
    return result;
}

template <class Children>
FieldBounds all_tests(const Children& children, bool multikey) {
    std::vector<FieldBounds> all;
    for (const auto& child : children) all.push_back(bounds_of_test(*child, multikey));
    return combine_all(std::move(all), multikey);
}

/// Tests that one array element passes by itself; elements are keys, so the conditions do
/// intersect.
FieldBounds element_bounds(const filter::ElemMatchValueTest& test) {
    FieldBounds result = FieldBounds::full(false);
    for (const auto& child : test.children()) {
        const bool looks_inside = child->whole_arrays() || child->kind() == Test::Kind::All;
        if (!looks_inside) result = intersect(result, bounds_of_test(*child, false));
    }
    result.may_be_missing = false;
    return result;
}

FieldBounds bounds_of_test(const Test& test, bool multikey) {
    switch (test.kind()) {
        case Test::Kind::Eq:
        case Test::Kind::Lt:
        case Test::Kind::Lte:
        case Test::Kind::Gt:
        case Test::Kind::Gte:
            return comparison_bounds(static_cast<const filter::ComparisonTest&>(test));
        case Test::Kind::In: {
            std::vector<Interval> intervals;
            bool may_be_missing = false;
            for (const ValueView v : static_cast<const filter::InTest&>(test).values()) {
                FieldBounds one = equality_bounds(v);
                may_be_missing = may_be_missing || one.may_be_missing;
                std::move(one.intervals.begin(), one.intervals.end(),
                          std::back_inserter(intervals));
            }
            return sorted_union(std::move(intervals), may_be_missing);
        }
        case Test::Kind::Mod: {
            const bson::Value zero = bson::value(std::int32_t{0});
            return {{{type_bracket(zero.view()), type_bracket(zero.view()), false}}, false};
        }
        case Test::Kind::Exists:
        case Test::Kind::Type:
        case Test::Kind::Size:
        case Test::Kind::ElemMatchFields:
            return FieldBounds::full(false);
        case Test::Kind::ElemMatchValue:
            return element_bounds(static_cast<const filter::ElemMatchValueTest&>(test));
        case Test::Kind::Not: {
            const bool absent =
                static_cast<const filter::NotTest&>(test).child().kind() == Test::Kind::Exists;
            if (absent) return {{point(bare(Type::Null))}, true};
            return FieldBounds::full(true);
        }
        case Test::Kind::All:
            return all_tests(static_cast<const filter::AllOfTest&>(test).children(), multikey);
        case Test::Kind::Never:
            return FieldBounds::nothing();
    }
    return FieldBounds::full(true);
}

bool has_index_part(const FieldPath& path) {
    return std::any_of(path.parts().begin(), path.parts().end(),
                       [](const std::string& p) { return array_index_of(p).has_value(); });
}

/// Could the node say anything about `path`?
bool concerns(const Node& node, const FieldPath& path) {
    if (node.kind() != Node::Kind::Path) return true;
    const auto& at = static_cast<const filter::PathNode&>(node);
    return at.path() == path ||
           (at.test().kind() == Test::Kind::ElemMatchFields && at.path().is_prefix_of(path));
}

FieldBounds path_bounds(const filter::PathNode& node, const FieldPath& path, bool multikey) {
    const Test& test = node.test();
    if (node.path() == path) return bounds_of_test(test, multikey);
    if (test.kind() != Test::Kind::ElemMatchFields || !node.path().is_prefix_of(path))
        return FieldBounds::full(true);
    // {a: {$elemMatch: {b: ...}}} restricts "a.b". Numbers could name elements of an array in the
    // array: those are not followed.
    const FieldPath rest = path.without_front(node.path().size());
    if (has_index_part(rest)) return FieldBounds::full(true);
    return bounds_of(static_cast<const filter::ElemMatchFieldsTest&>(test).condition(), rest,
                     multikey);
}

FieldBounds node_bounds(const Node& node, const FieldPath& path, bool multikey) {
    switch (node.kind()) {
        case Node::Kind::Path:
            return path_bounds(static_cast<const filter::PathNode&>(node), path, multikey);
        case Node::Kind::Constant:
            return static_cast<const filter::ConstantNode&>(node).value() ? FieldBounds::full(true)
                                                                          : FieldBounds::nothing();
        case Node::Kind::Nor:
            return FieldBounds::full(true);
        case Node::Kind::And: {
            std::vector<FieldBounds> all;
            for (const auto& child : static_cast<const filter::GroupNode&>(node).children()) {
                if (concerns(*child, path)) all.push_back(bounds_of(*child, path, multikey));
            }
            return combine_all(std::move(all), multikey);
        }
        case Node::Kind::Or: {
            FieldBounds any = FieldBounds::nothing();
            for (const auto& child : static_cast<const filter::GroupNode&>(node).children()) {
                any = unite(std::move(any), bounds_of(*child, path, multikey));
            }
            return any;
        }
    }
    return FieldBounds::full(true);
}

}  // namespace

std::string after_prefix(std::string prefix) {
    while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
    if (!prefix.empty())
        prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
    return prefix;
}

FieldBounds FieldBounds::full(bool may_be_missing) { return {{Interval{}}, may_be_missing}; }

bool FieldBounds::is_full() const {
    return intervals.size() == 1 && intervals[0].lower.prefix.empty() &&
           intervals[0].upper.prefix.empty();
}

bool FieldBounds::all_points() const {
    return std::all_of(intervals.begin(), intervals.end(),
                       [](const Interval& i) { return i.is_point; });
}

FieldBounds intersect(const FieldBounds& a, const FieldBounds& b) {
    FieldBounds result{{}, a.may_be_missing && b.may_be_missing};
    auto left = a.intervals.begin();
    auto right = b.intervals.begin();
    while (left != a.intervals.end() && right != b.intervals.end()) {
        const bool later_start = lower_position(left->lower) < lower_position(right->lower);
        const bool left_ends_first =
            upper_less(upper_position(left->upper), upper_position(right->upper));
        Interval both{later_start ? right->lower : left->lower,
                      left_ends_first ? left->upper : right->upper, false};
        if (!is_empty_interval(both) && left->is_point) both = *left;
        if (!is_empty_interval(both) && right->is_point) both = *right;
        if (!is_empty_interval(both)) result.intervals.push_back(std::move(both));
        if (left_ends_first) {
            ++left;
        } else {
            ++right;
        }
    }
    return result;
}

FieldBounds unite(FieldBounds a, const FieldBounds& b) {
    a.intervals.insert(a.intervals.end(), b.intervals.begin(), b.intervals.end());
    return sorted_union(std::move(a.intervals), a.may_be_missing || b.may_be_missing);
}

FieldBounds bounds_of(const Node& node, const FieldPath& path, bool multikey) {
    FieldBounds bounds = node_bounds(node, path, multikey);
    // A number in a path may be an index or a name; where one reading finds nothing and the other
    // does, the keys show only the latter.
    if (bounds.may_be_missing && has_index_part(path)) return FieldBounds::full(true);
    return bounds;
}

}  // namespace angelia::engine::query::planner
