// $exists
#include "engine/query/filter/parse.h"

namespace angelia::engine::query::filter {

Result<TestPtr> parse_exists(const FieldOperator& op) {
    TestPtr exists = std::make_unique<ExistsTest>();
    if (op.operand.truthy()) return exists;
    return TestPtr(std::make_unique<NotTest>(std::move(exists)));
}

}  // namespace angelia::engine::query::filter
