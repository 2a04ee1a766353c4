// Whether one filter's matches are all matches of another: may a partial index serve a query?
#include "engine/query/filter/node.h"
#include "engine/query/planner.h"

#include <angelia/bson/compare.h>

#include <algorithm>
#include <cmath>

namespace angelia::engine::query {
namespace {

using bson::Type;
using bson::ValueView;
using filter::ComparisonTest;
using filter::GroupNode;
using filter::Node;
using filter::PathNode;
using filter::Test;

/// A value that says nothing special in comparisons: no null, array, regex, MinKey, MaxKey, NaN.
bool is_plain(ValueView v) {
    switch (v.type()) {
        case Type::Null:
        case Type::Undefined:
        case Type::Missing:
        case Type::Array:
        case Type::Regex:
        case Type::MinKey:
        case Type::MaxKey:
            return false;
        default:
            return !v.is_number() || !std::isnan(*v.to_double());
    }
}

bool is_comparison(Test::Kind kind) {
    return kind == Test::Kind::Eq || kind == Test::Kind::Lt || kind == Test::Kind::Lte ||
           kind == Test::Kind::Gt || kind == Test::Kind::Gte;
}

/// Values one of which a match holds under the query's test; empty when unknown.
std::vector<ValueView> possible_values(const Test& test) {
    if (test.kind() == Test::Kind::Eq) return {static_cast<const ComparisonTest&>(test).operand()};
    if (test.kind() == Test::Kind::In) return static_cast<const filter::InTest&>(test).values();
    return {};
}

bool range_implies(const ComparisonTest& query, const ComparisonTest& condition) {
    const ValueView w = query.operand();
    const ValueView v = condition.operand();
    if (!is_plain(w) || !is_plain(v) ||
        bson::canonical_order(w.type()) != bson::canonical_order(v.type()))
        return false;
    const int order = bson::compare(w, v);
    const auto is = [](const ComparisonTest& t, Test::Kind kind) { return t.kind() == kind; };
    const bool query_up = is(query, Test::Kind::Gt) || is(query, Test::Kind::Gte);
    const bool query_down = is(query, Test::Kind::Lt) || is(query, Test::Kind::Lte);
    if (is(condition, Test::Kind::Gte)) return query_up && order >= 0;
    if (is(condition, Test::Kind::Lte)) return query_down && order <= 0;
    if (is(condition, Test::Kind::Gt))
        return query_up && (order > 0 || (order == 0 && is(query, Test::Kind::Gt)));
    if (is(condition, Test::Kind::Lt))
        return query_down && (order < 0 || (order == 0 && is(query, Test::Kind::Lt)));
    return false;
}

bool test_implies(const Test& query, const Test& condition) {
    if (condition.kind() == Test::Kind::Exists) {
        if (query.kind() == Test::Kind::Exists || query.kind() == Test::Kind::Type ||
            query.kind() == Test::Kind::Size || query.kind() == Test::Kind::Mod ||
            query.kind() == Test::Kind::ElemMatchValue ||
            query.kind() == Test::Kind::ElemMatchFields) {
            return true;
        }
        if (query.kind() != Test::Kind::Eq && is_comparison(query.kind()))
            return is_plain(static_cast<const ComparisonTest&>(query).operand());
    }
    // Some value that passes the query is one of these, and each of them passes the condition.
    const bool positive = is_comparison(condition.kind()) || condition.kind() == Test::Kind::In ||
                          condition.kind() == Test::Kind::Exists ||
                          condition.kind() == Test::Kind::Type;
    const auto values = possible_values(query);
    if (positive && !values.empty()) {
        // null also stands for a missing field, and an array for its elements: only the same
        // condition covers those.
        return std::all_of(values.begin(), values.end(), [&](ValueView v) {
            if (is_plain(v)) return condition.matches_value(v);
            const auto same = possible_values(condition);
            return std::any_of(same.begin(), same.end(),
                               [&](ValueView c) { return bson::equal(c, v); });
        });
    }
    if (is_comparison(query.kind()) && is_comparison(condition.kind())) {
        return range_implies(static_cast<const ComparisonTest&>(query),
                             static_cast<const ComparisonTest&>(condition));
    }
    return false;
}

bool node_implies(const Node& query, const PathNode& condition) {
    if (query.kind() == Node::Kind::Path) {
        const auto& q = static_cast<const PathNode&>(query);
        return q.path() == condition.path() && test_implies(q.test(), condition.test());
    }
    if (query.kind() != Node::Kind::And && query.kind() != Node::Kind::Or) return false;
    const auto& children = static_cast<const GroupNode&>(query).children();
    const auto covers = [&](const filter::NodePtr& child) {
        return node_implies(*child, condition);
    };
    if (query.kind() == Node::Kind::And)
        return std::any_of(children.begin(), children.end(), covers);
    return !children.empty() && std::all_of(children.begin(), children.end(), covers);
}

bool tree_implies(const Node& query, const Node& condition) {
    switch (condition.kind()) {
        case Node::Kind::Path:
            return node_implies(query, static_cast<const PathNode&>(condition));
        case Node::Kind::Constant:
            return static_cast<const filter::ConstantNode&>(condition).value();
        case Node::Kind::And: {
            const auto& children = static_cast<const GroupNode&>(condition).children();
            return std::all_of(children.begin(), children.end(),
                               [&](const auto& c) { return tree_implies(query, *c); });
        }
        case Node::Kind::Or: {
            const auto& children = static_cast<const GroupNode&>(condition).children();
            return std::any_of(children.begin(), children.end(),
                               [&](const auto& c) { return tree_implies(query, *c); });
        }
        case Node::Kind::Nor:
            return false;
    }
    return false;
}

}  // namespace

bool implies(const Matcher& query, const Matcher& condition) {
    return condition.always_true() || query.source().identical(condition.source()) ||
           tree_implies(query.root(), condition.root());
}

}  // namespace angelia::engine::query
