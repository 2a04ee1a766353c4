#include "cli/output.h"

#include "cli/common.h"

#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace angelia::cli {
namespace {

std::atomic<int> first_output_error{0};

void keep_output_error() {
    int none = 0;
    first_output_error.compare_exchange_strong(none, errno != 0 ? errno : EIO);
}

}  // namespace

void hold_standard_streams() {
    ::signal(SIGPIPE, SIG_IGN);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        // The lowest free number is this one, as those below are taken by now.
        [[maybe_unused]] const int held =
            ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

void write_out(std::string_view text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) keep_output_error();
}

void write_err(std::string_view text) {
    [[maybe_unused]] const auto written = std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

bool stdout_lost() {
    errno = 0;
    if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        keep_output_error();
    return first_output_error != 0;
}

int finish_output(int code) {
    if (!stdout_lost()) return code;
    say("angelia: cannot write to stdout: {}\n", std::strerror(first_output_error));
    return code == kOk ? static_cast<int>(kFailed) : code;
}

}  // namespace angelia::cli
