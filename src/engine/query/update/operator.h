// What an update operator is. One operator per file, one table in table.cpp. How to add one:
// docs/how_to_add/update_operator.md.
#pragma once

#include "engine/query/update/target.h"

#include <memory>
#include <string_view>

namespace angelia::engine::query::update {

/// One operator on one field with its operand. Immutable after parse; may keep views into the
/// update's bytes.
class Operator {
  public:
    virtual ~Operator() = default;
    virtual Result<void> apply(Target& target) const = 0;
    /// A second path that the operator touches ($rename: its source), or nullptr.
    virtual const FieldPath* second_path() const { return nullptr; }
    /// False when the operator moves values of the document to another depth ($rename).
    virtual bool keeps_depth() const { return true; }
};
using OperatorPtr = std::unique_ptr<const Operator>;

struct Operation {
    FieldPath path;
    OperatorPtr action;
    bool only_on_insert = false;
};

/// `{<name>: {<path>: <operand>}}`.
struct OperatorArguments {
    std::string_view name;
    std::string_view path;
    bson::ValueView operand;
};
using ParseOperator = Result<Operation> (*)(const OperatorArguments&);

struct OperatorEntry {
    std::string_view name;
    ParseOperator parse;
};
/// The entry of an operator, or nullptr.
const OperatorEntry* find_operator(std::string_view name);

/// Checks the path (EmptyFieldName, DollarPrefixedFieldName) and makes the operation.
Result<Operation> make_operation(std::string_view path, OperatorPtr action);
inline Error bad_operand(std::string message) { return {ErrorCode::BadValue, std::move(message)}; }

Result<Operation> parse_add_to_set(const OperatorArguments& arguments);
Result<Operation> parse_bit(const OperatorArguments& arguments);
Result<Operation> parse_current_date(const OperatorArguments& arguments);
Result<Operation> parse_inc(const OperatorArguments& arguments);
Result<Operation> parse_max(const OperatorArguments& arguments);
Result<Operation> parse_min(const OperatorArguments& arguments);
Result<Operation> parse_mul(const OperatorArguments& arguments);
Result<Operation> parse_pop(const OperatorArguments& arguments);
Result<Operation> parse_pull(const OperatorArguments& arguments);
Result<Operation> parse_pull_all(const OperatorArguments& arguments);
Result<Operation> parse_push(const OperatorArguments& arguments);
Result<Operation> parse_rename(const OperatorArguments& arguments);
Result<Operation> parse_set(const OperatorArguments& arguments);
Result<Operation> parse_set_on_insert(const OperatorArguments& arguments);
Result<Operation> parse_unset(const OperatorArguments& arguments);

}  // namespace angelia::engine::query::update
