#include <angelia/base/crc32c.h>

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace angelia {
namespace {

TEST(Crc32c, KnowsTheVectorsOfRfc3720) {
    std::string rising(32, '\0');
    for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<char>(i);
    EXPECT_EQ(crc32c(""), 0U);
    EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
    EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
    EXPECT_EQ(crc32c(rising), 0x46DD794EU);
}

TEST(Crc32c, IsTheSameByTableAndInPieces) {
    std::mt19937 random(7);
    std::string bytes(1000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    for (std::size_t size = 0; size < 70; ++size) {
        const auto part = std::string_view(bytes).substr(size % 7, size);
        EXPECT_EQ(crc32c(part), detail::crc32c_by_table(part)) << size;
    }
    const std::string_view all = bytes;
    EXPECT_EQ(crc32c(all.substr(333), crc32c(all.substr(0, 333))), detail::crc32c_by_table(all));
}

}  // namespace
}  // namespace angelia
