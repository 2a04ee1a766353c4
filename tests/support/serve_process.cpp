#include "support/serve_process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>

namespace angelia::test {

TemporaryFolder::TemporaryFolder(const std::string& name) {
    std::string pattern = testing::TempDir() + "angelia-" + name + "-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // what is left over lies in the temporary folder
    std::filesystem::remove_all(path_, ignored);
}

std::string program() {
    const char* path = std::getenv("ANGELIA_PROGRAM");
    if (path == nullptr)
        throw std::runtime_error("ANGELIA_PROGRAM must name the angelia program (ctest sets it)");
    return path;
}

void ServeProcess::start() {
    ::signal(SIGPIPE, SIG_IGN);
    std::vector<std::string> arguments{"serve", "--data", data_, "--port", std::to_string(port_)};
    arguments.insert(arguments.end(), options_.begin(), options_.end());
    process_.emplace(cli::ChildProcess::start(program(), arguments).value_or_throw());
    const std::string line = process_->read_line(milliseconds(30'000)).value_or_throw();
    const auto at = line.find("mongodb://127.0.0.1:");
    if (at == std::string::npos) throw std::runtime_error("angelia serve said: " + line);
    port_ = std::atoi(line.c_str() + at + 20);
}

void ServeProcess::kill() { process_->kill(); }

int ServeProcess::stop() {
    ::kill(process_->pid(), SIGTERM);
    return process_->wait(milliseconds(20'000));
}

std::string ServeProcess::uri() const {
    return "mongodb://127.0.0.1:" + std::to_string(port_) +
           "/angelia?replicaSet=rs0&serverSelectionTimeoutMS=10000";
}

unsigned test_seed() {
    const char* given = std::getenv("ANGELIA_TEST_SEED");
    const unsigned seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                           : std::random_device{}();
    std::printf("seed %u (set ANGELIA_TEST_SEED to play it again)\n", seed);
    std::fflush(stdout);
    return seed;
}

bool long_run() { return std::getenv("ANGELIA_LONG") != nullptr; }

}  // namespace angelia::test
