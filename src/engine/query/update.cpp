#include "engine/query/update.h"

#include "engine/query/update/operator.h"
#include "engine/query/update/positional.h"

#include <angelia/bson/compare.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace angelia::engine::query {

using bson::Type;
using bson::ValueView;
using update::Operation;

struct Update::State {
    bson::Value source;  ///< operations hold views into it
    bool replacement = false;
    std::vector<Operation>
        operations;  ///< in the order of their paths, so that new fields come in that order
    update::ArrayFilters array_filters;
    bool positional = false;  ///< some path holds `$`, `$[]` or `$[id]`
    bool may_deepen = true;  ///< false: a result cannot be nested too deep when the document is not
};

namespace {

Error failed_to_parse(std::string message) {
    return {ErrorCode::FailedToParse, std::move(message)};
}

/// Operators on the same or on nested paths. `touched` is sorted by path_less, so a path stands
/// right before what it leads into.
Result<void> check_conflicts(const std::vector<Operation>& operations) {
    std::vector<const FieldPath*> touched;
    for (const Operation& operation : operations) {
        touched.push_back(&operation.path);
        if (const FieldPath* second = operation.action->second_path()) touched.push_back(second);
    }
    std::sort(touched.begin(), touched.end(),
              [](const FieldPath* a, const FieldPath* b) { return path_less(*a, *b); });
    for (std::size_t i = 1; i < touched.size(); ++i) {
        if (!touched[i - 1]->is_prefix_of(*touched[i])) continue;
        return Error(ErrorCode::ConflictingUpdateOperators,
                     fmt::format("Updating the path '{}' would create a conflict at '{}'",
                                 touched[i]->dotted(), touched[i - 1]->dotted()));
    }
    return {};
}

Result<void> parse_operator(const bson::Element& e, std::vector<Operation>& operations) {
    const update::OperatorEntry* entry = update::find_operator(e.key);
    if (entry == nullptr) {
        return failed_to_parse(
            fmt::format("Unknown modifier: {}. Expected a valid update modifier or pipeline-style "
                        "update specified as an array",
                        e.key));
    }
    const auto fields = e.value.get_document();
    if (!fields) {
        return failed_to_parse(
            fmt::format("Modifiers operate on fields but we found type {} instead. For example: "
                        "{{$mod: {{<field>: ...}}}} not {}",
                        bson::type_alias(e.value.type()), update::element_text(e.key, e.value)));
    }
    for (const bson::Element& field : *fields) {
        ANGELIA_TRY_ASSIGN(Operation operation, entry->parse({e.key, field.key, field.value}));
        operations.push_back(std::move(operation));
    }
    return {};
}

/// Levels of documents and arrays, `document` itself being one.
int nesting_of(bson::DocumentView document) {
    int deepest = 0;
    for (const bson::Element& e : document) {
        if (e.value.is_container()) deepest = std::max(deepest, nesting_of(e.value.as_document()));
    }
    return deepest + 1;
}

/// Can an operation put something deeper than a document may be? `update`: what it takes its values
/// from.
bool may_nest_too_deep(const std::vector<Operation>& operations, bson::DocumentView update) {
    const int deepest_value = nesting_of(update);
    return std::any_of(operations.begin(), operations.end(), [&](const Operation& o) {
        return !o.action->keeps_depth() ||
               static_cast<int>(o.path.size()) + deepest_value > bson::kNestingMax;
    });
}

Result<void> check_result(const bson::Document& document, bool may_deepen) {
    if (document.size_bytes() > bson::kDocumentBytesInternalMax) {
        return Error(ErrorCode::BSONObjectTooLarge,
                     fmt::format("Resulting document after update is larger than {}: {} bytes",
                                 bson::kDocumentBytesInternalMax, document.size_bytes()));
    }
    if (may_deepen && nesting_of(document.view()) > bson::kNestingMax) {
        return Error(ErrorCode::Overflow,
                     fmt::format("Resulting document after update is nested deeper than {} levels",
                                 bson::kNestingMax));
    }
    return {};
}

Error immutable_id(std::string_view path) {
    return {
        ErrorCode::ImmutableField,
        fmt::format("Performing an update on the path '{}' would modify the immutable field '_id'",
                    path)};
}

/// `fields` with `id` put first, in the place of any _id it has.
bson::Document with_id_first(bson::DocumentView fields, ValueView id) {
    bson::Builder b;
    b.add("_id", id);
    for (const bson::Element& e : fields) {
        if (e.key != "_id") b.add(e.key, e.value);
    }
    return b.take();
}

Result<UpdateOutcome> apply_replacement(bson::DocumentView document,
                                        bson::DocumentView replacement) {
    const ValueView old_id = document.find("_id");
    const ValueView new_id = replacement.find("_id");
    if (!old_id.is_missing() && !new_id.is_missing() && !bson::equal(old_id, new_id)) {
        return Error(ErrorCode::ImmutableField,
                     fmt::format("After applying the update, the (immutable) field '_id' was found "
                                 "to have been altered to {}",
                                 update::element_text("_id", new_id)));
    }
    const ValueView id = old_id.is_missing() ? new_id : old_id;
    UpdateOutcome outcome;
    outcome.document = with_id_first(replacement, id);
    outcome.modified = !outcome.document.view().identical(document);
    ANGELIA_TRY(check_result(outcome.document, true));
    return outcome;
}

/// One operator at one plain path.
struct Step {
    const FieldPath* path;
    const update::Operator* action;
};

/// The steps of an update whose paths are plain, in path order.
std::vector<Step> plain_steps(const std::vector<Operation>& operations,
                              const ApplyContext& context) {
    std::vector<Step> steps;
    for (const Operation& operation : operations) {
        if (operation.only_on_insert && !context.is_insert) continue;
        steps.push_back({&operation.path, operation.action.get()});
    }
    return steps;
}

/// The steps of an update with positional paths, which mean something else in each document.
/// `resolved` keeps the paths.
Result<std::vector<Step>> resolve_steps(bson::DocumentView document,
                                        const std::vector<Operation>& operations,
                                        const update::ArrayFilters& filters,
                                        const ApplyContext& context,
                                        std::deque<FieldPath>& resolved) {
    std::vector<Step> steps;
    for (const Operation& operation : operations) {
        if (operation.only_on_insert && !context.is_insert) continue;
        if (!update::is_positional(operation.path)) {
            steps.push_back({&operation.path, operation.action.get()});
            continue;
        }
        ANGELIA_TRY_ASSIGN(auto paths,
                           update::resolve_path(operation.path, document, filters, context.query));
        for (FieldPath& path : paths) {
            resolved.push_back(std::move(path));
            steps.push_back({&resolved.back(), operation.action.get()});
        }
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return path_less(*a.path, *b.path); });
    for (std::size_t i = 1; i < steps.size(); ++i) {
        if (!steps[i - 1].path->is_prefix_of(*steps[i].path)) continue;
        return Error(ErrorCode::ConflictingUpdateOperators,
                     fmt::format("Update created a conflict at '{}'", steps[i - 1].path->dotted()));
    }
    return steps;
}

