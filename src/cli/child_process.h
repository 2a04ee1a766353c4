// A process of this program that dies with its parent: its stdin is a pipe that only the parent
// holds.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/result.h>

#include <string>
#include <vector>

#include <sys/types.h>

namespace angelia::cli {

/// Not thread-safe. The destructor kills and reaps.
class ChildProcess {
  public:
    /// Error: OperationFailed.
    static Result<ChildProcess> start(const std::string& program,
                                      const std::vector<std::string>& arguments);
    /// Starts this very program.
    static Result<ChildProcess> start_self(const std::vector<std::string>& arguments) {
        return start("/proc/self/exe", arguments);
    }
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;
    ~ChildProcess();

    Result<void> write_line(const std::string& line);
    /// Next line of its stdout. Errors: NetworkTimeout after `timeout`, OperationFailed when it
    /// ended.
    Result<std::string> read_line(milliseconds timeout);
    void close_stdin();
    /// kill -9 and reap.
    void kill();
    /// Waits for its end; kills it after `timeout`. Its exit code, 128 + signal when a signal ended
    /// it.
    int wait(milliseconds timeout);
    pid_t pid() const { return pid_; }

  private:
    ChildProcess() = default;
    bool reap(int flags);
    pid_t pid_ = -1;  ///< -1: reaped
    int stdin_ = -1;
    int stdout_ = -1;
    int exit_code_ = 0;
    std::string pending_;  ///< read, not yet handed out
};

}  // namespace angelia::cli
