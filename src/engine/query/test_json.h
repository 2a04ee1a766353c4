// Shorthand of the tests in this module: documents as extended JSON.
#pragma once

#include <angelia/bson/json.h>

#include <string>
#include <string_view>

namespace angelia::engine::query::testing_support {

inline bson::Document from(std::string_view json) { return bson::from_json(json).value_or_throw(); }
inline std::string text(bson::DocumentView document) { return bson::to_json(document); }
/// The same document written canonically, so that expectations do not depend on spaces.
inline std::string text(std::string_view json) {
    const bson::Document document = from(json);
    return bson::to_json(document.view());
}
inline std::string text(const char* json) { return text(std::string_view(json)); }

/// "2: message", or "ok".
template <class T>
std::string outcome_code(const Result<T>& result) {
    return result ? "ok" : std::to_string(static_cast<int>(result.error().code));
}

}  // namespace angelia::engine::query::testing_support
