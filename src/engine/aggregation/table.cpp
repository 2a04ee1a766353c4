// The one table of stages.
#include "engine/aggregation/stage.h"

#include <fmt/format.h>

namespace angelia::engine::aggregation {
namespace {

constexpr StageEntry kStages[] = {
    {"$addFields", parse_add_fields},
    {"$count", parse_count},
    {"$group", parse_group},
    {"$limit", parse_limit},
    {"$match", parse_match},
    {"$project", parse_project},
    {"$replaceRoot", parse_replace_root},
    {"$replaceWith", parse_replace_with},
    {"$set", parse_add_fields},
    {"$skip", parse_skip},
    {"$sort", parse_sort},
    {"$unset", parse_unset},
};

}  // namespace

const StageEntry* find_stage(std::string_view name) {
    for (const StageEntry& entry : kStages) {
        if (entry.name == name) return &entry;
    }
    return nullptr;
}

Result<std::uint64_t> parse_stage_count(std::string_view stage, bson::ValueView operand,
                                        std::int64_t at_least, ErrorCode code) {
    const auto number = operand.to_int64();
    if (!number)
        return Error(code,
                     fmt::format("invalid argument to {} stage: Expected a whole number", stage));
    if (*number < at_least)
        return Error(code, fmt::format("invalid argument to {} stage: {} is below {}", stage,
                                       *number, at_least));
    return static_cast<std::uint64_t>(*number);
}

bool is_literal(bson::ValueView value) {
    if (const auto text = value.get_string()) return !text->starts_with('$');
    if (!value.is_container()) return true;
    for (const bson::Element& e : value.as_document()) {
        if (e.key.starts_with('$') || !is_literal(e.value)) return false;
    }
    return true;
}

}  // namespace angelia::engine::aggregation
