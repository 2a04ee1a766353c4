// kill -9 inside transactions: clients over the wire send their commits again until the server that
// came back says what became of them, and all of it must agree with what is there.
#include "transactions/wire_session.h"
#include "transactions/workload.h"

#include "support/serve_process.h"

#include <gtest/gtest.h>

#include <iostream>

namespace angelia::transactions {
namespace {

constexpr int kKills = 4;
constexpr int kKillsLong = 40;

std::uint16_t port_of(const std::string& uri) {
    const std::string before = "mongodb://127.0.0.1:";
    return static_cast<std::uint16_t>(std::stoi(uri.substr(before.size())));
}

bson::Document index_command() {
    return bson::from_json(R"({"createIndexes": "lists", "indexes": [
               {"key": {"k": 1}, "name": "k_1"}, {"key": {"values": 1}, "name": "values_1"}],
               "$db": "app"})")
        .value_or_throw();
}

Lists lists_of_server(std::uint16_t port) {
    const auto reply = wire_command(port, bson::make("find", kLists.collection, "batchSize",
                                                     std::int32_t{100'000}, "$db", kLists.db))
                           .value_or_throw();
    Lists lists;
    const auto batch = reply.view().find_path("cursor.firstBatch").as_document();
    for (const auto& element : batch) add_list(lists, element.value.as_document());
    return lists;
}

void kill_under_transactions(const char* durability) {
    const unsigned seed = test::test_seed();
    std::mt19937 random(seed);
    test::TemporaryFolder folder("transactions");
    test::ServeProcess server(folder.path(), {"--durability", durability});
    server.start();
    const auto port = port_of(server.uri());
    wire_command(port, index_command()).value_or_throw();

    Recorder recorder;
    WireCounts counts;
    std::atomic<bool> over{false};
    std::thread killer([&] {
        for (int i = 0; i < (test::long_run() ? kKillsLong : kKills); ++i) {
            const auto goal = recorder.size() + 20 + random() % 60;
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (recorder.size() < goal && std::chrono::steady_clock::now() < deadline)
                std::this_thread::sleep_for(microseconds(200));
            EXPECT_GE(recorder.size(), goal) << "the clients do not get on";
            std::this_thread::sleep_for(microseconds(random() % 5000));  // a random instant
            server.kill();
            server.start();
        }
        over = true;
    });
    Plan plan;
    plan.seed = seed;
    plan.turns = 1'000'000;
    run(
        plan, [&](std::int64_t number) { return wire_session(port, number, counts); }, recorder,
        [&] { return over.load(); });
    killer.join();

    const auto report = check(recorder.take(lists_of_server(port)));
    std::cout << report.committed << " committed, " << report.aborted << " aborted; commits sent "
              << "again: " << counts.retried_and_committed << " had happened, "
              << counts.retried_and_aborted << " had not" << std::endl;
    EXPECT_EQ(report.text(), "") << "seed " << seed;
    EXPECT_EQ(report.unknown, 0u);
    EXPECT_GT(report.committed, 40u);
    const auto valid =
        wire_command(port, bson::make("validate", kLists.collection, "$db", kLists.db))
            .value_or_throw();
    EXPECT_TRUE(valid.view()["valid"].truthy()) << bson::to_json(valid.view());
    EXPECT_EQ(server.stop(), 0);
}

TEST(TransactionsKillNine, LeavesEachWholeOrNotAtAll) { kill_under_transactions("strict"); }

TEST(TransactionsKillNine, LeavesEachWholeOrNotAtAllWithoutASyncForEach) {
    kill_under_transactions("periodic");
}

}  // namespace
}  // namespace angelia::transactions
