// Logging through a function that the caller gives; the library touches no global logger.
#pragma once

#include <functional>
#include <string_view>

namespace angelia {

enum class LogLevel { Debug, Info, Warning, Error };

/// One sentence, no final dot; fields as `name=value`. Called from any thread.
using LogFunction = std::function<void(LogLevel, std::string_view message)>;

/// Drops everything; the default.
LogFunction null_log();

}  // namespace angelia
