// Which MongoDB we look like, and the limits we announce: one place. Reasons: docs/formats/wire.md.
#pragma once

#include <cstdint>

namespace angelia::engine::command {

inline constexpr const char* kServerVersion = "7.0.14";
inline constexpr std::int32_t kServerVersionParts[] = {7, 0, 14, 0};
inline constexpr const char* kFeatureCompatibilityVersion = "7.0";
inline constexpr std::int32_t kWireVersionMin = 0;
inline constexpr std::int32_t kWireVersionMax = 21;

inline constexpr std::int32_t kMessageBytesMax = 48'000'000;  // MongoDB: maxMessageSizeBytes
inline constexpr std::int32_t kWriteBatchMax = 100'000;       // MongoDB: maxWriteBatchSize
inline constexpr std::int32_t kSessionMinutes = 30;  // MongoDB: logicalSessionTimeoutMinutes
inline constexpr const char* kProductVersion = "0.1.0";

}  // namespace angelia::engine::command
