// $rename: unset at the source, set at the target.
#include "engine/query/update/operator.h"
#include "engine/query/update/positional.h"

#include <fmt/format.h>

namespace angelia::engine::query::update {
namespace {

class RenameOperator final : public Operator {
  public:
    explicit RenameOperator(FieldPath source) : source_(std::move(source)) {}
    const FieldPath* second_path() const override { return &source_; }
    bool keeps_depth() const override { return false; }

    Result<void> apply(Target& target) const override {
        ANGELIA_TRY(refuse_arrays(target, source_, "source"));
        const bson::ValueView moved =
            Target(target.tree(), target.log(), source_, target.context()).value();
        if (moved.is_missing()) return {};
        ANGELIA_TRY(refuse_arrays(target, target.path(), "destination"));
        ANGELIA_TRY(target.set(moved));
        Target(target.tree(), target.log(), source_, target.context()).unset();
        return {};
    }

  private:
    static Result<void> refuse_arrays(Target& target, const FieldPath& path,
                                      std::string_view which) {
        EditNode* node = &target.tree().root();
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            node = node->child(path[i]);
            if (node == nullptr) return {};
            if (node->type != bson::Type::Array) continue;
            return bad_operand(
                fmt::format("The {} field cannot be an array element, '{}' in doc with {} has an "
                            "array field called '{}'",
                            which, path.dotted(), target.id_text(), path[i]));
        }
        return {};
    }

    FieldPath source_;
};

}  // namespace

Result<Operation> parse_rename(const OperatorArguments& arguments) {
    const auto to = arguments.operand.get_string();
    if (!to)
        return bad_operand(fmt::format("The 'to' field for $rename must be a string: {}",
                                       element_text(arguments.path, arguments.operand)));
    if (to->find('\0') != std::string_view::npos)
        return bad_operand("The 'to' field for $rename cannot contain an embedded null byte");
    ANGELIA_TRY_ASSIGN(Operation source,
                       make_operation(arguments.path, nullptr));  // checks the path
    ANGELIA_TRY_ASSIGN(Operation operation,
                       make_operation(*to, std::make_unique<RenameOperator>(source.path)));
    if (is_positional(source.path))
        return bad_operand(fmt::format("The source field for $rename may not be dynamic: {}",
                                       source.path.dotted()));
    if (is_positional(operation.path)) {
        return bad_operand(fmt::format("The destination field for $rename may not be dynamic: {}",
                                       operation.path.dotted()));
    }
    if (source.path == operation.path) {
        return bad_operand(fmt::format("The source and target field for $rename must differ: {}",
                                       element_text(arguments.path, arguments.operand)));
    }
    if (source.path.is_prefix_of(operation.path) || operation.path.is_prefix_of(source.path)) {
        return bad_operand(
            fmt::format("The source and target field for $rename must not be on the same path: {}",
                        element_text(arguments.path, arguments.operand)));
    }
    return operation;
}

}  // namespace angelia::engine::query::update
