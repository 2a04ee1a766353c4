// Runs shell commands with text on their stdin and collects what they say: listen --exec.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/result.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace angelia::cli {

inline constexpr std::size_t kCommandOutBytesMax =
    15 * 1024 * 1024;  // an answer: below what a document holds
inline constexpr std::size_t kCommandErrBytesMax = 64 * 1024;

struct CommandOutcome {
    enum class End : std::uint8_t {
        Itself,
        TimedOut,        ///< ended after the time limit
        OutputTooLong,   ///< ended when its stdout passed kCommandOutBytesMax
        RunnerStopping,  ///< ended, or never begun, as the runner stops
    };
    End end = End::Itself;
    int exit_code = 0;  ///< 128 + signal when a signal ended it
    std::string out;    ///< what was written until the command itself ended: children that it left
                        ///< behind may hold the pipe for ever
    std::string err;    ///< at most kCommandErrBytesMax; then a note says how much more there was
};

/// Threads: safe. Outlives its commands.
class CommandRunner {
  public:
    CommandRunner();
    ~CommandRunner();
    CommandRunner(const CommandRunner&) = delete;
    CommandRunner& operator=(const CommandRunner&) = delete;

    /// /bin/sh -c `command` in a process group of its own. Blocks the caller. The group is ended by
    /// SIGTERM, two seconds later by SIGKILL. Errors: OperationFailed when no process could be
    /// started.
    Result<CommandOutcome> run(const std::string& command, const std::string& input,
                               milliseconds timeout);
    /// Running commands are ended, later ones refused.
    void stop();
    /// How many running commands stop() has ended.
    std::size_t stopped_count() const { return stopped_count_; }

    /// SIGKILL to every group of this process that still runs. Safe in a signal handler.
    static void kill_all();

  private:
    int stop_pipe_[2] = {-1, -1};  ///< readable once it stops; never read
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> stopped_count_{0};
};

}  // namespace angelia::cli
