// What the commands share: options, exit codes, opening the store, saying errors.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/log.h>
#include <angelia/store/open.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

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
/// The same where every argument came from the command line: what is wrong with one is usage.
int fail_arguments(const Error& error);
int exit_code_of(const Error& error);
/// What shells say of a program that a signal ended: 128 + signal.
inline int exit_code_of_signal(int signal) { return 128 + signal; }

/// The store of --store. Errors: BadValue where the address is wrong, whoever found that out.
Result<store::Store> open_common_store(const CommonOptions& options);

/// For options whose text is stored in documents: CLI11 refuses what is not UTF-8.
CLI::Option* add_text_option(CLI::App& command, const std::string& name, std::string& text,
                             const std::string& help);
CLI::Option* add_text_option(CLI::App& command, const std::string& name,
                             std::vector<std::string>& texts, const std::string& help);
/// For topics on the command line.
CLI::Option* add_topic_option(CLI::App& command, std::string& topic, const std::string& help);
CLI::Option* add_topic_option(CLI::App& command, std::vector<std::string>& topics,
                              const std::string& help);
/// For durations: checked while the command line is read. `least`: 0 where no time is a time too.
CLI::Option* add_duration_option(CLI::App& command, const std::string& name, std::string& text,
                                 const std::string& help, milliseconds least = milliseconds(1));

/// Warnings and errors to stderr, more with --verbose.
LogFunction stderr_log(bool verbose);

/// Stops the calling command on SIGINT, SIGTERM or SIGHUP (unless that is ignored, as nohup does);
/// before the first object is made they end the process as usual. A second SIGINT ends it at once.
class SignalWatch {
  public:
    SignalWatch();
    bool stopped() const;
    /// Which one came; 0: none, or notify() did.
    int signal() const;
    /// Readable once stopped.
    int descriptor() const;
    /// Waits for a signal at most `for_`; true when one came. nullopt waits for ever.
    bool wait(std::optional<milliseconds> for_ = std::nullopt) const;
    /// As if a signal had come: ends wait(). Threads: safe.
    static void notify();
    /// What a second SIGINT calls before it ends the process; must be safe in a signal handler.
    static void at_second_interrupt(void (*function)());
};

bool stdout_is_terminal();
bool stderr_is_terminal();

}  // namespace angelia::cli
