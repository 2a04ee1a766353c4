// The query language on what anybody may send: {filter, update, arrayFilters, projection, sort,
// pipeline, index, document}, each optional, as extended JSON. Nothing crashes, every result is a
// valid document, and an index finds what the filter matches.
#include "fuzz_check.h"

#include "engine/aggregation/pipeline.h"
#include "engine/query/planner.h"
#include "engine/query/projection.h"
#include "engine/query/update.h"

#include <angelia/bson/compare.h>
#include <angelia/bson/json.h>
#include <angelia/bson/validate.h>

#include <algorithm>

namespace bson = angelia::bson;
namespace query = angelia::engine::query;
namespace aggregation = angelia::engine::aggregation;

namespace {

constexpr bson::ValidateLimits kWide{
    bson::kDocumentBytesInternalMax,
    1'000};  // projections and the like may hold deeper ones than stored

void check_valid(const bson::Document& document) {
    FUZZ_CHECK(bson::validate(document.bytes(), kWide).has_value());
}

bson::DocumentView part(const bson::Document& input, std::string_view name) {
    return input.find(name).get_document().value_or(bson::DocumentView());
}

/// A match has a key in the ranges of the plan.
void check_plan(const query::Matcher& matcher, const query::SortSpec& sort,
                bson::DocumentView pattern, bson::DocumentView document) {
    auto parsed = query::IndexKeyPattern::parse(pattern);
    if (!parsed) return;
    const auto keys = query::index_keys(*parsed, document, false);
    if (!keys) return;
    FUZZ_CHECK(!keys->keys.empty() && std::is_sorted(keys->keys.begin(), keys->keys.end()));
    for (const std::string& key : keys->keys)
        FUZZ_CHECK(!query::key_values(*parsed, document, key).empty());
    query::IndexInfo index;
    index.name = "index";
    index.pattern = std::move(*parsed);
    index.multikey = keys->multikey;
    const auto plan = query::plan(matcher, &sort, std::span(&index, 1));
    FUZZ_CHECK(plan.has_value());
    if (!matcher.matches(document)) return;
    FUZZ_CHECK(plan->kind != query::Plan::Kind::Nothing);
    if (plan->kind != query::Plan::Kind::IndexScan) return;
    const auto in_range = [&](const std::string& key) {
        return std::any_of(plan->ranges.begin(), plan->ranges.end(), [&](const query::KeyRange& r) {
            return key >= r.lower && (r.upper.empty() || key < r.upper);
        });
    };
    FUZZ_CHECK(std::any_of(keys->keys.begin(), keys->keys.end(), in_range));
}

void check_update(const query::Matcher& matcher, const bson::Document& input,
                  bson::DocumentView document) {
    const auto update = query::Update::parse(
        input.find("update"),
        {.array_filters = input.find("arrayFilters").get_array(), .multi = false, .upsert = true});
    if (!update) return;
    const query::ApplyContext moment{false, bson::Date{5}, bson::Timestamp{5, 1}, &matcher};
    if (const auto outcome = update->apply(document, moment)) {
        check_valid(outcome->document);
        check_valid(outcome->description.updated_fields);
        FUZZ_CHECK(outcome->modified == !outcome->document.view().identical(document));
        const auto id = document.find("_id");
        FUZZ_CHECK(id.is_missing() || bson::equal(id, outcome->document.find("_id")));
    }
    if (const auto made = update->make_upsert(matcher, moment)) {
        check_valid(*made);
        FUZZ_CHECK(made->view().begin()->key == "_id");
    }
}

void check_pipeline(bson::DocumentView stages, bson::DocumentView document) {
    const auto pipeline = aggregation::Pipeline::parse(stages);
    if (!pipeline) return;
    int left = 3;
    auto run = pipeline->run([&]() -> angelia::Result<std::optional<bson::Document>> {
        if (left-- <= 0) return std::optional<bson::Document>();
        return std::optional<bson::Document>(bson::Document(document));
    });
    for (int i = 0; i < 4; ++i) {
        const auto result = run();
        if (!result || !*result) return;
        check_valid(**result);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto input = bson::from_json({reinterpret_cast<const char*>(data), size});
    if (!input) return 0;
    const bson::DocumentView document = part(*input, "document");
    const auto matcher = query::Matcher::parse(part(*input, "filter"));
    const auto sort = query::SortSpec::parse(part(*input, "sort"));
    if (sort) (void)sort->sort_key(document).has_value();
    if (matcher) {
        (void)matcher->matches(document);
        (void)matcher->required_equalities().has_value();
        check_plan(*matcher, sort ? *sort : query::SortSpec(), part(*input, "index"), document);
        check_update(*matcher, *input, document);
        FUZZ_CHECK(query::implies(*matcher, *matcher));
    }
    if (const auto projection = query::Projection::parse(part(*input, "projection")))
        check_valid(projection->apply(document));
    if (const auto stages = input->find("pipeline").get_array()) check_pipeline(*stages, document);
    return 0;
}
