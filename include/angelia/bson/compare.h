// MongoDB's comparison order across all BSON types.
#pragma once

#include <angelia/bson/document.h>

namespace angelia::bson {

/// Position of a type in the canonical order (MinKey lowest, MaxKey highest); types that compare as
/// one (the four number types; String and Symbol) share a position. Missing counts as Null here.
/// Source: MongoDB manual, "Comparison/Sort Order".
int canonical_order(Type type) noexcept;

/// <0, 0, >0. Numbers compare exactly across representations, NaN below all other numbers and equal
/// to itself, -0 equals 0. Missing compares as Null. Threads: safe.
int compare(ValueView a, ValueView b);
int compare(DocumentView a, DocumentView b);

inline bool equal(ValueView a, ValueView b) { return compare(a, b) == 0; }

}  // namespace angelia::bson
