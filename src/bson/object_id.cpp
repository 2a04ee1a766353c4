#include <angelia/bson/types.h>

#include <atomic>
#include <chrono>
#include <random>

namespace angelia::bson {
namespace {

std::uint64_t random_bits() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

ObjectId ObjectId::generate() {
    static const std::uint64_t process = random_bits();
    static std::atomic<std::uint32_t> counter{static_cast<std::uint32_t>(random_bits())};
    const auto seconds =
        static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                       std::chrono::system_clock::now().time_since_epoch())
                                       .count());
    const std::uint32_t count = counter.fetch_add(1, std::memory_order_relaxed);
    ObjectId id;
    for (std::size_t i = 0; i < 4; ++i)
        id.bytes[i] = static_cast<std::uint8_t>(seconds >> (24 - 8 * i));
    for (std::size_t i = 0; i < 5; ++i)
        id.bytes[4 + i] = static_cast<std::uint8_t>(process >> (8 * i));
    for (std::size_t i = 0; i < 3; ++i)
        id.bytes[9 + i] = static_cast<std::uint8_t>(count >> (16 - 8 * i));
    return id;
}

std::optional<ObjectId> ObjectId::from_hex(std::string_view hex) {
    if (hex.size() != 24) return std::nullopt;
    ObjectId id;
    for (std::size_t i = 0; i < 12; ++i) {
        const int high = hex_digit(hex[2 * i]);
        const int low = hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        id.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return id;
}

std::string ObjectId::to_hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t b : bytes) {
        text.push_back(digits[b >> 4]);
        text.push_back(digits[b & 15]);
    }
    return text;
}

}  // namespace angelia::bson
