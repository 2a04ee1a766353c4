// The objects by which Extended JSON spells types that JSON has not: {"$oid": "…"} and its like.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>

#include <optional>
#include <string_view>

namespace angelia::bson {

/// Reads `object` as such a wrapper; inner wrappers have become values already. Nothing when it is
/// an ordinary document, which includes every unknown name with a dollar ($set, $in, $regex as an
/// operator). Errors: FailedToParse when a name that belongs to Extended JSON comes with the wrong
/// value or with other fields.
Result<std::optional<Value>> read_json_wrapper(DocumentView object);

}  // namespace angelia::bson
