// CHECK: a broken promise in our own code prints and aborts, in release too. Never for input, disk
// or network.
#pragma once

namespace angelia::detail {
[[noreturn]] void check_failed(const char* expression, const char* file, int line) noexcept;
}

#define ANGELIA_CHECK(condition) \
    ((condition) ? void(0) : ::angelia::detail::check_failed(#condition, __FILE__, __LINE__))
