// Reading filters. One table of operators on fields (parse.cpp: kFieldOperators) and one of
// operators at the top (kTopOperators); each operator or family has a file here. How to add one:
// docs/how_to_add/filter_operator.md.
#pragma once

#include "engine/query/filter/node.h"

#include <angelia/base/result.h>

namespace angelia::engine::query::filter {

/// Parses a whole filter; appends what it demands. `depth` guards the stack.
Result<NodePtr> parse_filter(bson::DocumentView filter, int depth);
/// Parses {$gt: 1, $lt: 5}, the operators of one field.
Result<std::vector<TestPtr>> parse_field_operators(bson::DocumentView operators, int depth);
/// Equality with `operand`, as `{a: operand}` and `$eq` mean it. Errors: BadValue for undefined.
Result<TestPtr> parse_equality(bson::ValueView operand);

/// True for a document whose first key starts with `$` (and is no part of a DBRef): operators, not
/// a value.
bool is_operator_document(bson::ValueView value);
/// The same for operators of a field only: a document that starts with $and, $or, ... is a filter
/// on fields.
bool is_field_operator_document(bson::ValueView value);

inline Error bad_value(std::string message) { return {ErrorCode::BadValue, std::move(message)}; }

/// What a parser of a field operator gets. `siblings`: the document the operator stands in.
struct FieldOperator {
    std::string_view name;
    bson::ValueView operand;
    bson::DocumentView siblings;
    int depth;
};
using ParseFieldOperator = Result<TestPtr> (*)(const FieldOperator&);

// comparison.cpp
Result<TestPtr> parse_eq(const FieldOperator& op);
Result<TestPtr> parse_ne(const FieldOperator& op);
Result<TestPtr> parse_lt(const FieldOperator& op);
Result<TestPtr> parse_lte(const FieldOperator& op);
Result<TestPtr> parse_gt(const FieldOperator& op);
Result<TestPtr> parse_gte(const FieldOperator& op);
// in.cpp
Result<TestPtr> parse_in(const FieldOperator& op);
Result<TestPtr> parse_nin(const FieldOperator& op);
// one file each
Result<TestPtr> parse_exists(const FieldOperator& op);
Result<TestPtr> parse_type(const FieldOperator& op);
Result<TestPtr> parse_size(const FieldOperator& op);
Result<TestPtr> parse_mod(const FieldOperator& op);
Result<TestPtr> parse_elem_match(const FieldOperator& op);
Result<TestPtr> parse_all(const FieldOperator& op);
Result<TestPtr> parse_not(const FieldOperator& op);

struct TopOperator {
    std::string_view name;
    bson::ValueView operand;
    int depth;
};
using ParseTopOperator = Result<NodePtr> (*)(const TopOperator&);

// logical.cpp
Result<NodePtr> parse_and(const TopOperator& op);
Result<NodePtr> parse_or(const TopOperator& op);
Result<NodePtr> parse_nor(const TopOperator& op);
Result<NodePtr> parse_comment(const TopOperator& op);
Result<NodePtr> parse_always_true(const TopOperator& op);
Result<NodePtr> parse_always_false(const TopOperator& op);

}  // namespace angelia::engine::query::filter
