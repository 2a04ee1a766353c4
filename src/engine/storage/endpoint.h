// DIR/endpoint: who holds a data folder. Two lines of text, "pid N" and "address URI"; for people
// and for the lock error.
#pragma once

#include <angelia/base/result.h>

#include <string>

namespace angelia::engine::storage {

/// Replaces DIR/endpoint. Errors: FileStreamFailed, OutOfDiskSpace.
Result<void> write_endpoint(const std::string& folder, const std::string& address);
void remove_endpoint(const std::string& folder);
/// "process 123 (mongodb://127.0.0.1:27027)", or "another process" when the file tells nothing.
std::string endpoint_holder(const std::string& folder);

}  // namespace angelia::engine::storage
