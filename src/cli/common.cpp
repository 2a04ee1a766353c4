#include "cli/common.h"

#include "cli/duration.h"
#include "cli/output.h"

#include <angelia/angelia.h>
#include <angelia/bson/validate.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace angelia::cli {
namespace {

int signal_pipe[2] = {-1, -1};
std::atomic<int> signal_came{0};
std::atomic<void (*)()> last_resort{nullptr};

void on_signal(int number) {
    int none = 0;
    if (number != 0 && !signal_came.compare_exchange_strong(none, number) && number == SIGINT) {
        if (auto* const function = last_resort.load()) function();
        ::_exit(exit_code_of_signal(number));
    }
    const int saved = errno;
    const char byte = 1;
    [[maybe_unused]] const auto n =
        ::write(signal_pipe[1], &byte, 1);  // full: then it is readable already
    errno = saved;
}

CLI::Validator topic_check() {
    return CLI::Validator(
        [](std::string& given) -> std::string {
            const auto checked = delivery::check_topic(given);
            return checked ? std::string() : checked.error().message;
        },
        "");
}

CLI::Validator utf8_check() {
    return CLI::Validator(
        [](std::string& given) -> std::string {
            return bson::is_utf8(given) ? std::string() : "is not UTF-8; allowed is UTF-8 text";
        },
        "");
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
    add_text_option(command, "--queue", options.queue, "name of the queue")->capture_default_str();
    command.add_option("--layout", options.layout, "standard")
        ->check(CLI::IsMember({"standard"}, CLI::ignore_case))
        ->capture_default_str();
    add_text_option(command, "--id", options.id, "sender id of this node (default: a random UUID)");
}

CLI::Option* add_text_option(CLI::App& command, const std::string& name, std::string& text,
                             const std::string& help) {
    return command.add_option(name, text, help)->check(utf8_check());
}

CLI::Option* add_text_option(CLI::App& command, const std::string& name,
                             std::vector<std::string>& texts, const std::string& help) {
    return command.add_option(name, texts, help)->check(utf8_check());
}

CLI::Option* add_topic_option(CLI::App& command, std::string& topic, const std::string& help) {
    return command.add_option("topic", topic, help)->check(topic_check());
}

CLI::Option* add_topic_option(CLI::App& command, std::vector<std::string>& topics,
                              const std::string& help) {
    return command.add_option("topic", topics, help)->check(topic_check());
}

CLI::Option* add_duration_option(CLI::App& command, const std::string& name, std::string& text,
                                 const std::string& help, milliseconds least) {
    return command.add_option(name, text, help)
        ->check(CLI::Validator(
            [least](std::string& given) -> std::string {
                const auto duration = parse_duration(given);
                if (!duration) return duration.error().message;
                if (*duration < least)
                    return fmt::format("'{}' is too short; allowed is {} ms and more", given,
                                       least.count());
                return {};
            },
            "DURATION"));
}

int exit_code_of(const Error& error) {
    switch (error.code) {
        case ErrorCode::HostUnreachable:
        case ErrorCode::HostNotFound:
        case ErrorCode::SocketException:
        case ErrorCode::NetworkTimeout:
            return kUnreachable;
        default:
            return kFailed;
    }
}

int fail(const Error& error) {
    say("angelia: {}\n", error.message);
    return exit_code_of(error);
}

int fail_arguments(const Error& error) {
    const int code = fail(error);
    const bool usage = error.code == ErrorCode::BadValue || error.code == ErrorCode::FailedToParse;
    return usage ? static_cast<int>(kUsage) : code;
}

int fail(ErrorCode code, const std::string& message) { return fail(Error(code, message)); }

Result<store::Store> open_common_store(const CommonOptions& options) {
    store::OpenOptions open;
    open.log = stderr_log(options.verbose);
    // The driver's own lines are about single connections; what matters of them comes as errors of
    // calls.
    set_mongo_driver_log(options.verbose ? open.log : LogFunction());
    auto store = store::open_store(options.store, open);
    // The driver knows what the rest of an address may hold, and says so with a parser's code.
    if (!store && store.error().code == ErrorCode::FailedToParse)
        return {ErrorCode::BadValue, store.error().message};
    return store;
}

LogFunction stderr_log(bool verbose) {
    return [verbose](LogLevel level, std::string_view message) {
        static constexpr const char* names[] = {"debug", "info", "warning", "error"};
        if (!verbose && level < LogLevel::Warning) return;
        say("angelia: {}: {}\n", names[static_cast<int>(level)], message);
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
    struct sigaction hang_up = {};
    ::sigaction(SIGHUP, nullptr, &hang_up);
    if (hang_up.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

void SignalWatch::notify() { on_signal(0); }

void SignalWatch::at_second_interrupt(void (*function)()) { last_resort = function; }

int SignalWatch::signal() const { return signal_came; }

int SignalWatch::descriptor() const { return signal_pipe[0]; }

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
