#include <angelia/base/base64.h>

#include <array>
#include <cstdint>

namespace angelia {
namespace {

constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoBase64Digit = 0xFF;

constexpr auto make_base64_digits() {
    std::array<std::uint8_t, 256> digits{};
    for (auto& d : digits) d = kNoBase64Digit;
    for (std::size_t i = 0; i < kBase64Alphabet.size(); ++i)
        digits[static_cast<unsigned char>(kBase64Alphabet[i])] = static_cast<std::uint8_t>(i);
    return digits;
}

constexpr auto kBase64Digits = make_base64_digits();

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::uint32_t group =
            byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2);
        text += kBase64Alphabet[group >> 18];
        text += kBase64Alphabet[(group >> 12) & 63];
        text += i + 1 < bytes.size() ? kBase64Alphabet[(group >> 6) & 63] : '=';
        text += i + 2 < bytes.size() ? kBase64Alphabet[group & 63] : '=';
    }
    return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    std::size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
        ++padding;
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t bits = 0;
    int bit_count = 0;
    for (const char c : text.substr(0, text.size() - padding)) {
        const std::uint8_t digit = kBase64Digits[static_cast<unsigned char>(c)];
        if (digit == kNoBase64Digit) return std::nullopt;
        bits = (bits << 6 | digit) & 0xFFFFFF;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            bytes.push_back(static_cast<char>(bits >> bit_count));
        }
    }
    if ((bits & ((1U << bit_count) - 1)) != 0) return std::nullopt;
    return bytes;
}

}  // namespace angelia
