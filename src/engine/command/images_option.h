// changeStreamPreAndPostImages, as `create` and `collMod` take it.
#pragma once

#include "engine/command/arguments.h"

namespace angelia::engine::command {

/// {enabled: bool}; nothing when not given. Errors: TypeMismatch, Location40414, Location40415.
Result<std::optional<bool>> read_images_option(const Arguments& arguments,
                                               std::string_view command);

}  // namespace angelia::engine::command
