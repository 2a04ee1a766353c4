#include <angelia/store/open.h>

#include <gtest/gtest.h>

namespace angelia::store {
namespace {

std::string parsed(std::string_view text) {
    auto a = StoreAddress::parse(text);
    if (!a) return a.error().to_string();
    static constexpr const char* kinds[] = {"embedded", "memory", "mongodb"};
    std::string out =
        std::string(kinds[static_cast<int>(a->kind)]) + " path=" + a->path + " db=" + a->database;
    for (const auto& [k, v] : a->options) out += " " + k + "=" + v;
    return out;
}

TEST(StoreAddress, TakesAddressesApart) {
    EXPECT_EQ(parsed("embedded:./data"), "embedded path=./data db=angelia");
    EXPECT_EQ(parsed("embedded:/var/lib/a?durability=periodic&database=shop"),
              "embedded path=/var/lib/a db=shop durability=periodic");
    EXPECT_EQ(parsed("embedded::memory:"), "memory path= db=angelia");
    EXPECT_EQ(parsed("embedded::memory:?name=x"), "memory path= db=angelia name=x");
    EXPECT_EQ(parsed("mongodb://127.0.0.1:27027"), "mongodb path= db=angelia");
    EXPECT_EQ(parsed("mongodb://a,b:1,c/app?replicaSet=rs0"), "mongodb path= db=app");
    EXPECT_EQ(parsed("mongodb://a/?replicaSet=rs0"), "mongodb path= db=angelia");
    EXPECT_EQ(parsed("mongodb://a?x=y/z"), "mongodb path= db=angelia");
    EXPECT_EQ(parsed("mongodb+srv://cluster.example/shop"), "mongodb path= db=shop");
}

TEST(StoreAddress, NamesWhatIsWrongAndWhatIsAllowed) {
    for (const char* bad :
         {"", "redis://x", "embedded:", "mongodb://", "mongodb:///db", "mongodb://user:pw@/db"}) {
        const std::string text = parsed(bad);
        EXPECT_NE(text.find("FailedToParse"), std::string::npos) << bad << " -> " << text;
        EXPECT_NE(text.find("allowed: embedded:DIR"), std::string::npos) << bad << " -> " << text;
    }
    EXPECT_EQ(parsed("embedded:d?color=red"),
              "BadValue (2): 'color=red' in 'embedded:d?color=red' is not allowed; options: "
              "database=NAME, durability=strict|periodic");
    EXPECT_NE(parsed("mongodb://h/a.b").find("is not allowed: 1 to 63 bytes"), std::string::npos);
}

TEST(StoreAddress, HidesSecretsWhenDescribed) {
    EXPECT_EQ(StoreAddress::parse("mongodb://me:secret@h:1/db?x=1")->describe(),
              "mongodb://h:1/db?x=1");
    EXPECT_EQ(StoreAddress::parse("mongodb://h/db")->describe(), "mongodb://h/db");
}

TEST(OpenStore, NamesTheComponentThatIsNotLinked) {
    auto embedded = open_store("embedded:./nowhere");
    ASSERT_FALSE(embedded);
    EXPECT_NE(embedded.error().message.find("angelia::embedded is not linked"), std::string::npos)
        << embedded.error().message;
    auto mongo = open_store("mongodb://user:pw@127.0.0.1:1/x");
    ASSERT_FALSE(mongo);
    EXPECT_NE(mongo.error().message.find("angelia::mongo is not linked"), std::string::npos)
        << mongo.error().message;
    EXPECT_EQ(mongo.error().message.find("pw"), std::string::npos);
}

}  // namespace
}  // namespace angelia::store
