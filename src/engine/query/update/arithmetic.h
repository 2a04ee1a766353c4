// Sums and products of BSON numbers with MongoDB's widening: int32 to int64 when it overflows,
// double if either is, decimal if either is.
#pragma once

#include <angelia/bson/document.h>

#include <optional>

namespace angelia::engine::query::update {

/// Both must be numbers. Nothing when an int64 overflows.
std::optional<bson::Value> add_numbers(bson::ValueView a, bson::ValueView b);
std::optional<bson::Value> multiply_numbers(bson::ValueView a, bson::ValueView b);

}  // namespace angelia::engine::query::update
