// $and $or $nor, and the small ones at the top: $comment $alwaysTrue $alwaysFalse
#include "engine/query/filter/parse.h"

#include <fmt/format.h>

namespace angelia::engine::query::filter {
namespace {

Result<NodePtr> parse_group(const TopOperator& op, Node::Kind kind) {
    const auto list = op.operand.get_array();
    if (!list) return bad_value(fmt::format("{} must be an array", op.name));
    if (list->empty()) return bad_value("$and/$or/$nor must be a nonempty array");
    std::vector<NodePtr> children;
    for (const bson::Element& e : *list) {
        const auto filter = e.value.get_document();
        if (!filter) return bad_value("$or/$and/$nor entries need to be full objects");
        ANGELIA_TRY_ASSIGN(NodePtr child, parse_filter(*filter, op.depth + 1));
        children.push_back(std::move(child));
    }
    return NodePtr(std::make_unique<GroupNode>(kind, std::move(children)));
}

Result<NodePtr> parse_constant(const TopOperator& op, bool value) {
    if (op.operand.to_int64() != 1)
        return Error(ErrorCode::FailedToParse,
                     fmt::format("{} must be an integer value of 1", op.name));
    return NodePtr(std::make_unique<ConstantNode>(value));
}

}  // namespace

Result<NodePtr> parse_and(const TopOperator& op) { return parse_group(op, Node::Kind::And); }
Result<NodePtr> parse_or(const TopOperator& op) { return parse_group(op, Node::Kind::Or); }
Result<NodePtr> parse_nor(const TopOperator& op) { return parse_group(op, Node::Kind::Nor); }
Result<NodePtr> parse_comment(const TopOperator&) {
    return NodePtr(std::make_unique<ConstantNode>(true));
}
Result<NodePtr> parse_always_true(const TopOperator& op) { return parse_constant(op, true); }
Result<NodePtr> parse_always_false(const TopOperator& op) { return parse_constant(op, false); }

}  // namespace angelia::engine::query::filter
