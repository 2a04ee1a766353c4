#include "cli/common.h"

#include <angelia/angelia.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace angelia::cli {
namespace {

int signal_pipe[2] = {-1, -1};

void on_signal(int) {
    const char byte = 1;
    [[maybe_unused]] const auto n =
        ::write(signal_pipe[1], &byte, 1);  // the pipe is never full of more than a few bytes
}

}  // namespace

void add_common_options(CLI::App& command, CommonOptions& options) {
    if (const char* env = std::getenv("ANGELIA_STORE"); env != nullptr && *env != '\0')
        options.store = env;
    if (options.store.empty()) options.store = kDefaultStore;
    command
        .add_option("--store", options.store,
                    "embedded:DIR, embedded::memory: or mongodb://...; else $ANGELIA_STORE")
        ->capture_default_str();
    command.add_option("-o,--output", options.output, "table or json")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    command.add_flag("-v,--verbose", options.verbose, "say more on stderr");
}

void add_queue_options(CLI::App& command, QueueOptions& options) {
    command.add_option("--queue", options.queue, "name of the queue")->capture_default_str();
    command.add_option("--layout", options.layout, "standard")
        ->check(CLI::IsMember({"standard"}, CLI::ignore_case))
        ->capture_default_str();
    command.add_option("--id", options.id, "sender id of this node (default: a random UUID)");
}

int exit_code_of(const Error& error) {
    switch (error.code) {
        case ErrorCode::HostUnreachable:
        case ErrorCode::HostNotFound:
        case ErrorCode::SocketException:
        case ErrorCode::NetworkTimeout:
            return kUnreachable;
        case ErrorCode::ExceededTimeLimit:
            return kNoAnswer;
        default:
            return kFailed;
    }
}

int fail(const Error& error) {
    fmt::print(stderr, "angelia: {}\n", error.message);
    return exit_code_of(error);
}

int fail(ErrorCode code, const std::string& message) { return fail(Error(code, message)); }

Result<store::Store> open_common_store(const CommonOptions& options) {
    store::OpenOptions open;
    open.log = stderr_log(options.verbose);
    // The driver's own lines are about single connections; what matters of them comes as errors of
    // calls.
    set_mongo_driver_log(options.verbose ? open.log : LogFunction());
    return store::open_store(options.store, open);
}

LogFunction stderr_log(bool verbose) {
    return [verbose](LogLevel level, std::string_view message) {
        static constexpr const char* names[] = {"debug", "info", "warning", "error"};
        if (!verbose && level < LogLevel::Warning) return;
        fmt::print(stderr, "angelia: {}: {}\n", names[static_cast<int>(level)], message);
    };
}

SignalWatch::SignalWatch() {
    if (signal_pipe[0] >= 0) return;
    if (::pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        std::abort();  // no descriptors at start: nothing would work
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
}

void SignalWatch::notify() { on_signal(0); }

bool SignalWatch::stopped() const { return wait(milliseconds(0)); }

bool SignalWatch::wait(std::optional<milliseconds> for_) const {
    pollfd fd{signal_pipe[0], POLLIN, 0};
    for (;;) {
        const int n = ::poll(&fd, 1, for_ ? static_cast<int>(for_->count()) : -1);
        if (n > 0) return true;
        if (n == 0) return false;
        if (errno != EINTR) return true;
    }
}

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) != 0; }

}  // namespace angelia::cli
