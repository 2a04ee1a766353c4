// One error type for the whole house: code (spelled as MongoDB spells it), message, labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace angelia {

/// Numeric codes of MongoDB's error table; the one list is `angelia/base/error_codes.def`.
enum class ErrorCode : std::int32_t {
    Ok = 0,
#define ANGELIA_ERROR_CODE(name, number, retriable) name = number,
#include <angelia/base/error_codes.def>
#undef ANGELIA_ERROR_CODE
};

/// The server's spelling, e.g. "DuplicateKey"; "Location<code>" for a number without a name.
/// Threads: safe.
std::string error_code_name(ErrorCode code);

/// True for the codes that drivers may retry (retryable reads and writes specification). Threads:
/// safe.
bool is_retriable(ErrorCode code) noexcept;

/// What went wrong, where, and what is allowed. A value: copy it, move it.
struct Error {
    ErrorCode code = ErrorCode::InternalError;
    std::string message;
    std::vector<std::string> labels;  ///< MongoDB error labels, e.g. "RetryableWriteError"
    std::string details_bson;  ///< optional BSON document with extra reply fields (keyPattern,
                               ///< keyValue, errInfo)

    Error() = default;
    Error(ErrorCode c, std::string m) : code(c), message(std::move(m)) {}

    bool has_label(std::string_view label) const noexcept;
    /// "DuplicateKey (11000): E11000 duplicate key ..." for logs and people.
    std::string to_string() const;
};

}  // namespace angelia
