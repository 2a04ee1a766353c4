#include "cli/run_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace angelia::cli {
namespace {

constexpr std::size_t kOutBytesMax = 15 * 1024 * 1024;  // below what a message may hold
constexpr std::size_t kErrBytesMax = 64 * 1024;

class Pipe {
  public:
    ~Pipe() {
        close_read();
        close_write();
    }
    bool open() { return ::pipe2(ends_, O_CLOEXEC) == 0; }
    int read_end() const { return ends_[0]; }
    int write_end() const { return ends_[1]; }
    void close_read() { close_one(ends_[0]); }
    void close_write() { close_one(ends_[1]); }

  private:
    static void close_one(int& fd) {
        if (fd >= 0) ::close(fd);
        fd = -1;
    }
    int ends_[2] = {-1, -1};
};

/// Reads what is there; false at the end of the stream.
bool drain(int fd, std::string& into, std::size_t most) {
    char buffer[16384];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    if (n == 0) return false;
    if (into.size() < most)
        into.append(buffer, std::min(static_cast<std::size_t>(n), most - into.size()));
    return true;
}

/// Moves bytes until both outputs ended or the time is over.
bool exchange(Pipe& in, Pipe& out, Pipe& err, const std::string& input, CommandOutcome& outcome,
              SteadyTime deadline) {
    std::size_t written = 0;
    ::fcntl(in.write_end(), F_SETFL, O_NONBLOCK);
    if (input.empty()) in.close_write();
    while (out.read_end() >= 0 || err.read_end() >= 0) {
        pollfd fds[3] = {
            {out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}, {in.write_end(), POLLOUT, 0}};
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - real_clock().steady_now()).count();
        if (left <= 0) return false;
        if (::poll(fds, 3, static_cast<int>(std::min<std::int64_t>(left, 60'000))) < 0 &&
            errno != EINTR)
            return false;
        if (fds[0].revents != 0 && !drain(out.read_end(), outcome.out, kOutBytesMax))
            out.close_read();
        if (fds[1].revents != 0 && !drain(err.read_end(), outcome.err, kErrBytesMax))
            err.close_read();
        if (fds[2].revents != 0) {
            const ssize_t n =
                ::write(in.write_end(), input.data() + written, input.size() - written);
            if (n > 0) written += static_cast<std::size_t>(n);
            if ((n < 0 && errno != EAGAIN && errno != EINTR) || written == input.size())
                in.close_write();  // it need not read all
        }
    }
    return true;
}

}  // namespace

Result<CommandOutcome> run_command(const std::string& command, const std::string& input,
                                   milliseconds timeout) {
    Pipe in, out, err;
    if (!in.open() || !out.open() || !err.open())
        return {ErrorCode::OperationFailed,
                fmt::format("no pipe for '{}': {}", command, std::strerror(errno))};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in.read_end(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP);  // so that a time-out ends its children too
    const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
    pid_t pid = -1;
    const int rc =
        ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, const_cast<char**>(argv), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (rc != 0)
        return {ErrorCode::OperationFailed,
                fmt::format("cannot start '{}': {}", command, std::strerror(rc))};
    in.close_read();
    out.close_write();
    err.close_write();

    CommandOutcome outcome;
    outcome.timed_out =
        !exchange(in, out, err, input, outcome, real_clock().steady_now() + timeout);
    if (outcome.timed_out) ::kill(-pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

}  // namespace angelia::cli
