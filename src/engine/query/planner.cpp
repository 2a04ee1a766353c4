#include "engine/query/planner.h"

#include "engine/query/planner/bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query {
namespace {

using planner::Endpoint;
using planner::FieldBounds;
using planner::Interval;

std::string complement(std::string bytes) {
    for (char& c : bytes) c = static_cast<char>(~c);
    return bytes;
}

/// An interval in the bytes of the index: descending fields hold the complement, so the ends swap.
Interval in_direction(const Interval& i, bool descending) {
    if (!descending) return i;
    return {{complement(i.upper.prefix), i.upper.inclusive},
            {complement(i.lower.prefix), i.lower.inclusive},
            i.is_point};
}

KeyRange key_range(const std::string& fixed, const Interval& i) {
    KeyRange range;
    range.lower = fixed + i.lower.prefix;
    if (!i.lower.inclusive) range.lower = planner::after_prefix(std::move(range.lower));
    range.upper = fixed + i.upper.prefix;
    if (i.upper.inclusive) range.upper = planner::after_prefix(std::move(range.upper));
    return range;
}

bool range_before(const KeyRange& a, const KeyRange& b) { return a.lower < b.lower; }

/// How one index would serve the query.
struct Candidate {
    std::size_t index = 0;
    std::vector<FieldBounds> bounds;  ///< one for each field; unusable ones are full
    bool provides_sort = false;
    bool reverse = false;
    int score = 0;
};

/// Bounds of each field, widened where several keys of one document would have to fit together.
std::vector<FieldBounds> usable_bounds(const Matcher& matcher, const IndexInfo& index) {
    std::vector<FieldBounds> bounds;
    std::vector<std::string> restricted;  // first path parts of restricted fields
    for (const auto& field : index.pattern.fields) {
        FieldBounds b = planner::bounds_of(matcher.root(), field.path, index.multikey);
        // Fields below one array come from its elements together: conditions on two of them may be
        // met by different elements.
        const bool below_same = index.multikey && std::find(restricted.begin(), restricted.end(),
                                                            field.path.front()) != restricted.end();
        if (!b.is_full() && below_same && !b.intervals.empty())
            b = FieldBounds::full(b.may_be_missing);
        if (!b.is_full()) restricted.push_back(field.path.front());
        bounds.push_back(std::move(b));
    }
    return bounds;
}

/// True when walking the index yields the asked order; sets `reverse`.
bool sort_by_index(const IndexInfo& index, const std::vector<FieldBounds>& bounds,
                   const SortSpec& sort, bool& reverse) {
    const auto& fields = index.pattern.fields;
    // A sparse index lacks the keys of elements that have none of the fields, and those may be the
    // ones that sort first.
    if (index.multikey && index.sparse) return false;
    std::optional<bool> flipped;
    std::size_t at = 0;
    std::vector<std::string> fixed;  // first path parts of fields that are held at one value
    for (const auto& wanted : sort.pattern().fields) {
        while (at < fields.size() && !(fields[at].path == wanted.path)) {
            if (!bounds[at].is_single_point()) return false;
            fixed.push_back(fields[at].path.front());
            ++at;
        }
        if (at == fields.size()) return false;
        // The first key of a document in the walk must be its first key of all: with several keys
        // nothing may be left out.
        if (index.multikey) {
            if (!bounds[at].is_full()) return false;
            if (std::find(fixed.begin(), fixed.end(), wanted.path.front()) != fixed.end())
                return false;
        }
        const bool opposite = fields[at].descending != wanted.descending;
        if (flipped && *flipped != opposite && !bounds[at].is_single_point()) return false;
        if (!bounds[at].is_single_point()) flipped = opposite;
        ++at;
    }
    reverse = flipped.value_or(false);
    return true;
}

/// How much the bounds narrow the index: what leads counts, up to the first field that is no list
/// of points.
int narrowing(const std::vector<FieldBounds>& bounds) {
    int score = 0;
    for (const FieldBounds& b : bounds) {
        if (b.is_full()) break;
        if (b.is_single_point()) {
            score += 100;
        } else if (b.all_points()) {
            score += 80;
        } else {
            const auto& first = b.intervals.front().lower;
            const auto& last = b.intervals.back().upper;
            score += 20 + (first.prefix.size() > 1 ? 20 : 0) +
                     (last.prefix.size() > 1 ? 20 : 0);  // one byte only is the type bracket
            break;
        }
    }
    return score;
}

bool is_impossible(const std::vector<FieldBounds>& bounds) {
    return std::any_of(bounds.begin(), bounds.end(),
                       [](const FieldBounds& b) { return b.intervals.empty(); });
}

/// Does the index hold an entry for every match?
bool holds_all_matches(const Matcher& matcher, const IndexInfo& index,
                       const std::vector<FieldBounds>& bounds) {
    const auto may_be_missing = [](const FieldBounds& b) { return b.may_be_missing; };
    if (index.sparse && std::all_of(bounds.begin(), bounds.end(), may_be_missing)) return false;
    // Elements without any of the fields have no key, though other elements of the document have
    // one.
    const auto looks_for_missing = [](const FieldBounds& b) {
        return b.may_be_missing && !b.is_full();
    };
    if (index.sparse && index.multikey &&
        std::any_of(bounds.begin(), bounds.end(), looks_for_missing))
        return false;
    return !index.partial_filter || implies(matcher, *index.partial_filter);
}

bool wants_order(const SortSpec* sort) {
    return sort != nullptr && !sort->pattern().fields.empty();
}

/// A quick look: an index whose first field is neither restricted nor sorted by is of no use.
bool is_of_use(const Matcher& matcher, const SortSpec* sort, const IndexInfo& index) {
    const FieldPath& first = index.pattern.fields.front().path;
    if (wants_order(sort) && sort->pattern().fields.front().path == first) return true;
    return !planner::bounds_of(matcher.root(), first, index.multikey).is_full();
}

Candidate make_candidate(const Matcher& matcher, const SortSpec* sort, const IndexInfo& index,
                         std::size_t position) {
    Candidate c;
    c.index = position;
    c.bounds = usable_bounds(matcher, index);
    const bool sorts = wants_order(sort);
    c.provides_sort = sorts && sort_by_index(index, c.bounds, *sort, c.reverse);
    c.score = narrowing(c.bounds) + (c.provides_sort ? 50 : 0);
    const bool one_key = std::all_of(c.bounds.begin(), c.bounds.end(),
                                     [](const FieldBounds& b) { return b.is_single_point(); });
    if (index.unique && one_key && !index.multikey) c.score += 1'000;
    return c;
}

std::vector<KeyRange> make_ranges(const IndexInfo& index, const std::vector<FieldBounds>& bounds) {
    std::vector<std::string> fixed{
        std::string()};  // encoded values of the leading fields that are points
    std::vector<KeyRange> ranges;
    std::size_t at = 0;
    for (; at < bounds.size() && bounds[at].all_points(); ++at) {
        const auto& points = bounds[at].intervals;
        if (points.size() > kKeyRangesMax / fixed.size()) break;
        std::vector<std::string> next;
        for (const std::string& prefix : fixed) {
            for (const Interval& p : points)
                next.push_back(prefix +
                               in_direction(p, index.pattern.fields[at].descending).lower.prefix);
        }
        fixed = std::move(next);
    }
    const Interval everything;
    for (const std::string& prefix : fixed) {
        if (at == bounds.size()) {
            ranges.push_back(key_range(prefix, everything));
            continue;
        }
        const bool descending = index.pattern.fields[at].descending;
        const auto& intervals = bounds[at].intervals;
        if (intervals.size() > kKeyRangesMax / fixed.size()) {
            const Interval cover{intervals.front().lower, intervals.back().upper, false};
            ranges.push_back(key_range(prefix, in_direction(cover, descending)));
            continue;
        }
        for (const Interval& i : intervals)
            ranges.push_back(key_range(prefix, in_direction(i, descending)));
    }
    std::sort(ranges.begin(), ranges.end(), range_before);
    return ranges;
}

Plan finish_plan(const Candidate& c, const IndexInfo& index, bool no_sort_asked) {
    Plan plan;
    const bool impossible = is_impossible(c.bounds);
    plan.provides_sort = no_sort_asked || c.provides_sort || impossible;
    if (impossible) {
        plan.kind = Plan::Kind::Nothing;
        return plan;
    }
    plan.kind = Plan::Kind::IndexScan;
    plan.index = c.index;
    plan.multikey = index.multikey;
    plan.ranges = make_ranges(index, c.bounds);
    plan.reverse = c.reverse && c.provides_sort;
    if (plan.reverse) std::reverse(plan.ranges.begin(), plan.ranges.end());
    return plan;
}

Plan record_order(int direction, bool provides_sort) {
    Plan plan;
    plan.reverse = direction < 0;
    plan.provides_sort = provides_sort;
    return plan;
}

Error no_such_index() {
    return {ErrorCode::BadValue,
            "error processing query: planner returned error: hint provided does not correspond to "
            "an existing index"};
}

bool same_pattern(const IndexKeyPattern& pattern, bson::DocumentView hint) {
    std::size_t at = 0;
    for (const bson::Element& e : hint) {
        const auto direction = e.value.to_double();
        if (at == pattern.fields.size() || !direction || pattern.fields[at].path.dotted() != e.key)
            return false;
        if (pattern.fields[at].descending != (*direction < 0)) return false;
        ++at;
    }
    return at == pattern.fields.size();
}

Result<Plan> plan_with_hint(const Matcher& matcher, const SortSpec* sort,
                            std::span<const IndexInfo> indexes, const Hint& hint,
                            bool no_sort_asked) {
    if (hint.name == "$natural") return record_order(1, no_sort_asked);
    if (hint.name.empty()) {
        const auto natural = hint.pattern.find("$natural");
        if (!natural.is_missing()) {
            const auto direction = natural.to_int64();
            if (direction != 1 && direction != -1)
                return Error(ErrorCode::BadValue, "$natural hint must be 1 or -1");
            return record_order(static_cast<int>(*direction), no_sort_asked);
        }
    }
    for (std::size_t i = 0; i < indexes.size(); ++i) {
        const IndexInfo& index = indexes[i];
        const bool named =
            hint.name.empty() ? same_pattern(index.pattern, hint.pattern) : index.name == hint.name;
        if (!named || index.hidden || !index.ready) continue;
        if (index.partial_filter && !implies(matcher, *index.partial_filter)) {
            return Error(ErrorCode::BadValue,
                         fmt::format("the hinted index {} is partial and does not cover the query",
                                     index.name));
        }
        return finish_plan(make_candidate(matcher, sort, index, i), index, no_sort_asked);
    }
    return no_such_index();
}

}  // namespace

