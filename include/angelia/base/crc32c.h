// CRC-32C (Castagnoli), as OP_MSG checksums and our own files use it.
#pragma once

#include <cstdint>
#include <string_view>

namespace angelia {

/// The checksum of `bytes`, or of what `before` covers followed by `bytes`. Threads: safe.
/// Source: RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0) noexcept;

namespace detail {
/// The way without the processor's help, for machines that lack it and for the test that compares
/// both.
std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before = 0) noexcept;
}  // namespace detail

}  // namespace angelia
