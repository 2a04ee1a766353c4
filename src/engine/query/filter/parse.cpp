// The tables of operators, and the shape of a filter.
#include "engine/query/filter/parse.h"

#include <fmt/format.h>

namespace angelia::engine::query::filter {
namespace {

using bson::Type;
using bson::ValueView;

constexpr int kFilterDepthMax = 200;  // as deep as a document may be

struct FieldOperatorEntry {
    std::string_view name;
    ParseFieldOperator parse;
};
constexpr FieldOperatorEntry kFieldOperators[] = {
    {"$all", parse_all},   {"$elemMatch", parse_elem_match},
    {"$eq", parse_eq},     {"$exists", parse_exists},
    {"$gt", parse_gt},     {"$gte", parse_gte},
    {"$in", parse_in},     {"$lt", parse_lt},
    {"$lte", parse_lte},   {"$mod", parse_mod},
    {"$ne", parse_ne},     {"$nin", parse_nin},
    {"$not", parse_not},   {"$size", parse_size},
    {"$type", parse_type},
};

struct TopOperatorEntry {
    std::string_view name;
    ParseTopOperator parse;
};
constexpr TopOperatorEntry kTopOperators[] = {
    {"$alwaysFalse", parse_always_false},
    {"$alwaysTrue", parse_always_true},
    {"$and", parse_and},
    {"$comment", parse_comment},
    {"$nor", parse_nor},
    {"$or", parse_or},
};

Result<void> check_depth(int depth) {
    if (depth <= kFilterDepthMax) return {};
    return Error(ErrorCode::BadValue,
                 fmt::format("exceeded maximum query tree depth of {}", kFilterDepthMax));
}

Result<void> parse_field(const bson::Element& e, int depth, std::vector<NodePtr>& nodes) {
    ANGELIA_TRY_ASSIGN(FieldPath path, FieldPath::parse(e.key));
    if (!is_operator_document(e.value)) {
        ANGELIA_TRY_ASSIGN(TestPtr test, parse_equality(e.value));
        nodes.push_back(std::make_unique<PathNode>(std::move(path), std::move(test)));
        return {};
    }
    ANGELIA_TRY_ASSIGN(auto tests, parse_field_operators(e.value.as_document(), depth + 1));
    for (TestPtr& test : tests) nodes.push_back(std::make_unique<PathNode>(path, std::move(test)));
    return {};
}

}  // namespace

bool is_operator_document(ValueView value) {
    const auto document = value.get_document();
    if (!document || document->empty()) return false;
    const std::string_view first = document->begin()->key;
    if (first.empty() || first[0] != '$') return false;
    return first != "$ref" && first != "$id" && first != "$db";  // a DBRef is a value
}

bool is_field_operator_document(ValueView value) {
    if (!is_operator_document(value)) return false;
    const std::string_view first = value.as_document().begin()->key;
    for (const TopOperatorEntry& entry : kTopOperators) {
        if (entry.name == first) return false;
    }
    return first != "$expr" && first != "$where" && first != "$text" && first != "$jsonSchema";
}

Result<std::vector<TestPtr>> parse_field_operators(bson::DocumentView operators, int depth) {
    ANGELIA_TRY(check_depth(depth));
    std::vector<TestPtr> tests;
    for (const bson::Element& e : operators) {
        const FieldOperatorEntry* entry = nullptr;
        for (const FieldOperatorEntry& candidate : kFieldOperators) {
            if (candidate.name == e.key) entry = &candidate;
        }
        if (entry == nullptr) return bad_value(fmt::format("unknown operator: {}", e.key));
        ANGELIA_TRY_ASSIGN(TestPtr test, entry->parse({e.key, e.value, operators, depth}));
        tests.push_back(std::move(test));
    }
    return tests;
}

Result<NodePtr> parse_filter(bson::DocumentView filter, int depth) {
    ANGELIA_TRY(check_depth(depth));
    std::vector<NodePtr> nodes;
    for (const bson::Element& e : filter) {
        if (e.key.empty() || e.key[0] != '$' || e.key == "$ref" || e.key == "$id" ||
            e.key == "$db") {
            ANGELIA_TRY(parse_field(e, depth, nodes));
            continue;
        }
        const TopOperatorEntry* entry = nullptr;
        for (const TopOperatorEntry& candidate : kTopOperators) {
            if (candidate.name == e.key) entry = &candidate;
        }
        if (entry == nullptr) {
            return bad_value(
                fmt::format("unknown top level operator: {}. If you have a field name that starts "
                            "with a '$' symbol, "
                            "consider using $getField or $setField.",
                            e.key));
        }
        ANGELIA_TRY_ASSIGN(NodePtr node, entry->parse({e.key, e.value, depth}));
        nodes.push_back(std::move(node));
    }
    if (nodes.size() == 1) return std::move(nodes.front());
    return NodePtr(std::make_unique<GroupNode>(Node::Kind::And, std::move(nodes)));
}

}  // namespace angelia::engine::query::filter
