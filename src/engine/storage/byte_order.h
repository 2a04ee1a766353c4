// Big-endian numbers in keys and headers, so that byte order is number order.
#pragma once

#include <angelia/base/check.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace angelia::engine::storage {

template <std::unsigned_integral T>
void append_big(std::string& out, T value) {
    char bytes[sizeof(T)];
    for (std::size_t i = sizeof(T); i-- > 0;) {
        bytes[i] = static_cast<char>(value & 0xFF);
        if constexpr (sizeof(T) > 1) value = static_cast<T>(value >> 8);
    }
    out.append(bytes, sizeof(T));
}

template <std::unsigned_integral T>
T load_big(const char* at) {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        if constexpr (sizeof(T) > 1) value = static_cast<T>(value << 8);
        value = static_cast<T>(value | static_cast<std::uint8_t>(at[i]));
    }
    return value;
}

template <std::unsigned_integral T>
T load_big_at_end(std::string_view bytes) {
    ANGELIA_CHECK(bytes.size() >= sizeof(T));
    return load_big<T>(bytes.data() + bytes.size() - sizeof(T));
}

}  // namespace angelia::engine::storage
