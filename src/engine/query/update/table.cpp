// The one table of update operators.
#include "engine/query/update/operator.h"
#include "engine/query/update/positional.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query::update {
namespace {

constexpr OperatorEntry kOperators[] = {
    {"$addToSet", parse_add_to_set},
    {"$bit", parse_bit},
    {"$currentDate", parse_current_date},
    {"$inc", parse_inc},
    {"$max", parse_max},
    {"$min", parse_min},
    {"$mul", parse_mul},
    {"$pop", parse_pop},
    {"$pull", parse_pull},
    {"$pullAll", parse_pull_all},
    {"$push", parse_push},
    {"$rename", parse_rename},
    {"$set", parse_set},
    {"$setOnInsert", parse_set_on_insert},
    {"$unset", parse_unset},
};

}  // namespace

const OperatorEntry* find_operator(std::string_view name) {
    for (const OperatorEntry& entry : kOperators) {
        if (entry.name == name) return &entry;
    }
    return nullptr;
}

Result<Operation> make_operation(std::string_view path, OperatorPtr action) {
    if (path.empty()) return Error(ErrorCode::EmptyFieldName, "An empty update path is not valid.");
    ANGELIA_TRY_ASSIGN(FieldPath parsed, FieldPath::parse(path));
    Operation operation{std::move(parsed), std::move(action), false};
    for (const std::string& part : operation.path.parts()) {
        if (part.empty()) {
            return Error(
                ErrorCode::EmptyFieldName,
                fmt::format(
                    "The update path '{}' contains an empty field name, which is not allowed.",
                    path));
        }
        if (part[0] != '$') continue;
        if (is_positional_part(part)) {
            if (&part == &operation.path.front()) {
                return bad_operand(fmt::format(
                    "Cannot have positional (i.e. '$') element in the first position in path '{}'",
                    path));
            }
            continue;
        }
        return Error(
            ErrorCode::DollarPrefixedFieldName,
            fmt::format("The dollar ($) prefixed field '{}' in '{}' is not valid for storage.",
                        part, path));
    }
    if (std::count(operation.path.parts().begin(), operation.path.parts().end(), "$") > 1) {
        return bad_operand(
            fmt::format("Too many positional (i.e. '$') elements found in path '{}'", path));
    }
    return operation;
}

}  // namespace angelia::engine::query::update
