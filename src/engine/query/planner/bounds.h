// Which keys of one index field the matches of a filter can have.
#pragma once

#include "engine/query/field_path.h"
#include "engine/query/filter/node.h"

#include <string>
#include <vector>

namespace angelia::engine::query::planner {

/// One end of an interval of encoded keys (ascending form): all keys that start with `prefix` are
/// in or out together. The empty inclusive prefix is no bound at all.
struct Endpoint {
    std::string prefix;
    bool inclusive = true;
};

struct Interval {
    Endpoint lower;
    Endpoint upper;
    bool is_point = false;  ///< exactly one key value
};

/// Intervals in ascending order, not overlapping. A superset: never leaves out a key that a match
/// is found by.
struct FieldBounds {
    std::vector<Interval> intervals;
    bool may_be_missing = true;  ///< a match may lack the field altogether

    static FieldBounds full(bool may_be_missing);
    static FieldBounds nothing() { return {{}, false}; }
    bool is_full() const;
    bool all_points() const;
    bool is_single_point() const { return intervals.size() == 1 && intervals[0].is_point; }
};

/// First byte string behind all that start with `prefix`; empty when there is none.
std::string after_prefix(std::string prefix);

FieldBounds intersect(const FieldBounds& a, const FieldBounds& b);
FieldBounds unite(FieldBounds a, const FieldBounds& b);

/// `multikey`: some document has several keys in the index; then two conditions may be met by two
/// of them and are not intersected.
FieldBounds bounds_of(const filter::Node& node, const FieldPath& path, bool multikey);

}  // namespace angelia::engine::query::planner
