#include "engine/catalog/index_rules.h"

#include <angelia/bson/compare.h>
#include <angelia/bson/json.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace angelia::engine {

namespace {

constexpr std::int64_t kExpireAfterSecondsMax = 2147483647;  // MongoDB limit

Error cannot_create(std::string message) {
    return Error(ErrorCode::CannotCreateIndex, std::move(message));
}

std::string index_text(const IndexSpec& spec) { return bson::to_json(index_document(spec)); }

/// Partial filters may only say what the planner can prove (MongoDB manual, "Partial Indexes").
Result<void> check_partial_filter(bson::DocumentView filter) {
    auto refuse = [](std::string_view what) {
        return cannot_create(fmt::format("unsupported expression in partial index: {}", what));
    };
    for (const auto& element : filter) {
        if (element.key == "$and" || element.key == "$or") {
            const auto branches = element.value.get_array();
            if (!branches) return refuse(element.key);
            for (const auto& branch : *branches) {
                const auto document = branch.value.get_document();
                if (!document) return refuse(element.key);
                ANGELIA_TRY(check_partial_filter(*document));
            }
            continue;
        }
        if (!element.key.empty() && element.key.front() == '$') return refuse(element.key);
        if (element.value.is(bson::Type::Regex)) return refuse("regex");
        const auto operators = element.value.get_document();
        if (!operators || operators->empty() || operators->begin()->key.empty() ||
            operators->begin()->key.front() != '$')
            continue;
        for (const auto& op : *operators) {
            constexpr std::string_view kAllowed[] = {"$eq",  "$gt",   "$gte", "$lt",
                                                     "$lte", "$type", "$in"};
            const bool allowed =
                std::find(std::begin(kAllowed), std::end(kAllowed), op.key) != std::end(kAllowed);
            if (!allowed && !(op.key == "$exists" && op.value.truthy())) return refuse(op.key);
        }
    }
    return {};
}

bool same_kind(const IndexSpec& a, const IndexSpec& b) {
    return a.unique == b.unique && a.sparse == b.sparse &&
           bson::compare(a.partial_filter.view(), b.partial_filter.view()) == 0;
}

bool same_options(const IndexSpec& a, const IndexSpec& b) {
    return a.expire_after_seconds == b.expire_after_seconds &&
           bson::compare(a.extra.view(), b.extra.view()) == 0;
}

/// True when `wanted` exists as `present` already; false when they have nothing to do with one
/// another.
Result<bool> stands_to(const IndexSpec& wanted, const IndexSpec& present) {
    const bool same_key = same_key_pattern(wanted.key, present.key);
    if (wanted.name == present.name) {
        if (!same_key || !same_kind(wanted, present))
            return Error(ErrorCode::IndexKeySpecsConflict,
                         fmt::format("An existing index has the same name as the requested index. "
                                     "When index names are not specified, they are auto "
                                     "generated and can cause conflicts. Please refer to our "
                                     "documentation. Requested index: {}, existing index: {}",
                                     index_text(wanted), index_text(present)));
        if (!same_options(wanted, present))
            return Error(ErrorCode::IndexOptionsConflict,
                         fmt::format("An equivalent index already exists with the same name but "
                                     "different options. Requested index: {}, existing index: {}",
                                     index_text(wanted), index_text(present)));
        return true;
    }
    if (same_key && same_kind(wanted, present))
        return Error(ErrorCode::IndexOptionsConflict,
                     fmt::format("Index already exists with a different name: {}", present.name));
    return false;
}

}  // namespace

bool same_key_pattern(bson::DocumentView a, bson::DocumentView b) {
    auto x = query::IndexKeyPattern::parse(a);
    auto y = query::IndexKeyPattern::parse(b);
    if (!x || !y || x->fields.size() != y->fields.size()) return false;
    for (std::size_t i = 0; i < x->fields.size(); ++i)
        if (!(x->fields[i].path == y->fields[i].path) ||
            x->fields[i].descending != y->fields[i].descending)
            return false;
    return true;
}

Result<void> check_index_spec(const IndexSpec& spec) {
    ANGELIA_TRY_ASSIGN(auto pattern, query::IndexKeyPattern::parse(spec.key));
    if (spec.name.empty()) return cannot_create("index name cannot be empty");
    if (spec.name == "*") return cannot_create("The index name '*' is not valid.");
    if (spec.name.find('\0') != std::string::npos)
        return cannot_create("index names cannot contain NUL bytes");
    const bool on_id = pattern.fields.front().path.dotted() == "_id";
    if (spec.expire_after_seconds) {
        if (pattern.fields.size() != 1)
            return cannot_create(
                "TTL indexes are single-field indexes, compound indexes do not support TTL. Index "
                "spec: " +
                index_text(spec));
        if (on_id)
            return cannot_create(
                "The field 'expireAfterSeconds' is not valid for an _id index specification. Index "
                "spec: " +
                index_text(spec));
        if (*spec.expire_after_seconds < 0 || *spec.expire_after_seconds > kExpireAfterSecondsMax)
            return cannot_create(
                fmt::format("TTL index 'expireAfterSeconds' option must be within an acceptable "
                            "range, 0 to {}. Index spec: {}",
                            kExpireAfterSecondsMax, index_text(spec)));
    }
    if (!spec.partial_filter.empty()) {
        if (spec.sparse)
            return cannot_create("cannot mix \"partialFilterExpression\" and \"sparse\" options");
        if (on_id && pattern.fields.size() == 1)
            return cannot_create("_id index cannot be a partial index");
        ANGELIA_TRY(check_partial_filter(spec.partial_filter));
        ANGELIA_TRY(query::Matcher::parse(spec.partial_filter));
    }
    if (on_id && pattern.fields.size() == 1 && spec.sparse)
        return cannot_create("_id index cannot be sparse");
    if (on_id && pattern.fields.size() == 1 && spec.extra["hidden"].truthy())
        return cannot_create("can't hide _id index");
    return {};
}

Result<std::vector<IndexSpec>> new_index_specs(const Collection& collection,
                                               const std::vector<IndexSpec>& requested) {
    std::vector<IndexSpec> fresh;
    const auto id_key = bson::make("_id", std::int32_t{1});
    for (const auto& wanted : requested) {
        ANGELIA_TRY(check_index_spec(wanted));
        if (same_key_pattern(wanted.key, id_key)) continue;  // any name: it is _id_ and exists
        bool exists = false;
        for (const auto& index : collection.indexes) {
            ANGELIA_TRY_ASSIGN(bool same, stands_to(wanted, index->spec));
            exists = exists || same;
        }
        for (const auto& other : fresh) {
            ANGELIA_TRY_ASSIGN(bool same, stands_to(wanted, other));
            exists = exists || same;
        }
        if (exists) continue;
        fresh.push_back(copy_spec(wanted));
        if (collection.indexes.size() + fresh.size() > kIndexesMax)
            return cannot_create(fmt::format("add index fails, too many indexes for {} key:{}",
                                             collection.ns.full(), bson::to_json(wanted.key)));
    }
    return fresh;
}

bson::Document indexes_payload(std::string_view command, const std::string& collection,
                               const std::vector<IndexSpec>& specs) {
    bson::Builder b;
    b.add(command, collection).open_array("indexes");
    for (const auto& spec : specs) b.push(index_document(spec));
    return b.close().take();
}

}  // namespace angelia::engine
