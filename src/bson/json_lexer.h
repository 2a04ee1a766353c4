// JSON text as a stream of events. Hides the JSON library: only json_lexer.cpp includes it.
#pragma once

#include <angelia/base/result.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace angelia::bson {

/// What the lexer has read. An error ends the reading; the lexer adds line and column to
/// FailedToParse.
class JsonEvents {
  public:
    virtual ~JsonEvents() = default;
    virtual Result<void> null() = 0;
    virtual Result<void> boolean(bool v) = 0;
    virtual Result<void> integer(std::int64_t v) = 0;
    virtual Result<void> number(
        double v) = 0;  ///< has a point or an exponent, or does not fit an integer
    virtual Result<void> string(std::string_view v) = 0;
    virtual Result<void> key(std::string_view name) = 0;
    virtual Result<void> start_object() = 0;
    virtual Result<void> end_object() = 0;
    virtual Result<void> start_array() = 0;
    virtual Result<void> end_array() = 0;
};

/// Reads exactly one JSON value with nothing but blanks around it. Strings and keys handed out are
/// UTF-8.
Result<void> lex_json(std::string_view text, JsonEvents& events);

}  // namespace angelia::bson
