// Error labels (contract 6.3, 5.5): what drivers at wire version 9 and above wait for before they
// try again.
#pragma once

#include "engine/command/call.h"

#include <string>
#include <vector>

namespace angelia::engine::command {

/// Codes of a server that is no longer, or not yet, the primary or shuts down: the reply carries
/// topologyVersion.
bool is_state_change(ErrorCode code);

/// The labels of an error reply: those of a fail point if it names some, else the error's own plus
/// RetryableWriteError where it applies.
std::vector<std::string> labels_for(Call& call, const Error& error);
/// The same for a writeConcernError in an otherwise good reply.
std::vector<std::string> labels_for_write_concern_error(Call& call, ErrorCode code);

/// For an error of a command that is known to serve a change stream: drivers resume on the label.
void add_change_stream_label(Error& error);

}  // namespace angelia::engine::command
