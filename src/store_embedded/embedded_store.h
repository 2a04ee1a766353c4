// The store port over the engine in this process: verbs build the engine's own structs, nothing is
// encoded or parsed on the way.
#pragma once

#include "engine/engine.h"

#include <angelia/store/open.h>
#include <angelia/store/store.h>

#include <memory>

namespace angelia::store_embedded {

/// A store over an engine that is open already; several stores may share it. Whoever made the
/// engine closes it. `description`: what describe() answers.
store::Store open_embedded(std::shared_ptr<engine::Engine> engine, std::string database,
                           std::string description = "embedded");

/// The store of a folder, or a named one in memory. All stores of one place in this process share
/// one engine, which is closed with the last of them. Errors: those of Engine::open.
Result<std::shared_ptr<store::StoreAdapter>> open_embedded(const store::StoreAddress& address,
                                                           const store::OpenOptions& options);

/// The engine behind a store of this module; null for other stores.
std::shared_ptr<engine::Engine> engine_of(const store::Store& store);

}  // namespace angelia::store_embedded
