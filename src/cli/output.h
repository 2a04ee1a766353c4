// stdout and stderr of the program. What stdout did not take is a failure (exit code 1), never
// silence; what stderr did not take cannot be told to anybody.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace angelia::cli {

/// Puts something that can neither be read nor written in the place of closed standard streams:
/// else the next file or socket that is opened would get their number, and with it what is printed.
/// Writing to a pipe whose reader is gone becomes an error. First thing in a process.
void hold_standard_streams();

/// To stdout; an error is kept for stdout_lost(). Whole texts also from several threads.
void write_out(std::string_view text);
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
    write_out(fmt::format(format, std::forward<Args>(args)...));
}

/// To stderr, at once.
void write_err(std::string_view text);
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
    write_err(fmt::format(format, std::forward<Args>(args)...));
}

/// Hands what was printed to the system; true when some of it did not arrive.
[[nodiscard]] bool stdout_lost();
/// At the end of a command: `code`, but failed, and said on stderr, when stdout was lost.
int finish_output(int code);

}  // namespace angelia::cli
