// Which names databases and collections may have (contract 1.7).
#include "engine/engine.h"

#include <fmt/format.h>

namespace angelia::engine {

Result<void> check_namespace(const Namespace& ns) {
    constexpr std::size_t kDatabaseBytesMax = 63;    // MongoDB limit
    constexpr std::size_t kNamespaceBytesMax = 255;  // MongoDB limit
    if (ns.db.empty() || ns.db.size() > kDatabaseBytesMax)
        return Error(ErrorCode::InvalidNamespace,
                     fmt::format("Invalid database name: '{}' (1 to {} bytes are allowed)", ns.db,
                                 kDatabaseBytesMax));
    constexpr std::string_view kForbidden("/\\. \"$*<>:|?\0", 13);
    if (ns.db.find_first_of(kForbidden) != std::string::npos)
        return Error(
            ErrorCode::InvalidNamespace,
            fmt::format(
                "Invalid database name: '{}' (none of /\\. \"$*<>:|? and no zero byte are allowed)",
                ns.db));
    const std::string full = ns.full();
    auto invalid = [&](std::string_view why) {
        return Error(ErrorCode::InvalidNamespace,
                     fmt::format("Invalid namespace specified '{}': {}", full, why));
    };
    if (ns.collection.empty()) return invalid("the collection name is empty");
    if (ns.collection.find('\0') != std::string::npos)
        return invalid("a collection name holds no zero byte");
    if (ns.collection.front() == '.') return invalid("a collection name does not start with a dot");
    if (ns.collection.find('$') != std::string::npos)
        return invalid("a collection name holds no '$'");
    if (ns.collection.rfind("system.", 0) == 0)
        return invalid("names that start with 'system.' are reserved");
    if (full.size() > kNamespaceBytesMax)
        return invalid(fmt::format("longer than {} bytes", kNamespaceBytesMax));
    return {};
}

}  // namespace angelia::engine
