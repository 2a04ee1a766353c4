// Dates of Extended JSON: ISO 8601 as RFC 3339 narrows it.
#pragma once

#include <angelia/bson/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace angelia::bson {

/// True for the years 1970 to 9999, which relaxed Extended JSON prints as text.
bool has_iso_form(Date date) noexcept;
/// "2026-03-01T12:00:00Z", with three digits of a second when there are any. Only when
/// has_iso_form().
std::string format_iso_date(Date date);
/// Accepts "Z" and offsets, and any number of digits of a second (cut to milliseconds).
std::optional<Date> parse_iso_date(std::string_view text);

}  // namespace angelia::bson
