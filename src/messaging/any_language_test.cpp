// The examples of docs/messaging.md, "Publish from any language", as they stand there.
#include "messaging/testing/sim_cluster.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace angelia::messaging::testing {
namespace {

using namespace std::chrono_literals;

std::vector<bson::Document> documented_examples() {
    std::ifstream page(std::string(ANGELIA_SOURCE_DIR) + "/docs/messaging.md");
    std::stringstream text;
    text << page.rdbuf();
    std::vector<bson::Document> out;
    const std::string all = text.str(), open = "```json\n";
    for (auto at = all.find(open); at != std::string::npos; at = all.find(open, at + 1)) {
        const auto begin = at + open.size();
        out.push_back(
            bson::from_json(all.substr(begin, all.find("\n```", begin) - begin)).value_or_throw());
    }
    return out;
}

TEST(AnyLanguage, DocumentedExamplesAreDelivered) {
    for (const bool before_start : {true, false}) {
        SimCluster cluster;
        std::map<std::string, int> calls;
        const auto examples = documented_examples();
        ASSERT_EQ(examples.size(), 4u);
        const auto insert = [&] {
            for (const auto& example : examples) {
                bson::Builder b;
                b.add("_id", bson::ObjectId::generate()).add_all(example);  // as every driver does
                cluster.insert("msg", b.take());
            }
        };
        if (before_start) insert();
        auto& web = cluster.start("web-1");
        for (const char* topic : {"user.created", "invoice.run", "user.lookup"}) {
            web.bus->listen(topic, [&calls](const Message& m) { ++calls[m.topic]; })
                .value_or_throw();
        }
        cluster.pass(1s);
        if (!before_start) insert();
        cluster.pass(25s);
        EXPECT_EQ(calls, (std::map<std::string, int>{
                             {"invoice.run", 1}, {"user.created", 2}, {"user.lookup", 1}}));
        EXPECT_TRUE(web.bus->status().malformed.empty());
        EXPECT_EQ(cluster.documents("msg", bson::make("topic", "invoice.run")).size(), 0u);
    }
}

}  // namespace
}  // namespace angelia::messaging::testing