Result<UpdateOutcome> apply_steps(bson::DocumentView document, const std::vector<Step>& steps,
                                  bool may_deepen, const ApplyContext& context) {
    update::EditTree tree(document);
    update::ChangeLog log;
    const ValueView old_id = document.find("_id");
    for (const Step& step : steps) {
        update::Target target(tree, log, *step.path, context);
        ANGELIA_TRY(step.action->apply(target));
    }
    UpdateOutcome outcome;
    if (log.empty()) {
        outcome.document = bson::Document(document);
        return outcome;
    }
    outcome.document = tree.to_document();
    const ValueView new_id = outcome.document.find("_id");
    if (!old_id.is_missing() && !new_id.identical(old_id)) {
        if (new_id.is_missing() || !bson::equal(old_id, new_id)) return immutable_id("_id");
        // The same number in another type: the stored one stays.
        outcome.document = with_id_first(outcome.document.view(), old_id);
    }
    outcome.modified = !outcome.document.view().identical(document);
    if (!outcome.modified) return outcome;
    ANGELIA_TRY(check_result(outcome.document, may_deepen));
    outcome.description = log.describe(tree);
    return outcome;
}

/// Puts `value` at a dotted path that nothing else in `tree` touches.
Result<void> put_equality(update::EditTree& tree, const FieldPath& path, ValueView value) {
    update::ChangeLog log;
    const ApplyContext context{};
    return update::Target(tree, log, path, context).set(value);
}

/// What the query of an upsert demands, as a document.
Result<bson::Document> document_from_query(const Matcher& query, bool only_id) {
    ANGELIA_TRY_ASSIGN(const auto equalities, query.required_equalities());
    std::vector<std::pair<FieldPath, ValueView>> fields;
    for (const RequiredEquality& e : equalities) {
        if (only_id && e.path != "_id" && !e.path.starts_with("_id.")) continue;
        fields.emplace_back(FieldPath(e.path), e.value);  // its length was checked with the filter
    }
    const bson::Document nothing;
    update::EditTree tree(nothing.view());
    for (const auto& [path, value] : fields) ANGELIA_TRY(put_equality(tree, path, value));
    return tree.to_document();
}

}  // namespace

Result<Update> Update::parse(bson::DocumentView document, const UpdateOptions& options) {
    return parse(ValueView(Type::Document, document.data(), document.size_bytes()), options);
}

