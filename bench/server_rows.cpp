#include "server_rows.h"

#include "wire_client.h"

#include "cli/child_process.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include <poll.h>

namespace angelia::bench {
namespace {

using cli::ChildProcess;
using BenchClock = std::chrono::steady_clock;

constexpr std::size_t kWarmUp = 200;
constexpr std::size_t kSamples = 2000;
constexpr int kClients = 64;
constexpr auto kManySeconds = std::chrono::seconds(5);
constexpr std::int64_t kAccounts = 20'000;

double microseconds_since(BenchClock::time_point t) {
    return std::chrono::duration<double, std::micro>(BenchClock::now() - t).count();
}

struct ServerProcess {
    std::optional<ChildProcess> process;
    int port = 0;
    Result<void> start(const std::string& address) {
        ANGELIA_TRY_ASSIGN(auto p, ChildProcess::start_self({"serve", address}));
        process.emplace(std::move(p));
        ANGELIA_TRY_ASSIGN(const std::string uri, process->read_line(milliseconds(10'000)));
        const auto colon = uri.find(':', uri.find("//") + 2);
        port = std::atoi(uri.c_str() + colon + 1);
        return {};
    }
};

std::string embedded(const std::string& folder, const char* name) {
    const std::string path = folder + "/" + name;
    std::filesystem::remove_all(path);
    return "embedded:" + path;
}

bson::Document session_id(int client) {
    std::string uuid(16, '\0');
    std::memcpy(uuid.data(), &client, sizeof client);
    return bson::make("id", bson::BinaryView{4, uuid});
}

/// Adds what makes `command` a statement of a transaction.
bson::Document in_transaction(const bson::Document& command, const bson::Document& lsid,
                              std::int64_t number, bool start) {
    bson::Builder b;
    b.add_all(command);
    b.add("lsid", lsid).add("txnNumber", number).add("autocommit", false);
    if (start) b.add("startTransaction", true);
    return b.take();
}

bson::Document commit_command() {
    return bson::make("commitTransaction", std::int32_t{1}, "$db", "admin");
}

bson::Document insert_command(std::int64_t id, const std::string& text) {
    return bson::make("insert", "bench", "documents", bson::array(bson::make("_id", id, "p", text)),
                      "$db", "bench");
}

bson::Document increment_command(std::int64_t id) {
    return bson::make("update", "accounts", "updates",
                      bson::array(bson::make("q", bson::make("_id", id), "u",
                                             bson::make("$inc", bson::make("n", std::int64_t{1})))),
                      "$db", "bench");
}

/// `count` calls one after another; each ends with its last answer.
Result<Quantiles> time_calls(std::size_t count,
                             const std::function<Result<void>(std::size_t)>& call) {
    std::vector<double> samples;
    for (std::size_t i = 0; i < count + kWarmUp; ++i) {
        const auto t = BenchClock::now();
        ANGELIA_TRY(call(i));
        if (i >= kWarmUp) samples.push_back(microseconds_since(t));
    }
    return quantiles(std::move(samples));
}

/// One of the many clients: goes from answer to answer through its transaction.
class TransferClient {
  public:
    TransferClient(WireClient connection, int number)
        : connection_(std::move(connection)),
          lsid_(session_id(1000 + number)),
          random_(static_cast<unsigned>(number)) {}

    int socket() const { return connection_.socket(); }
    Result<void> begin() {
        ++number_;
        step_ = 0;
        return connection_.send(in_transaction(increment_command(account()), lsid_, number_, true));
    }
    /// An answer has come. True: it was that of a commit.
    Result<bool> go_on() {
        auto answer = connection_.receive();
        if (!answer) {
            if (answer.error().code != ErrorCode::WriteConflict) return answer.error();
            ++conflicts_;
            ANGELIA_TRY(begin());
            return false;
        }
        if (++step_ == 1) {
            ANGELIA_TRY(connection_.send(
                in_transaction(increment_command(account()), lsid_, number_, false)));
            return false;
        }
        if (step_ == 2) {
            ANGELIA_TRY(connection_.send(in_transaction(commit_command(), lsid_, number_, false)));
            return false;
        }
        ANGELIA_TRY(begin());
        return true;
    }
    std::int64_t conflicts() const { return conflicts_; }

  private:
    std::int64_t account() {
        return std::uniform_int_distribution<std::int64_t>(0, kAccounts - 1)(random_);
    }
    WireClient connection_;
    bson::Document lsid_;
    std::mt19937 random_;
    std::int64_t number_ = 0;
    int step_ = 0;
    std::int64_t conflicts_ = 0;
};

Result<void> make_accounts(WireClient& client) {
    for (std::int64_t first = 0; first < kAccounts; first += 1000) {
        bson::Builder b;
        b.add("insert", "accounts").open_array("documents");
        for (std::int64_t id = first; id < first + 1000; ++id)
            b.push(bson::make("_id", id, "n", std::int64_t{0}));
        b.close().add("$db", "bench");
        ANGELIA_TRY(client.run(b.take()));
    }
    return {};
}

/// The sum over all accounts: what was acknowledged is there, once.
Result<std::int64_t> sum_of_accounts(WireClient& client) {
    const auto sum =
        bson::make("aggregate", "accounts", "pipeline",
                   bson::array(bson::make(
                       "$group", bson::make("_id", bson::Null(), "n", bson::make("$sum", "$n")))),
                   "cursor", bson::Document(), "$db", "bench");
    ANGELIA_TRY_ASSIGN(auto answer, client.run(sum));
    return answer.view().find_path("cursor.firstBatch.0.n").to_int64().value_or(-1);
}

}  // namespace

Result<Row> transaction_of_two(const std::string& folder) {
    ServerProcess server;
    ANGELIA_TRY(server.start(embedded(folder, "transaction")));
    ANGELIA_TRY_ASSIGN(auto client, WireClient::connect(server.port));
    ANGELIA_TRY(make_accounts(client));
    const auto lsid = session_id(1);
    std::int64_t number = 0;
    std::vector<Quantiles> plain, together;
    for (int i = 0; i < kRepetitions; ++i) {
        ANGELIA_TRY_ASSIGN(auto p, time_calls(kSamples, [&](std::size_t n) -> Result<void> {
                               const auto id = static_cast<std::int64_t>(n);
                               ANGELIA_TRY(client.run(increment_command(id)));
                               ANGELIA_TRY(client.run(increment_command(id + 10'000)));
                               return {};
                           }));
        plain.push_back(p);
        ANGELIA_TRY_ASSIGN(
            auto t, time_calls(kSamples, [&](std::size_t n) -> Result<void> {
                const auto id = static_cast<std::int64_t>(n);
                ++number;
                ANGELIA_TRY(client.run(in_transaction(increment_command(id), lsid, number, true)));
                ANGELIA_TRY(client.run(
                    in_transaction(increment_command(id + 10'000), lsid, number, false)));
                ANGELIA_TRY(client.run(in_transaction(commit_command(), lsid, number, false)));
                return {};
            }));
        together.push_back(t);
    }
    const auto p = median(plain);
    const auto t = median(together);
    Row row;
    row.what = "transaction of two writes, strict, one client";
    row.measured = fmt::format("{:.0f} us p50, {:.0f} us p99", t.p50_us, t.p99_us);
    row.floor = fmt::format("{:.0f} us: the same two alone", p.p50_us);
    row.ratio = t.p50_us / p.p50_us;
    row.goal = "<= 1.5";
    row.met = row.ratio <= 1.5;
    row.numbers = {{"p50_us", t.p50_us}, {"p99_us", t.p99_us}, {"plain_p50_us", p.p50_us}};
    return row;
}

Result<Row> transactions_of_many(const std::string& folder) {
    ServerProcess server;
    ANGELIA_TRY(server.start(embedded(folder, "transactions")));
    ANGELIA_TRY_ASSIGN(auto client, WireClient::connect(server.port));
    ANGELIA_TRY(make_accounts(client));
    std::vector<TransferClient> clients;
    std::vector<pollfd> sockets;
    for (int i = 0; i < kClients; ++i) {
        ANGELIA_TRY_ASSIGN(auto connection, WireClient::connect(server.port));
        clients.emplace_back(std::move(connection), i);
        sockets.push_back({clients.back().socket(), POLLIN, 0});
    }
    for (auto& c : clients) ANGELIA_TRY(c.begin());
    std::vector<double> rates;
    std::int64_t committed = 0;
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
        const auto start = BenchClock::now();
        const auto before = committed;
        while (BenchClock::now() - start < kManySeconds) {
            if (::poll(sockets.data(), sockets.size(), 1000) < 1)
                return Error(ErrorCode::NetworkTimeout, "no client had an answer for a second");
            for (std::size_t i = 0; i < clients.size(); ++i) {
                if ((sockets[i].revents & POLLIN) == 0) continue;
                ANGELIA_TRY_ASSIGN(const bool was_commit, clients[i].go_on());
                if (was_commit) ++committed;
            }
        }
        rates.push_back(static_cast<double>(committed - before) /
                        (microseconds_since(start) / 1e6));
    }
    std::int64_t conflicts = 0;
    for (const auto& c : clients) conflicts += c.conflicts();
    ANGELIA_TRY_ASSIGN(const auto sum, sum_of_accounts(client));
    // A commit of a transaction whose answer was not read any more may be there, too.
    if (sum < 2 * committed || sum > 2 * (committed + kClients))
        return Error(ErrorCode::InternalError,
                     fmt::format("{} transactions were acknowledged, but the accounts hold {}",
                                 committed, sum));
    const double rate = median(rates);
    Row row;
    row.what = fmt::format("{} clients, transactions of two writes, strict", kClients);
    row.measured = fmt::format("{:.0f}/s, {} conflicts in {}", rate, conflicts, committed);
    row.floor = "5000/s";
    row.ratio = rate / 5000;
    row.goal = ">= 5000/s";
    row.met = rate >= 5000;
    row.numbers = {{"per_second", rate},
                   {"conflicts", static_cast<double>(conflicts)},
                   {"committed", static_cast<double>(committed)}};
    return row;
}

Result<Row> single_insert(const Floors& floors, const std::string& folder) {
    ServerProcess server;
    ANGELIA_TRY(server.start(embedded(folder, "insert")));
    ANGELIA_TRY_ASSIGN(auto client, WireClient::connect(server.port));
    const std::string text = payload(kPayloadBytes, 4);
    std::vector<Quantiles> all;
    std::int64_t id = 0;
    for (int i = 0; i < kRepetitions; ++i) {
        ANGELIA_TRY_ASSIGN(auto q, time_calls(kSamples, [&](std::size_t) -> Result<void> {
                               ANGELIA_TRY(client.run(insert_command(++id, text)));
                               return {};
                           }));
        all.push_back(q);
    }
    const auto q = median(all);
    const double floor = floors.sync_us + floors.hops2_back_to_back.p50_us;
    Row row;
    row.what = "insert of 2 KB, strict, one client";
    row.measured = fmt::format("{:.0f} us p50, {:.0f} us p99", q.p50_us, q.p99_us);
    row.floor = fmt::format("{:.0f} us: sync + round trip", floor);
    row.ratio = q.p50_us / floor;
    row.goal = "<= 1.5";
    row.met = row.ratio <= 1.5;
    row.numbers = {{"p50_us", q.p50_us}, {"p99_us", q.p99_us}, {"floor_us", floor}};
    return row;
}

Result<Row> event_after_reply() {
    ServerProcess server;
    ANGELIA_TRY(server.start("embedded::memory:"));
    ANGELIA_TRY_ASSIGN(auto writer, WireClient::connect(server.port));
    ANGELIA_TRY_ASSIGN(auto watcher, WireClient::connect(server.port));
    ANGELIA_TRY(writer.run(bson::make("create", "bench", "$db", "bench")));
    const auto open = bson::make("aggregate", "bench", "pipeline",
                                 bson::array(bson::make("$changeStream", bson::Document())),
                                 "cursor", bson::Document(), "$db", "bench");
    ANGELIA_TRY_ASSIGN(auto opened, watcher.run(open));
    const auto cursor = opened.view().find_path("cursor.id").to_int64().value_or(0);
    const auto more = bson::make("getMore", cursor, "collection", "bench", "maxTimeMS",
                                 std::int32_t{60'000}, "$db", "bench");
    const std::string text = payload(kPayloadBytes, 5);

    // The watcher stamps when it has the event; the writer, on this thread, when it has its answer.
    std::atomic<std::int64_t> seen{0};
    std::atomic<BenchClock::rep> seen_at{0};
    std::atomic<bool> failed{false};
    constexpr std::int64_t kEvents = static_cast<std::int64_t>(kSamples + kWarmUp);
    std::thread watching([&] {
        while (seen.load() < kEvents && !failed.load()) {
            auto answer = watcher.run(more);
            const auto now = BenchClock::now().time_since_epoch().count();
            if (!answer) {
                failed = true;
                seen.fetch_add(kEvents);  // wakes the writer
                seen.notify_one();
                return;
            }
            const auto batch = answer->view().find_path("cursor.nextBatch").get_array();
            if (!batch || batch->empty()) continue;
            seen_at = now;
            seen.fetch_add(static_cast<std::int64_t>(batch->count()));
            seen.notify_one();
        }
    });
    std::vector<double> samples;
    Result<void> wrote;
    for (std::int64_t i = 1; i <= kEvents && wrote && !failed.load(); ++i) {
        auto answer = writer.run(insert_command(i, text));
        const auto replied = BenchClock::now().time_since_epoch().count();
        if (!answer) wrote = answer.error();
        for (auto now = seen.load(); wrote && now < i && !failed.load(); now = seen.load())
            seen.wait(now);
        const auto late = std::max<BenchClock::rep>(0, seen_at.load() - replied);
        if (i > static_cast<std::int64_t>(kWarmUp))
            samples.push_back(
                std::chrono::duration<double, std::micro>(BenchClock::duration(late)).count());
    }
    if (!wrote) failed = true;
    if (failed.load()) server.process.reset();  // ends a watcher that waits
    watching.join();
    if (!wrote) return wrote.error();
    if (failed.load()) return Error(ErrorCode::SocketException, "the watching client failed");
    const auto q = quantiles(std::move(samples));
    Row row;
    row.what = "event at a waiting client after the write's answer, memory";
    row.measured = fmt::format("{:.0f} us p50, {:.0f} us p99", q.p50_us, q.p99_us);
    row.floor = "100 us";
    row.ratio = q.p50_us / 100;
    row.goal = "<= 100 us";
    row.met = q.p50_us <= 100;
    row.numbers = {{"p50_us", q.p50_us}, {"p99_us", q.p99_us}};
    return row;
}

}  // namespace angelia::bench
