// Base64 with padding (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace angelia {

std::string base64_encode(std::string_view bytes);
/// Nothing when `text` is not exactly what base64_encode() makes: alphabet, length, padding, unused
/// bits.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace angelia
