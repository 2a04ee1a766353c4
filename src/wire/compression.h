// OP_COMPRESSED: a message packed into another one by snappy, zlib or zstd (contract 1.3). Pure
// functions, no I/O. The only file that knows those libraries is compression.cpp.
#pragma once

#include "wire/codec.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace angelia::wire {

/// As messages number them.
enum class Compressor : std::uint8_t { Noop = 0, Snappy = 1, Zlib = 2, Zstd = 3 };

/// What hello may offer, as clients name them.
std::span<const std::string_view> compressor_names();

/// Bytes between the header of an OP_COMPRESSED message and what is packed.
inline constexpr std::size_t kCompressedPrefixBytes = 9;

/// A message that came packed; the bytes are a whole message again, with the header it had.
struct Unpacked {
    std::shared_ptr<const char[]> bytes;  ///< shared with the request that is made of it
    std::size_t size = 0;
    Compressor compressor = Compressor::Noop;
    std::string_view view() const { return {bytes.get(), size}; }
};
/// What a whole OP_COMPRESSED message says it will take; not checked, 0 when it is cut.
std::size_t announced_bytes(std::string_view message);
/// `message` is one whole OP_COMPRESSED message. Nothing is allocated before the announced size is
/// known to be allowed and possible. Errors: FailedToParse (cut, too large, packed twice, damaged,
/// an unknown compressor).
Result<Unpacked> unpack_message(std::string_view message);

/// The message made of `prefix` (with its header) and `body`, packed, with a header of its own; or
/// nothing when it would not be shorter: then it is sent as it is.
std::optional<std::string> pack_message(Compressor compressor, std::string_view prefix,
                                        std::string_view body);
/// False for the commands that are never packed, nor are their replies: authentication, and what
/// comes before it.
bool may_be_packed(std::string_view command);

}  // namespace angelia::wire
