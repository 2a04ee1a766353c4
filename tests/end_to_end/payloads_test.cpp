// Real payloads through publisher, server and workers as processes, while a worker and then the
// server are killed with -9 at random instants: nothing is lost, attempts are what the proof of the
// demo demands, and the bytes that arrive are the bytes that were sent.
#include "support/serve_process.h"

#include "cli/demo_input.h"
#include "cli/demo_proof.h"

#include <angelia/angelia.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>
#include <unordered_map>

namespace angelia::test {
namespace {

using cli::ChildProcess;
using cli::demo::Kind;

class Cast {
  public:
    explicit Cast(const std::string& uri, const std::vector<std::string>& topics)
        : uri_(uri), topics_(topics) {}
    void start(const std::string& id, Kind kind) {
        auto child = ChildProcess::start(
                         program(), {"demo-node", "--store", uri_, "--id", id, "--role",
                                     kind_name(kind), "--lease-ms", "2000", "--record-payload"})
                         .value_or_throw();
        for (const auto& topic : topics_) child.write_line(topic_of(topic, kind)).value_or_throw();
        child.write_line("").value_or_throw();
        child.read_line(milliseconds(30'000)).value_or_throw();
        children_.emplace(id, std::move(child));
    }
    void kill(const std::string& id) { children_.erase(id); }
    void stop() {
        for (auto& [id, child] : children_) child.close_stdin();
        for (auto& [id, child] : children_) EXPECT_EQ(child.wait(milliseconds(15'000)), 0) << id;
    }

  private:
    std::string uri_;
    const std::vector<std::string>& topics_;
    std::map<std::string, ChildProcess> children_;
};

/// Publishes under a chosen id until the store has it: the id makes the retry harmless.
void publish_surely(Messaging& node, Message message) {
    for (int tries = 0; tries < 50; ++tries) {
        auto result = node.publish(message.copy());
        if (result || result.error().code == ErrorCode::DuplicateKey) return;
        std::printf("publish again: %s\n", result.error().message.c_str());
    }
    FAIL() << "the server did not come back";
}

void insert_surely(Store& store, const char* collection, const bson::Document& document) {
    for (int tries = 0; tries < 50; ++tries) {
        auto result = store.insert(store.collection(collection), document);
        if (result &&
            (result->errors.empty() || result->errors[0].error.code == ErrorCode::DuplicateKey))
            return;
        if (!result && result.error().code == ErrorCode::DuplicateKey) return;
    }
    FAIL() << "the server did not come back";
}

struct Sent {
    std::unordered_map<bson::ObjectId, std::string> payloads;
};

void publish_all(Store& store, const cli::demo::Input& input, Sent& sent) {
    Messaging node(store, {.id = "publisher"});
    for (const Message& original : input.messages) {
        for (const Kind kind : {Kind::Broadcast, Kind::Work}) {
            Message m = original.copy();
            m.id = bson::ObjectId::generate();
            m.topic = topic_of(original.topic, kind);
            m.exclusive = kind == Kind::Work;
            if (kind == Kind::Broadcast) m.ttl = milliseconds(600'000);
            sent.payloads.emplace(m.id, std::string(m.map_value->bytes()));
            const auto record = bson::make("_id", m.id, "kind", static_cast<std::int32_t>(kind));
            publish_surely(node, std::move(m));
            insert_surely(store, cli::demo::kPublished, record);
        }
    }
}

cli::demo::Records wait_until_complete(Store& store) {
    cli::demo::Records records;
    const auto deadline = real_clock().steady_now() + std::chrono::seconds(90);
    do {
        auto loaded = cli::demo::load_records(store);
        if (loaded) records = *std::move(loaded);
        if (loaded && check(records).missing == 0) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(
            100));  // polls another process; the outcome does not depend on it
    } while (real_clock().steady_now() < deadline);
    return records;
}

TEST(EndToEnd, RealPayloadsSurviveKilledWorkersAndAKilledServer) {
    const char* file = std::getenv("ANGELIA_DEMO_INPUT");
    ASSERT_NE(file, nullptr)
        << "ANGELIA_DEMO_INPUT must name the file that tools/demo_input.sh writes (ctest sets it)";
    const auto input = cli::demo::load_input(file).value_or_throw();
    std::printf("%s\n", input.source.c_str());
    std::mt19937 random(test_seed());
    const auto pick = [&](int from, int to) {
        return milliseconds(std::uniform_int_distribution<int>(from, to)(random));
    };

    TemporaryFolder folder("payloads");
    ServeProcess server(folder.path());
    server.start();
    Store store = open_store(server.uri()).value_or_throw();
    Cast cast(server.uri(), input.topics);
    for (const char* id : {"listener-1", "listener-2"}) cast.start(id, Kind::Broadcast);
    for (const char* id : {"worker-1", "worker-2", "worker-3"}) cast.start(id, Kind::Work);

    Sent sent;
    std::thread publisher([&] { publish_all(store, input, sent); });
    std::this_thread::sleep_for(pick(50, 700));  // a random instant, not a synchronisation
    insert_surely(store, cli::demo::kKills,
                  bson::make("_id", "worker-1", "at", bson::Date{real_clock().system_millis()}));
    cast.kill("worker-1");
    cast.start("worker-4", Kind::Work);
    std::this_thread::sleep_for(pick(50, 700));
    server.kill();
    server.start();
    publisher.join();

    const auto records = wait_until_complete(store);
    const auto proof = check(records);
    for (const auto& v : proof.violations) ADD_FAILURE() << v;
    EXPECT_EQ(proof.broadcasts, input.messages.size());
    EXPECT_EQ(proof.work, input.messages.size());
    std::printf("%zu effects, %zu later attempts\n", proof.effects, proof.later_attempts);

    store::FindRequest find;
    find.collection = store.collection(cli::demo::kEffects);
    std::size_t compared = 0;
    for (const auto& effect : store.find(find).value_or_throw()) {
        const auto payload = effect.find("payload").get_document();
        ASSERT_TRUE(payload.has_value());
        EXPECT_EQ(payload->bytes(), sent.payloads.at(effect.find("message").as_object_id()))
            << "bytes changed on the way";
        ++compared;
    }
    EXPECT_EQ(compared, proof.effects);
    cast.stop();
    auto closed = store.close();
    EXPECT_TRUE(closed);
    EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace angelia::test
