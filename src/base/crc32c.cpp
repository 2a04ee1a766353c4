#include <angelia/base/crc32c.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace angelia {
namespace {

constexpr std::uint32_t kPolynomialReversed = 0x82F63B78;

/// tables[k][b]: effect of byte b with k more bytes behind it (slicing by 8).
constexpr auto make_crc_tables() {
    std::array<std::array<std::uint32_t, 256>, 8> tables{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t crc = b;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomialReversed : 0);
        tables[0][b] = crc;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::size_t b = 0; b < 256; ++b)
            tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xFF];
    }
    return tables;
}

constexpr auto kCrcTables = make_crc_tables();

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(
    std::string_view bytes, std::uint32_t before) noexcept {
    std::uint64_t crc = ~before;
    const char* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) {
        std::uint64_t word;
        std::memcpy(&word, at, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    auto crc32 = static_cast<std::uint32_t>(crc);
    for (; left > 0; ++at, --left)
        crc32 = __builtin_ia32_crc32qi(crc32, static_cast<unsigned char>(*at));
    return ~crc32;
}

#endif

}  // namespace

std::uint32_t detail::crc32c_by_table(std::string_view bytes, std::uint32_t before) noexcept {
    std::uint32_t crc = ~before;
    const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
    std::size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) {
        const std::uint32_t head = crc ^ (at[0] | std::uint32_t{at[1]} << 8 |
                                          std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24);
        crc = kCrcTables[7][head & 0xFF] ^ kCrcTables[6][(head >> 8) & 0xFF] ^
              kCrcTables[5][(head >> 16) & 0xFF] ^ kCrcTables[4][head >> 24] ^
              kCrcTables[3][at[4]] ^ kCrcTables[2][at[5]] ^ kCrcTables[1][at[6]] ^
              kCrcTables[0][at[7]];
    }
    for (; left > 0; ++at, --left) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ *at) & 0xFF];
    return ~crc;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) noexcept {
#if defined(__x86_64__)
    static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
    if (has_instruction) return crc32c_by_instruction(bytes, before);
#endif
    return detail::crc32c_by_table(bytes, before);
}

}  // namespace angelia
