#include "engine/cursor/choose_plan.h"

namespace angelia::engine {

Result<query::Plan> choose_plan(const Collection& collection, const query::Matcher& matcher,
                                const query::SortSpec* sort, bson::ValueView hint) {
    if (sort && sort->empty()) sort = nullptr;
    if (hint.is_missing()) return query::plan(matcher, sort, collection.index_infos);
    query::Hint parsed;
    if (auto name = hint.get_string())
        parsed.name = std::string(*name);
    else if (auto pattern = hint.get_document())
        parsed.pattern = bson::Document(*pattern);
    else
        return Error(ErrorCode::FailedToParse, "hint must be a string or an object");
    if (parsed.name.empty() && parsed.pattern.empty())
        return query::plan(matcher, sort, collection.index_infos);
    return query::plan(matcher, sort, collection.index_infos, &parsed);
}

}  // namespace angelia::engine
