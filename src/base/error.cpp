#include <angelia/base/check.h>
#include <angelia/base/error.h>
#include <angelia/base/log.h>
#include <angelia/base/result.h>

#include <cstdio>
#include <cstdlib>

namespace angelia {

std::string error_code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::Ok:
            return "OK";
#define ANGELIA_ERROR_CODE(name, number, retriable) \
    case ErrorCode::name:                           \
        return #name;
#include <angelia/base/error_codes.def>
#undef ANGELIA_ERROR_CODE
    }
    return "Location" + std::to_string(static_cast<std::int32_t>(code));
}

bool is_retriable(ErrorCode code) noexcept {
    struct Row {
        ErrorCode code;
        bool retriable;
    };
    static constexpr Row kRows[] = {
#define ANGELIA_ERROR_CODE(name, number, retriable) {ErrorCode::name, retriable},
#include <angelia/base/error_codes.def>
#undef ANGELIA_ERROR_CODE
    };
    for (const Row& row : kRows) {
        if (row.code == code) return row.retriable;
    }
    return false;
}

bool Error::has_label(std::string_view label) const noexcept {
    for (const auto& l : labels) {
        if (l == label) return true;
    }
    return false;
}

std::string Error::to_string() const {
    return error_code_name(code) + " (" + std::to_string(static_cast<std::int32_t>(code)) +
           "): " + message;
}

LogFunction null_log() {
    return [](LogLevel, std::string_view) {};
}

namespace detail {

void bad_result_access(const Error& error) {
    std::fprintf(stderr, "angelia: value() of a failed Result: %s\n", error.to_string().c_str());
    std::abort();
}

void check_failed(const char* expression, const char* file, int line) noexcept {
    std::fprintf(stderr, "angelia: broken promise: %s at %s:%d\n", expression, file, line);
    std::abort();
}

}  // namespace detail
}  // namespace angelia
