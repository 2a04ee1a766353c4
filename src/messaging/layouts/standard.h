// Standard: one collection for all messages of a queue, one for locks, one for participants.
#pragma once

#include "messaging/layouts/layout.h"

namespace angelia::messaging {

LayoutNames standard_layout(std::string_view queue);

}  // namespace angelia::messaging