Result<Update> Update::parse(ValueView source, const UpdateOptions& options) {
    if (source.is(Type::Array))
        return Error(ErrorCode::NotImplemented,
                     "Updates given as an aggregation pipeline are not supported yet");
    if (!source.is(Type::Document)) {
        return failed_to_parse(
            fmt::format("Update argument must be either an object or an array, not {}",
                        bson::type_alias(source.type())));
    }
    auto state = std::make_shared<State>();
    state->source = bson::Value(source);
    const bson::DocumentView document = state->source.view().as_document();
    const bool operators = !document.empty() && document.begin()->key.starts_with('$');
    ANGELIA_TRY_ASSIGN(state->array_filters, update::ArrayFilters::parse(options.array_filters));
    if (!operators) {
        ANGELIA_TRY(state->array_filters.check_use({}, document));
        state->replacement = true;
        if (options.multi)
            return failed_to_parse("multi update is not supported for replacement-style update");
        for (const bson::Element& e : document) {
            if (!e.key.starts_with('$')) continue;
            return failed_to_parse(
                fmt::format("The dollar ($) prefixed field '{}' is not allowed in the context of "
                            "an update's replacement document. "
                            "Operators and fields cannot be mixed.",
                            e.key));
        }
        return Update(std::move(state));
    }
    for (const bson::Element& e : document) ANGELIA_TRY(parse_operator(e, state->operations));
    ANGELIA_TRY(check_conflicts(state->operations));
    ANGELIA_TRY(state->array_filters.check_use(state->operations, document));
    state->positional =
        std::any_of(state->operations.begin(), state->operations.end(),
                    [](const Operation& o) { return update::is_positional(o.path); });
    state->may_deepen = may_nest_too_deep(state->operations, document);
    std::stable_sort(
        state->operations.begin(), state->operations.end(),
        [](const Operation& a, const Operation& b) { return path_less(a.path, b.path); });
    return Update(std::move(state));
}

Result<UpdateOutcome> Update::apply(bson::DocumentView document,
                                    const ApplyContext& context) const {
    if (state_->replacement)
        return apply_replacement(document, state_->source.view().as_document());
    if (!state_->positional)
        return apply_steps(document, plain_steps(state_->operations, context), state_->may_deepen,
                           context);
    std::deque<FieldPath> resolved;  // a deque, so that the steps' pointers stay valid
    ANGELIA_TRY_ASSIGN(const auto steps, resolve_steps(document, state_->operations,
                                                       state_->array_filters, context, resolved));
    return apply_steps(document, steps, state_->may_deepen, context);
}

Result<bson::Document> Update::make_upsert(const Matcher& query,
                                           const ApplyContext& context) const {
    ANGELIA_TRY_ASSIGN(const bson::Document base, document_from_query(query, state_->replacement));
    ApplyContext insert = context;
    insert.is_insert = true;
    ANGELIA_TRY_ASSIGN(UpdateOutcome outcome, apply(base.view(), insert));
    const ValueView id = outcome.document.find("_id");
    if (id.is_missing()) {
        const bson::Value generated = bson::value(bson::ObjectId::generate());
        return with_id_first(outcome.document.view(), generated.view());
    }
    ANGELIA_TRY(check_id(id));
    return with_id_first(outcome.document.view(), id);
}

bool Update::is_replacement() const { return state_->replacement; }
ValueView Update::source() const { return state_->source.view(); }

// ---- helpers of the write path

Result<void> check_id(ValueView id) {
    if (id.is(Type::Array) || id.is(Type::Regex) || id.is(Type::Undefined)) {
        return Error(ErrorCode::InvalidIdField, fmt::format("The '_id' value cannot be of type {}",
                                                            bson::type_alias(id.type())));
    }
    if (const auto document = id.get_document()) {
        for (const bson::Element& e : *document) {
            if (!e.key.starts_with('$')) continue;
            return Error(
                ErrorCode::DollarPrefixedFieldName,
                fmt::format("The dollar ($) prefixed field '{}' in '_id' is not valid for storage.",
                            e.key));
        }
    }
    return {};
}

namespace {

bool is_empty_timestamp(const bson::Element& e) {
    return e.value.is(Type::Timestamp) && e.value.as_timestamp() == bson::Timestamp{} &&
           e.key != "_id";
}

}  // namespace

bool has_empty_timestamp(bson::DocumentView document) {
    return std::any_of(document.begin(), document.end(), is_empty_timestamp);
}

bson::Document fill_empty_timestamps(bson::DocumentView document,
                                     const std::function<bson::Timestamp()>& next) {
    bson::Builder b;
    for (const bson::Element& e : document) {
        if (is_empty_timestamp(e)) {
            b.add(e.key, next());
        } else {
            b.add(e.key, e.value);
        }
    }
    return b.take();
}

}  // namespace angelia::engine::query
