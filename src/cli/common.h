// What the commands share: options, exit codes, opening the store, saying errors.
#pragma once

#include <angelia/base/log.h>
#include <angelia/store/open.h>

#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace angelia::cli {

enum ExitCode : int { kOk = 0, kFailed = 1, kUsage = 2, kUnreachable = 3, kNoAnswer = 4 };

inline constexpr const char* kDefaultStore = "mongodb://127.0.0.1:27027/angelia";

/// Options that every command which talks to a store takes.
struct CommonOptions {
    std::string store;             ///< --store, else ANGELIA_STORE, else kDefaultStore
    std::string output = "table";  ///< -o
    bool verbose = false;
    bool json() const { return output == "json"; }
};

/// And those that join a queue.
struct QueueOptions {
    std::string queue = "msg";
    std::string layout = "standard";
    std::string id;
};

/// What main() runs once the command line was read: set by the command that was chosen.
struct Invocation {
    std::function<int()> run;
};

/// One command: adds its sub-command to `app`; its callback sets `invocation.run`.
using AddCommand = void (*)(CLI::App& app, Invocation& invocation);

void add_common_options(CLI::App& command, CommonOptions& options);
void add_queue_options(CLI::App& command, QueueOptions& options);

/// Prints "angelia: <message>" to stderr and returns the exit code that fits the error.
int fail(const Error& error);
int fail(ErrorCode code, const std::string& message);
int exit_code_of(const Error& error);

Result<store::Store> open_common_store(const CommonOptions& options);

/// Warnings and errors to stderr, more with --verbose.
LogFunction stderr_log(bool verbose);

/// Stops the calling command on SIGINT or SIGTERM: one object for the process, made before threads
/// start.
class SignalWatch {
  public:
    SignalWatch();
    bool stopped() const;
    /// Waits for a signal at most `for_`; true when one came. nullopt waits for ever.
    bool wait(std::optional<milliseconds> for_ = std::nullopt) const;
    /// As if a signal had come: ends wait(). Threads: safe.
    static void notify();
};

bool stdout_is_terminal();
bool stderr_is_terminal();

}  // namespace angelia::cli
