#include "engine/storage/endpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace angelia::engine::storage {
namespace {

std::string endpoint_path(const std::string& folder) { return folder + "/endpoint"; }

/// A reader of the file takes the rest of a line for one word of text, so control characters must
/// not get in.
std::string one_line(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    return text;
}

Error endpoint_failed(const std::string& path) {
    const int code = errno;
    return {code == ENOSPC ? ErrorCode::OutOfDiskSpace : ErrorCode::FileStreamFailed,
            fmt::format("cannot write '{}': {}", path, std::strerror(code))};
}

}  // namespace

Result<void> write_endpoint(const std::string& folder, const std::string& address) {
    const auto path = endpoint_path(folder);
    const auto fresh = path + ".new";
    std::FILE* file = std::fopen(fresh.c_str(), "we");
    if (file == nullptr) return endpoint_failed(fresh);
    auto text = fmt::format("pid {}\n", ::getpid());
    if (!address.empty()) text += fmt::format("address {}\n", one_line(address));
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = std::fclose(file) == 0;
    if (!written || !closed) return endpoint_failed(fresh);
    if (std::rename(fresh.c_str(), path.c_str()) != 0) return endpoint_failed(path);
    return {};
}

void remove_endpoint(const std::string& folder) {
    (void)std::remove(endpoint_path(folder).c_str());
}

std::string endpoint_holder(const std::string& folder) {
    std::ifstream file(endpoint_path(folder));
    std::string pid;
    std::string address;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("pid ", 0) == 0) pid = line.substr(4);
        if (line.rfind("address ", 0) == 0) address = line.substr(8);
    }
    if (pid.empty()) return "another process";
    return address.empty() ? fmt::format("process {}", pid)
                           : fmt::format("process {} ({})", pid, address);
}

}  // namespace angelia::engine::storage
