#include "store_embedded/write_list.h"

#include "engine/query/matcher.h"
#include "engine/query/update.h"

#include <algorithm>

namespace angelia::store_embedded {

namespace query = engine::query;
using engine::ConditionalWrite;
using engine::WriteKind;

ConditionalWrite to_write(const engine::Namespace& ns, bson::DocumentView document) {
    ConditionalWrite write;
    write.ns = ns;
    write.document = bson::Document(document);
    return write;
}

Result<ConditionalWrite> to_write(const engine::Namespace& ns, const store::UpdateOp& op) {
    ConditionalWrite write;
    write.kind = WriteKind::Update;
    write.ns = ns;
    write.multi = op.multi;
    write.upsert = op.upsert;
    ANGELIA_TRY_ASSIGN(query::Matcher filter, query::Matcher::parse(op.filter));
    ANGELIA_TRY_ASSIGN(query::Update update,
                       query::Update::parse(op.update.view(), {std::nullopt, op.multi, op.upsert}));
    write.filter = std::make_shared<const query::Matcher>(std::move(filter));
    write.update = std::make_shared<const query::Update>(std::move(update));
    return write;
}

Result<ConditionalWrite> to_write(const engine::Namespace& ns, const store::DeleteOp& op) {
    ConditionalWrite write;
    write.kind = WriteKind::Delete;
    write.ns = ns;
    write.multi = op.multi;
    ANGELIA_TRY_ASSIGN(query::Matcher filter, query::Matcher::parse(op.filter));
    write.filter = std::make_shared<const query::Matcher>(std::move(filter));
    return write;
}

bool WriteList::add(std::size_t position, Result<ConditionalWrite> write) {
    if (!write) {
        refused_.push_back({position, std::move(write).error()});
        return !ordered_;
    }
    writes_.push_back(std::move(write).value());
    positions_.push_back(position);
    return true;
}

std::vector<store::WriteError> WriteList::errors(std::vector<engine::WriteOutcome>& outcomes) {
    std::vector<store::WriteError> all;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (outcomes[i].error) all.push_back({positions_[i], *std::move(outcomes[i].error)});
    }
    // An ordered batch ends at its first error: what could not be parsed stands behind what ran.
    if (!ordered_ || all.empty())
        std::move(refused_.begin(), refused_.end(), std::back_inserter(all));
    std::sort(all.begin(), all.end(), [](const store::WriteError& a, const store::WriteError& b) {
        return a.index < b.index;
    });
    return all;
}

}  // namespace angelia::store_embedded