Result<Plan> plan(const Matcher& matcher, const SortSpec* sort, std::span<const IndexInfo> indexes,
                  const Hint* hint) {
    const bool no_sort_asked = sort == nullptr || sort->empty();
    if (hint != nullptr) return plan_with_hint(matcher, sort, indexes, *hint, no_sort_asked);
    if (sort != nullptr && sort->natural() != 0) return record_order(sort->natural(), true);
    if (matcher.id_equality()) {
        Plan lookup;
        lookup.kind = Plan::Kind::IdLookup;
        lookup.provides_sort = true;
        return lookup;
    }
    std::optional<Candidate> best;
    for (std::size_t i = 0; i < indexes.size(); ++i) {
        if (indexes[i].hidden || !indexes[i].ready || !is_of_use(matcher, sort, indexes[i]))
            continue;
        Candidate c = make_candidate(matcher, sort, indexes[i], i);
        // Also that nothing can match is known only of documents the index holds: it says whether
        // there are arrays in them.
        if (!holds_all_matches(matcher, indexes[i], c.bounds)) continue;
        if (is_impossible(c.bounds)) return finish_plan(c, indexes[i], no_sort_asked);
        if (c.score == 0) continue;
        if (!best || c.score > best->score) best = std::move(c);
    }
    if (!best) return record_order(1, no_sort_asked);
    return finish_plan(*best, indexes[best->index], no_sort_asked);
}

}  // namespace angelia::engine::query
