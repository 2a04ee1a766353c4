#include "cli/child_process.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace angelia::cli {

Result<ChildProcess> ChildProcess::start(const std::string& program,
                                         const std::vector<std::string>& arguments) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0)
        return {ErrorCode::OperationFailed, fmt::format("no pipe: {}", std::strerror(errno))};
    if (::pipe2(out, O_CLOEXEC) != 0) {
        ::close(in[0]);
        ::close(in[1]);
        return {ErrorCode::OperationFailed, fmt::format("no pipe: {}", std::strerror(errno))};
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    ChildProcess child;
    const int rc =
        ::posix_spawn(&child.pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    child.stdin_ = in[1];
    child.stdout_ = out[0];
    if (rc != 0) {
        child.pid_ = -1;
        return {ErrorCode::OperationFailed,
                fmt::format("cannot start {}: {}", program, std::strerror(rc))};
    }
    return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(stdin_, other.stdin_);
    std::swap(stdout_, other.stdout_);
    std::swap(exit_code_, other.exit_code_);
    std::swap(pending_, other.pending_);
    return *this;
}

ChildProcess::~ChildProcess() {
    kill();
    close_stdin();
    if (stdout_ >= 0) ::close(stdout_);
}

Result<void> ChildProcess::write_line(const std::string& line) {
    const std::string text = line + "\n";
    std::size_t written = 0;
    while (written < text.size()) {
        const ssize_t n = ::write(stdin_, text.data() + written, text.size() - written);
        if (n < 0 && errno != EINTR)
            return {ErrorCode::OperationFailed,
                    fmt::format("process {} does not read: {}", pid_, std::strerror(errno))};
        if (n > 0) written += static_cast<std::size_t>(n);
    }
    return {};
}

Result<std::string> ChildProcess::read_line(milliseconds timeout) {
    const auto deadline = real_clock().steady_now() + timeout;
    for (;;) {
        if (const auto end = pending_.find('\n'); end != std::string::npos) {
            std::string line = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return line;
        }
        const auto left =
            std::chrono::ceil<milliseconds>(deadline - real_clock().steady_now()).count();
        pollfd fd{stdout_, POLLIN, 0};
        const int ready = left > 0 ? ::poll(&fd, 1, static_cast<int>(left)) : 0;
        if (ready == 0)
            return {ErrorCode::NetworkTimeout,
                    fmt::format("process {} said nothing within {} ms", pid_, timeout.count())};
        char buffer[4096];
        const ssize_t n = ready < 0 ? -1 : ::read(stdout_, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return {ErrorCode::OperationFailed, fmt::format("process {} ended", pid_)};
        pending_.append(buffer, static_cast<std::size_t>(n));
    }
}

void ChildProcess::close_stdin() {
    if (stdin_ >= 0) ::close(stdin_);
    stdin_ = -1;
}

bool ChildProcess::reap(int flags) {
    int status = 0;
    pid_t got;
    do {
        got = ::waitpid(pid_, &status, flags);
    } while (got < 0 && errno == EINTR);
    if (got == 0) return false;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = -1;
    return true;
}

void ChildProcess::kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    reap(0);
}

int ChildProcess::wait(milliseconds timeout) {
    if (pid_ < 0) return exit_code_;
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    if (fd >= 0) {
        pollfd p{fd, POLLIN, 0};
        ::poll(&p, 1, static_cast<int>(timeout.count()));
        ::close(fd);
    }
    if (!reap(WNOHANG)) kill();
    return exit_code_;
}

}  // namespace angelia::cli
