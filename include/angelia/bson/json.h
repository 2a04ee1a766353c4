// MongoDB Extended JSON v2, both ways.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <string>
#include <string_view>

namespace angelia::bson {

enum class JsonMode {
    Canonical,  ///< keeps every type: {"$numberInt":"1"}
    Relaxed,    ///< plain numbers and ISO dates where nothing is lost that matters
};

/// One line, no blanks between tokens. Source: MongoDB Extended JSON (v2) specification. Threads:
/// safe.
std::string to_json(DocumentView document, JsonMode mode = JsonMode::Relaxed);
std::string to_json(ValueView value, JsonMode mode = JsonMode::Relaxed);
/// Like to_json, spread over lines with two spaces of indentation, for people.
std::string to_json_pretty(DocumentView document, JsonMode mode = JsonMode::Relaxed);

/// Reads one JSON object (plain, relaxed or canonical, mixed freely; legacy v1 forms are read where
/// the specification asks for it). Errors: FailedToParse with line and column, BSONObjectTooLarge,
/// Overflow (nesting over 200). Threads: safe.
Result<Document> from_json(std::string_view text);

}  // namespace angelia::bson
