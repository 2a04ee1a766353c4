// `angelia serve` as a child process for tests: a folder and a port of its own, kill -9 and
// restart.
#pragma once

#include "cli/child_process.h"

#include <angelia/base/result.h>

#include <optional>
#include <string>

namespace angelia::test {

/// A fresh folder below the tests' temporary one; removed with the object.
class TemporaryFolder {
  public:
    explicit TemporaryFolder(const std::string& name);
    ~TemporaryFolder();
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// The program under test: $ANGELIA_PROGRAM, which ctest sets.
std::string program();

class ServeProcess {
  public:
    explicit ServeProcess(std::string data, std::vector<std::string> options = {})
        : data_(std::move(data)), options_(std::move(options)) {}
    /// Starts and waits until it accepts; a restart takes the port of the first start.
    void start();
    void kill();
    int stop();
    /// mongodb://127.0.0.1:PORT/angelia?...; options of the URI after `?` may be appended with '&'.
    std::string uri() const;

  private:
    std::string data_;
    std::vector<std::string> options_;
    int port_ = 0;
    std::optional<cli::ChildProcess> process_;
};

/// ANGELIA_TEST_SEED, else a new one; always printed, so that a failure can be played again.
unsigned test_seed();
/// ANGELIA_LONG is set: more rounds.
bool long_run();

}  // namespace angelia::test
