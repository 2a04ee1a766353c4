#include "cli/run_command.h"

#include <angelia/base/check.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace angelia::cli {
namespace {

constexpr milliseconds kEndGrace{2000};
constexpr milliseconds kLookForEnd{20};  // where the kernel cannot tell of a process's end

// As many as listen may have threads; a signal handler can read nothing better than an array.
std::array<std::atomic<pid_t>, 1024> running_groups{};

void remember_group(pid_t group) {
    for (auto& slot : running_groups) {
        pid_t none = 0;
        if (slot.compare_exchange_strong(none, group)) return;
    }
}

void forget_group(pid_t group) {
    for (auto& slot : running_groups) {
        pid_t expected = group;
        if (slot.compare_exchange_strong(expected, 0)) return;
    }
}

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

void do_not_block(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// Keeps at most `most` bytes and counts the rest.
struct Collected {
    std::string& text;
    std::size_t most;
    std::uint64_t dropped = 0;

    void add(const char* bytes, std::size_t size) {
        const std::size_t kept = std::min(size, most - text.size());
        text.append(bytes, kept);
        dropped += size - kept;
    }
};

/// Reads what is there now, without waiting, and not what is added meanwhile: who writes without
/// end must not hold us here. Closes the pipe at its end.
void drain(Pipe& pipe, Collected& into) {
    int there = 0;
    if (pipe.read_end() < 0 || ::ioctl(pipe.read_end(), FIONREAD, &there) != 0) return;
    char buffer[65536];
    do {
        const ssize_t n = ::read(pipe.read_end(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) return pipe.close_read();
        into.add(buffer, static_cast<std::size_t>(n));
        there -= static_cast<int>(n);
    } while (there > 0);
}

/// One command: started, fed and listened to until it ended.
class RunningCommand {
  public:
    RunningCommand(int stop_descriptor, CommandOutcome& outcome)
        : stop_descriptor_(stop_descriptor),
          outcome_(outcome),
          collected_out_{outcome.out, kCommandOutBytesMax},
          collected_err_{outcome.err, kCommandErrBytesMax} {}
    ~RunningCommand() {
        if (end_descriptor_ >= 0) ::close(end_descriptor_);
    }

    Result<void> start(const std::string& command) {
        if (!in_.open() || !out_.open() || !err_.open())
            return {ErrorCode::OperationFailed,
                    fmt::format("no pipe for '{}': {}", command, std::strerror(errno))};
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in_.read_end(), STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out_.write_end(), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, err_.write_end(), STDERR_FILENO);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        sigset_t ours, none;  // what this program does with signals is no affair of the command's
        sigemptyset(&ours);
        sigemptyset(&none);
        for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) sigaddset(&ours, number);
        posix_spawnattr_setsigdefault(&attributes, &ours);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(  // a group, so that its children end with it
            &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
        const int rc = ::posix_spawn(&pid_, "/bin/sh", &actions, &attributes,
                                     const_cast<char**>(argv), environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        if (rc != 0)
            return {ErrorCode::OperationFailed,
                    fmt::format("cannot start '{}': {}", command, std::strerror(rc))};
        remember_group(pid_);
        in_.close_read();
        out_.close_write();
        err_.close_write();
        do_not_block(in_.write_end());
        do_not_block(out_.read_end());
        do_not_block(err_.read_end());
        end_descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
        return {};
    }

    /// Until the command ended, by itself or by us.
    void follow(const std::string& input, milliseconds timeout) {
        const auto deadline = real_clock().steady_now() + timeout;
        if (input.empty()) in_.close_write();
        while (!over()) {
            wait(ending_ ? *ending_ + kEndGrace : deadline);
            drain(out_, collected_out_);
            drain(err_, collected_err_);
            feed(input);
            const auto now = real_clock().steady_now();
            if (!ending_ && ended()) continue;  // what it wrote last is taken by over()
            if (!ending_ && collected_out_.dropped != 0) end(CommandOutcome::End::OutputTooLong);
            if (!ending_ && stop_seen_) end(CommandOutcome::End::RunnerStopping);
            if (!ending_ && now >= deadline) end(CommandOutcome::End::TimedOut);
            if (ending_ && now >= *ending_ + kEndGrace) break;
        }
        if (ending_) ::kill(-pid_, SIGKILL);  // before it is reaped, while the number is its own
        forget_group(pid_);
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        outcome_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (collected_err_.dropped != 0)
            outcome_.err +=
                fmt::format("\n[{} bytes and more were left out]\n", collected_err_.dropped);
    }

  private:
    bool ended() const {
        siginfo_t about{};
        return ::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               about.si_pid == pid_;
    }
    /// Ended by itself: with the command; what it wrote is in the pipe by then. Ended by us: when
    /// its children have closed their outputs too, or the grace is over.
    bool over() {
        if (!ended()) return false;
        drain(out_, collected_out_);
        drain(err_, collected_err_);
        if (!ending_ && collected_out_.dropped != 0)
            outcome_.end = CommandOutcome::End::OutputTooLong;
        return !ending_ || (out_.read_end() < 0 && err_.read_end() < 0);
    }
    void end(CommandOutcome::End why) {
        outcome_.end = why;
        ending_ = real_clock().steady_now();
        ::kill(-pid_, SIGTERM);
    }
    void wait(SteadyTime until) {
        auto left = std::chrono::ceil<milliseconds>(until - real_clock().steady_now());
        left = std::clamp(left, milliseconds(0), milliseconds(60'000));
        // Once it ended only its children's outputs count, and its own end would wake us for ever.
        const bool gone = ended();
        if (end_descriptor_ < 0 && !gone) left = std::min(left, kLookForEnd);
        pollfd fds[5] = {{out_.read_end(), POLLIN, 0},
                         {err_.read_end(), POLLIN, 0},
                         {in_.write_end(), POLLOUT, 0},
                         {gone ? -1 : end_descriptor_, POLLIN, 0},
                         {ending_ ? -1 : stop_descriptor_, POLLIN, 0}};
        if (::poll(fds, 5, static_cast<int>(left.count())) > 0) stop_seen_ = fds[4].revents != 0;
    }
    void feed(const std::string& input) {
        if (in_.write_end() < 0) return;
        const ssize_t n =
            ::write(in_.write_end(), input.data() + written_, input.size() - written_);
        if (n > 0) written_ += static_cast<std::size_t>(n);
        const bool refused = n < 0 && errno != EAGAIN && errno != EINTR;  // it need not read all
        if (refused || written_ == input.size()) in_.close_write();
    }

    const int stop_descriptor_;
    CommandOutcome& outcome_;
    Collected collected_out_, collected_err_;
    Pipe in_, out_, err_;
    pid_t pid_ = -1;
    int end_descriptor_ = -1;  ///< readable when the command ended; -1: the kernel has none
    std::size_t written_ = 0;
    bool stop_seen_ = false;
    std::optional<SteadyTime> ending_;  ///< since when it is told to end
};

}  // namespace

// Without descriptors at the start nothing would work.
CommandRunner::CommandRunner() { ANGELIA_CHECK(::pipe2(stop_pipe_, O_CLOEXEC) == 0); }

CommandRunner::~CommandRunner() {
    ::close(stop_pipe_[0]);
    ::close(stop_pipe_[1]);
}

Result<CommandOutcome> CommandRunner::run(const std::string& command, const std::string& input,
                                          milliseconds timeout) {
    CommandOutcome outcome;
    if (stopping_) {
        outcome.end = CommandOutcome::End::RunnerStopping;
        return outcome;
    }
    RunningCommand child(stop_pipe_[0], outcome);
    ANGELIA_TRY(child.start(command));
    child.follow(input, timeout);
    if (outcome.end == CommandOutcome::End::RunnerStopping) ++stopped_count_;
    return outcome;
}

void CommandRunner::stop() {
    if (stopping_.exchange(true)) return;
    const char byte = 1;
    ANGELIA_CHECK(::write(stop_pipe_[1], &byte, 1) == 1);
}

void CommandRunner::kill_all() {
    for (const auto& slot : running_groups) {
        if (const pid_t group = slot.load(); group > 0) ::kill(-group, SIGKILL);
    }
}

}  // namespace angelia::cli
