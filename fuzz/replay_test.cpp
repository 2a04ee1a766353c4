// Runs a fuzz target over the files of its corpus, one test per file. Usage: fuzz_corpus_<name>
// <folder>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

class ReplayFile : public testing::Test {
  public:
    explicit ReplayFile(std::filesystem::path path) : path_(std::move(path)) {}
    void TestBody() override {
        std::ifstream in(path_, std::ios::binary);
        ASSERT_TRUE(in) << path_;
        const std::string bytes((std::istreambuf_iterator<char>(in)),
                                std::istreambuf_iterator<char>());
        // A copy of exact size, so that a sanitizer sees a read past the end.
        const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
        EXPECT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
    }

  private:
    std::filesystem::path path_;
};

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::vector<std::filesystem::path> files;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
            files.push_back(entry.path());
    }
    if (files.empty()) {
        std::fprintf(stderr, "no corpus file found\n");
        return 2;
    }
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
        testing::RegisterTest("FuzzCorpus", path.filename().c_str(), nullptr, nullptr, path.c_str(),
                              __LINE__,
                              [path]() -> testing::Test* { return new ReplayFile(path); });
    }
    return RUN_ALL_TESTS();
}
