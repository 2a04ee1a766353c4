#include "engine/query/matcher.h"

#include "engine/query/filter/parse.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/compare.h>

#include <fmt/format.h>

namespace angelia::engine::query {

using bson::Type;
using bson::ValueView;
using filter::GroupNode;
using filter::Node;
using filter::PathNode;
using filter::Test;

struct Matcher::State {
    bson::Document source;  ///< the tree holds views into it
    filter::NodePtr root;
    bool always_true = false;
    std::optional<ValueView> id;
};

namespace {

bool node_is_true(const Node& node) {
    if (node.kind() == Node::Kind::Constant)
        return static_cast<const filter::ConstantNode&>(node).value();
    if (node.kind() != Node::Kind::And) return false;
    for (const auto& child : static_cast<const GroupNode&>(node).children()) {
        if (!node_is_true(*child)) return false;
    }
    return true;
}

/// One value that the test demands, for upserts.
std::optional<ValueView> demanded_value(const Test& test) {
    switch (test.kind()) {
        case Test::Kind::Eq:
            return static_cast<const filter::ComparisonTest&>(test).operand();
        case Test::Kind::In: {
            const auto& values = static_cast<const filter::InTest&>(test).values();
            if (values.size() == 1) return values.front();
            return std::nullopt;
        }
        case Test::Kind::All: {
            const auto& children = static_cast<const filter::AllOfTest&>(test).children();
            if (children.size() == 1) return demanded_value(*children.front());
            return std::nullopt;
        }
        default:
            return std::nullopt;
    }
}

/// Calls `found(path, value)` for every equality that holds for all matches of `node`.
template <class Found>
Result<void> each_equality(const Node& node, const Found& found) {
    if (node.kind() == Node::Kind::Path) {
        const auto& path_node = static_cast<const PathNode&>(node);
        if (const auto value = demanded_value(path_node.test()))
            return found(path_node.path(), *value);
        return {};
    }
    const bool group = node.kind() == Node::Kind::And || node.kind() == Node::Kind::Or;
    if (!group) return {};
    const auto& children = static_cast<const GroupNode&>(node).children();
    if (node.kind() == Node::Kind::Or && children.size() != 1) return {};
    for (const auto& child : children) ANGELIA_TRY(each_equality(*child, found));
    return {};
}

std::optional<ValueView> find_id_equality(const Node& root) {
    std::optional<ValueView> id;
    const auto note = [&](const FieldPath& path, ValueView value) -> Result<void> {
        const bool usable = !value.is(Type::Array) && !value.is(Type::Regex) && !value.is_null() &&
                            !value.is(Type::Undefined);
        if (path.dotted() == "_id" && usable) id = value;
        return {};
    };
    (void)each_equality(root, note).has_value();  // `note` never fails
    return id;
}

}  // namespace

Matcher::Matcher() {
    static const std::shared_ptr<const State> everything = [] {
        auto state = std::make_shared<State>();
        state->root = std::make_unique<filter::ConstantNode>(true);
        state->always_true = true;
        return state;
    }();
    state_ = everything;
}

Result<Matcher> Matcher::parse(bson::DocumentView filter) {
    if (filter.empty()) return Matcher();
    auto state = std::make_shared<State>();
    state->source = bson::Document(filter);
    ANGELIA_TRY_ASSIGN(state->root, filter::parse_filter(state->source.view(), 0));
    state->always_true = node_is_true(*state->root);
    state->id = find_id_equality(*state->root);
    return Matcher(std::move(state));
}

bool Matcher::matches(bson::DocumentView document) const { return state_->root->matches(document); }
bool Matcher::always_true() const { return state_->always_true; }
std::optional<ValueView> Matcher::id_equality() const { return state_->id; }
const Node& Matcher::root() const { return *state_->root; }
bson::DocumentView Matcher::source() const { return state_->source.view(); }

Result<std::vector<RequiredEquality>> Matcher::required_equalities() const {
    std::vector<RequiredEquality> result;
    std::vector<FieldPath> paths;
    const auto add = [&](const FieldPath& path, ValueView value) -> Result<void> {
        for (const FieldPath& other : paths) {
            if (!path.is_prefix_of(other) && !other.is_prefix_of(path)) continue;
            return Error(
                ErrorCode::NotSingleValueField,
                path == other
                    ? fmt::format("cannot infer query fields to set, path '{}' is matched twice",
                                  path.dotted())
                    : fmt::format(
                          "cannot infer query fields to set, both paths '{}' and '{}' are matched",
                          path.dotted(), other.dotted()));
        }
        paths.push_back(path);
        result.push_back({path.dotted(), value});
        return {};
    };
    ANGELIA_TRY(each_equality(*state_->root, add));
    return result;
}

// ---- ValueMatcher

Result<ValueMatcher> ValueMatcher::parse(ValueView condition) {
    ValueMatcher m;
    if (filter::is_field_operator_document(condition)) {
        // The field with the empty name stands for the value itself.
        m.form_ = Form::Operators;
        ANGELIA_TRY_ASSIGN(m.matcher_, Matcher::parse(bson::make("", condition)));
    } else if (const auto fields = condition.get_document()) {
        m.form_ = Form::Fields;
        ANGELIA_TRY_ASSIGN(m.matcher_, Matcher::parse(*fields));
    } else {
        if (condition.is(Type::Undefined))
            return Error(ErrorCode::BadValue, "cannot compare to undefined");
        m.operand_ = bson::Value(condition);
    }
    return m;
}

bool ValueMatcher::matches(ValueView value) const {
    switch (form_) {
        case Form::Operators:
            return matcher_.matches(bson::make("", value));
        case Form::Fields:
            return value.is(Type::Document) && matcher_.matches(value.as_document());
        case Form::Equality:
            return bson::equal(value, operand_.view());
    }
    return false;
}

}  // namespace angelia::engine::query
