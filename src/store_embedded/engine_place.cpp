#include "store_embedded/engine_place.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <mutex>

namespace angelia::store_embedded {
namespace {

struct OpenEngine {
    std::shared_ptr<engine::Engine> engine;
    std::string durability;
    int leases = 0;
};

/// Of the process, because a data folder can be open only once in it.
struct Places {
    std::mutex mutex;
    std::map<std::string, OpenEngine> open;
    std::uint64_t unnamed = 0;
};
Places& places() {
    static auto* const all =
        new Places;  // never destroyed: stores in statics may outlive any order
    return *all;
}

/// The same folder under every spelling.
std::string place_of(const store::StoreAddress& address, Places& all) {
    if (address.kind == store::StoreAddress::Kind::EmbeddedMemory) {
        const auto name = address.options.find("name");
        return name != address.options.end() ? "memory:" + name->second
                                             : fmt::format("memory::{}", ++all.unnamed);
    }
    std::error_code unknown;
    const auto path = std::filesystem::weakly_canonical(address.path, unknown);
    return "folder:" + (unknown ? address.path : path.string());
}

std::string durability_of(const store::StoreAddress& address) {
    const auto given = address.options.find("durability");
    return given == address.options.end() ? "" : given->second;
}

}  // namespace

Result<EngineLease> lease_engine(const store::StoreAddress& address,
                                 const store::OpenOptions& options) {
    Places& all = places();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const std::string place = place_of(address, all);
    const std::string durability = durability_of(address);
    if (const auto at = all.open.find(place); at != all.open.end()) {
        if (!durability.empty() && durability != at->second.durability) {
            return {ErrorCode::BadValue,
                    fmt::format("{} is open in this process with durability={}; it cannot be {} at "
                                "the same time",
                                address.describe(), at->second.durability, durability)};
        }
        ++at->second.leases;
        return EngineLease(at->second.engine, place);
    }
    engine::EngineOptions engine_options;
    engine_options.storage.path = address.path;
    engine_options.storage.memory = address.kind == store::StoreAddress::Kind::EmbeddedMemory;
    engine_options.storage.durability = durability == "periodic"
                                            ? engine::storage::Durability::Periodic
                                            : engine::storage::Durability::Strict;
    engine_options.storage.clock = options.clock;
    engine_options.storage.log = options.log;
    ANGELIA_TRY_ASSIGN(std::shared_ptr<engine::Engine> engine,
                       engine::Engine::open(std::move(engine_options)));
    all.open[place] = {engine, durability.empty() ? "strict" : durability, 1};
    return EngineLease(std::move(engine), place);
}

Result<void> EngineLease::release() {
    const std::shared_ptr<engine::Engine> engine = std::move(engine_);
    if (engine == nullptr || place_.empty()) return {};
    Places& all = places();
    // Under the lock: who opens the folder again must wait until it is closed.
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto at = all.open.find(place_);
    if (at == all.open.end() || --at->second.leases > 0) return {};
    all.open.erase(at);
    return engine->close();
}

}  // namespace angelia::store_embedded
