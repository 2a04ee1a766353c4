// The Diagnostics face of the embedded store.
#pragma once

#include "engine/engine.h"

#include <angelia/store/store.h>

namespace angelia::store_embedded {

std::unique_ptr<store::Diagnostics> make_diagnostics(std::shared_ptr<engine::Engine> engine);

}  // namespace angelia::store_embedded
