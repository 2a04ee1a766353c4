#include <angelia/base/base64.h>

#include <gtest/gtest.h>

namespace angelia {
namespace {

TEST(Base64, KnowsTheVectorsOfRfc4648) {
    const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                           {"f", "Zg=="},
                                                           {"fo", "Zm8="},
                                                           {"foo", "Zm9v"},
                                                           {"foob", "Zm9vYg=="},
                                                           {"fooba", "Zm9vYmE="},
                                                           {"foobar", "Zm9vYmFy"},
                                                           {"\xFF\xFE\xFD", "//79"}};
    for (const auto& [bytes, text] : vectors) {
        EXPECT_EQ(base64_encode(bytes), text);
        EXPECT_EQ(base64_decode(text), bytes);
    }
}

TEST(Base64, RefusesWhatItWouldNotWrite) {
    for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "====", "=Zg=", "Zh==", "Zm9=", "Zm 9v",
                             "Zm9v\n", "Zm-v", "Zg==Zg=="}) {
        EXPECT_EQ(base64_decode(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace angelia
