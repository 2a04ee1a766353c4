#include "cli/input.h"

#include "cli/common.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

namespace angelia::cli {

Result<Input> Input::open(const std::string& name, const SignalWatch* signals) {
    Input input;
    input.signals_ = signals;
    const bool from_stdin = name == "-";
    input.name_ = from_stdin ? "stdin" : name;
    input.fd_ = from_stdin ? STDIN_FILENO : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    input.owned_ = !from_stdin && input.fd_ >= 0;
    struct stat about {};
    if (input.fd_ < 0 || ::fstat(input.fd_, &about) != 0)
        return {ErrorCode::FileNotOpen,
                fmt::format("cannot read {}: {}", input.name_, std::strerror(errno))};
    if (S_ISDIR(about.st_mode))
        return {ErrorCode::FileNotOpen, fmt::format("{} is a folder, not a file", input.name_)};
    if (S_ISREG(about.st_mode)) input.size_ = static_cast<std::uint64_t>(about.st_size);
    return input;
}

Input::Input(Input&& other) noexcept
    : name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      owned_(std::exchange(other.owned_, false)),
      size_(other.size_),
      signals_(other.signals_) {}

Input::~Input() {
    if (owned_) ::close(fd_);
}

Result<bool> Input::read_some(std::string& into) {
    constexpr std::size_t kChunk = 256 * 1024;
    for (;;) {
        if (signals_ != nullptr) {
            pollfd fds[2] = {{fd_, POLLIN, 0}, {signals_->descriptor(), POLLIN, 0}};
            if (::poll(fds, 2, -1) < 0 && errno != EINTR)
                return {ErrorCode::FileStreamFailed,
                        fmt::format("cannot wait for {}: {}", name_, std::strerror(errno))};
            if (signals_->stopped())
                return {ErrorCode::Interrupted, fmt::format("stopped while reading {}", name_)};
            if (fds[0].revents == 0) continue;
        }
        const std::size_t before = into.size();
        into.resize(before + kChunk);
        const ssize_t n = ::read(fd_, into.data() + before, kChunk);
        const int error = errno;
        into.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
        if (n > 0) return true;
        if (n == 0) return false;
        if (error == EINTR || error == EAGAIN) continue;
        return {ErrorCode::FileStreamFailed,
                fmt::format("cannot read {}: {}", name_, std::strerror(error))};
    }
}

Result<std::string> Input::read_all() {
    std::string text;
    for (;;) {
        ANGELIA_TRY_ASSIGN(const bool more, read_some(text));
        if (!more) return text;
        if (text.size() > kBytesMax)
            return {ErrorCode::InvalidLength,
                    fmt::format("{} is longer than {} MiB; allowed is one JSON object of a "
                                "document's size",
                                name_, kBytesMax >> 20)};
    }
}

}  // namespace angelia::cli
