// A data folder that a newer version wrote: `angelia serve` refuses it, names both versions, and
// leaves it as it is.
#include "support/serve_process.h"

#include "engine/storage/storage.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace angelia::test {
namespace {

using engine::storage::Family;
using engine::storage::Storage;

std::unique_ptr<Storage> open_folder(const std::string& path) {
    engine::storage::Options options;
    options.path = path;
    return Storage::open(options).value_or_throw();
}

void set_format(const std::string& path, const std::string& bytes) {
    auto storage = open_folder(path);
    auto section = storage->begin_apply();
    section->put(Family::Meta, "format", bytes);
    storage->wait_durable(section->commit().value_or_throw()).value_or_throw();
    storage->close().value_or_throw();
}

struct Ended {
    int code = -1;
    std::string output;
};

/// Runs `serve` on the folder; what it says on both outputs, and how it ends.
Ended serve(const std::string& path) {
    const std::string command =
        "timeout 20 '" + program() + "' serve --data '" + path + "' --port 0 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    Ended ended;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
        ended.output.append(buffer, n);
    ended.code = WEXITSTATUS(::pclose(pipe));
    return ended;
}

TEST(NewerVersion, OfTheDataFolderIsRefusedByName) {
    TemporaryFolder folder("newer");
    const std::string path = folder.path() + "/data";
    set_format(path, std::string("\0\0\0\x02\0\0\0\x03", 8));
    for (int i = 0; i < 2; ++i) {  // refused again: the first attempt changed nothing
        const auto ended = serve(path);
        EXPECT_EQ(ended.code, 1);
        EXPECT_NE(ended.output.find("2.3"), std::string::npos) << ended.output;
        EXPECT_NE(ended.output.find("1.x"), std::string::npos) << ended.output;
        EXPECT_NE(ended.output.find(path), std::string::npos) << ended.output;
    }
}

TEST(NewerVersion, AnotherMinorVersionIsServed) {
    TemporaryFolder folder("minor");
    const std::string path = folder.path() + "/data";
    set_format(path, std::string("\0\0\0\x01\0\0\0\x07", 8));
    ServeProcess server(path);
    server.start();
    EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace angelia::test
