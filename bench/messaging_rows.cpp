#include "messaging_rows.h"

#include "cli/child_process.h"

#include <angelia/angelia.h>

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace angelia::bench {
namespace {

using cli::ChildProcess;
using Clock_ = std::chrono::steady_clock;

double us_since(Clock_::time_point t) {
    return std::chrono::duration<double, std::micro>(Clock_::now() - t).count();
}

std::string fresh(const std::string& folder, const char* name) {
    const std::string path = folder + "/" + name;
    std::filesystem::remove_all(path);
    return path;
}

Message request_message(bool exclusive) {
    Message m;
    m.topic = "bench.ask";
    m.map_value = bson::make("payload", payload(kPayloadBytes, 3));
    m.exclusive = exclusive;
    return m;
}

Reply respond(const Message& m) {
    return answer("ok").with(
        "payload", m.map_value ? m.map_value->find("payload").as_string() : std::string_view());
}

messaging::Options options(const char* id) {
    messaging::Options o;
    o.id = id;
    o.log = [](LogLevel level, std::string_view text) {
        if (level >= LogLevel::Warning) fmt::print(stderr, "bench: {}\n", text);
    };
    return o;
}

/// `count` requests one after another, at a pace or back to back.
Result<Quantiles> ask(Messaging& node, std::size_t count, double per_second, bool exclusive) {
    std::vector<double> samples;
    const Pace pace(per_second);
    for (std::size_t i = 0; i < count; ++i) {
        pace.wait_for(i);
        Message m = request_message(exclusive);
        const auto t = Clock_::now();
        ANGELIA_TRY(node.request(std::move(m), milliseconds(10'000)));
        samples.push_back(us_since(t));
    }
    return quantiles(std::move(samples));
}

/// Server, responder and this process.
struct ThreeProcesses {
    std::optional<ChildProcess> server, responder;
    std::string uri;
    Result<void> start(const std::string& address) {
        ANGELIA_TRY_ASSIGN(auto s, ChildProcess::start_self({"serve", address}));
        server.emplace(std::move(s));
        ANGELIA_TRY_ASSIGN(uri, server->read_line(milliseconds(10'000)));
        ANGELIA_TRY_ASSIGN(auto r, ChildProcess::start_self({"responder", uri}));
        responder.emplace(std::move(r));
        ANGELIA_TRY(responder->read_line(milliseconds(20'000)));
        return {};
    }
    void stop() {
        for (auto* p : {&responder, &server}) {
            if (!*p) continue;
            (*p)->close_stdin();
            (*p)->wait(milliseconds(10'000));
        }
    }
};

struct Paced {
    Quantiles paced, back_to_back;
};

Result<Paced> three_processes(const std::string& address, bool exclusive) {
    ThreeProcesses processes;
    ANGELIA_TRY(processes.start(address));
    ANGELIA_TRY_ASSIGN(Store store, open_store(processes.uri));
    Messaging node(store, options("requester"));
    ANGELIA_TRY(node.start());
    node.wait_ready(milliseconds(10'000));
    std::vector<Quantiles> paced, back_to_back;
    ANGELIA_TRY(ask(node, 100, 0, exclusive));  // warm-up
    for (int i = 0; i < kRepetitions; ++i) {
        ANGELIA_TRY_ASSIGN(const Quantiles p, ask(node, 200, 100, exclusive));
        ANGELIA_TRY_ASSIGN(const Quantiles b, ask(node, 1000, 0, exclusive));
        paced.push_back(p);
        back_to_back.push_back(b);
    }
    ANGELIA_TRY(node.stop());
    ANGELIA_TRY(store.close());
    processes.stop();
    return Paced{median(paced), median(back_to_back)};
}

/// Waits on stdin's end, which is the parent's word (or death).
void wait_for_parent() {
    char byte;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

std::string us(double v) { return fmt::format("{:.0f} us", v); }

}  // namespace

int child_server(const std::string& address) {
    auto store = open_store(address);
    if (!store) return fmt::print(stderr, "bench: {}\n", store.error().message), 1;
    ServerOptions o;
    o.port = 0;
    auto server = Server::start(*store, o);
    if (!server) return fmt::print(stderr, "bench: {}\n", server.error().message), 1;
    fmt::print("{}\n", (*server)->uri());
    std::fflush(stdout);
    wait_for_parent();
    (*server)->stop();
    return store->close() ? 0 : 1;
}

int child_responder(const std::string& address) {
    auto store = open_store(address);
    if (!store) return fmt::print(stderr, "bench: {}\n", store.error().message), 1;
    Messaging node(*store, options("responder"));
    if (!node.listen("bench.ask", respond) || !node.start() ||
        !node.wait_ready(milliseconds(10'000)))
        return 1;
    fmt::print("ready\n");
    std::fflush(stdout);
    wait_for_parent();
    return node.stop() ? 0 : 1;
}

Result<Row> request_reply_in_process() {
    ANGELIA_TRY_ASSIGN(Store store, open_store("embedded::memory:"));
    Messaging responder(store, options("responder"));
    ANGELIA_TRY(responder.listen("bench.ask", respond));
    ANGELIA_TRY(responder.start());
    Messaging node(store, options("requester"));
    ANGELIA_TRY(node.start());
    responder.wait_ready(milliseconds(10'000));
    node.wait_ready(milliseconds(10'000));
    ANGELIA_TRY(ask(node, 500, 0, false));
    std::vector<Quantiles> all;
    for (int i = 0; i < kRepetitions; ++i) {
        ANGELIA_TRY_ASSIGN(const Quantiles q, ask(node, 3000, 0, false));
        all.push_back(q);
    }
    ANGELIA_TRY(node.stop());
    ANGELIA_TRY(responder.stop());
    ANGELIA_TRY(store.close());
    const Quantiles q = median(all);
    return Row{"request/reply, in process, memory",
               us(q.p50_us) + " p50, " + us(q.p99_us) + " p99",
               "150 us",
               q.p50_us / 150,
               "p50 <= 150 us",
               q.p50_us <= 150,
               {{"p50_us", q.p50_us}, {"p99_us", q.p99_us}}};
}

Result<Row> request_reply_three_processes(const Floors& floors, const std::string& folder,
                                          bool strict) {
    ANGELIA_TRY_ASSIGN(
        const Paced q,
        three_processes(strict ? "embedded:" + fresh(folder, "rr") : "embedded::memory:", false));
    const double floor =
        strict ? 2 * floors.sync_us + floors.hops4_paced.p50_us : floors.hops4_paced.p50_us;
    const double goal = strict ? 2.5 : 5;
    const double ratio = q.paced.p50_us / floor;
    return Row{
        fmt::format("request/reply, three processes, {}, 100/s", strict ? "strict" : "memory"),
        us(q.paced.p50_us) + " p50, " + us(q.paced.p99_us) + " p99",
        us(floor) + (strict ? " = 2 sync + hops4" : " = hops4"),
        ratio,
        fmt::format("p50 <= {} x", goal),
        ratio <= goal,
        {{"p50_us", q.paced.p50_us},
         {"p99_us", q.paced.p99_us},
         {"back_to_back_p50_us", q.back_to_back.p50_us},
         {"back_to_back_p99_us", q.back_to_back.p99_us}}};
}

Result<Row> request_reply_exclusive(const std::string& folder, bool strict) {
    const auto address = [&] {
        return strict ? "embedded:" + fresh(folder, "rrx") : std::string("embedded::memory:");
    };
    ANGELIA_TRY_ASSIGN(const Paced plain, three_processes(address(), false));
    ANGELIA_TRY_ASSIGN(const Paced exclusive, three_processes(address(), true));
    const double ratio = exclusive.paced.p50_us / plain.paced.p50_us;
    const double goal = strict ? 1.7 : 1.4;
    return Row{fmt::format("exclusive request/reply, {}, 100/s", strict ? "strict" : "memory"),
               us(exclusive.paced.p50_us) + " p50",
               us(plain.paced.p50_us) + " = not exclusive",
               ratio,
               fmt::format("<= {} x", goal),
               ratio <= goal,
               {{"p50_us", exclusive.paced.p50_us},
                {"p99_us", exclusive.paced.p99_us},
                {"plain_p50_us", plain.paced.p50_us}}};
}

namespace {

/// What the server has done so far.
struct ServerWork {
    double inserts = 0, updates = 0, deletes = 0, get_mores = 0, finds = 0, requests = 0;
    double commits = 0, syncs = 0;
    std::vector<std::pair<std::string, double>> per_request(const ServerWork& before,
                                                            double answered) const {
        return {{"server_requests", (requests - before.requests) / answered},
                {"documents_inserted", (inserts - before.inserts) / answered},
                {"documents_updated", (updates - before.updates) / answered},
                {"documents_deleted", (deletes - before.deletes) / answered},
                {"get_mores", (get_mores - before.get_mores) / answered},
                {"finds", (finds - before.finds) / answered},
                {"commits", (commits - before.commits) / answered},
                {"syncs", (syncs - before.syncs) / answered}};
    }
};

Result<ServerWork> server_work(const Store& store) {
    const auto diagnostics = Store(store).diagnostics();
    ANGELIA_TRY_ASSIGN(
        const bson::Document status,
        diagnostics->run_command("admin", bson::make("serverStatus", std::int32_t{1})));
    const auto number = [&](std::string_view path) {
        return static_cast<double>(status.view().find_path(path).to_int64().value_or(0));
    };
    ServerWork w;
    w.inserts = number("opcounters.insert");
    w.updates = number("opcounters.update");
    w.deletes = number("opcounters.delete");
    w.get_mores = number("opcounters.getmore");
    w.finds = number("opcounters.query");
    w.requests = number("network.numRequests");
    w.commits = number("angelia.storage.commits");
    w.syncs = number("angelia.storage.syncs");
    return w;
}

}  // namespace

Result<Row> request_reply_saturated(const std::string& folder) {
    ThreeProcesses processes;
    ANGELIA_TRY(processes.start("embedded:" + fresh(folder, "rrs")));
    ANGELIA_TRY_ASSIGN(Store store, open_store(processes.uri));
    Messaging node(store, options("requester"));
    ANGELIA_TRY(node.start());
    node.wait_ready(milliseconds(10'000));
    // Closed loop of 64 threads x 4 in flight: a request is stored before request_async() returns,
    // so that fewer threads are limited by their own round trips, not by the system.
    constexpr int threads = 64;
    constexpr int in_flight = 4;
    std::vector<double> rates;
    double answered_total = 0;
    ANGELIA_TRY_ASSIGN(const ServerWork before, server_work(store));
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
        std::atomic<std::uint64_t> answered{0};
        std::atomic<int> failures{0};
        const auto start = Clock_::now();
        std::vector<std::thread> crew;
        for (int t = 0; t < threads; ++t) {
            crew.emplace_back([&] {
                std::mutex mutex;
                std::condition_variable free;
                int open = 0;
                while (us_since(start) < 3e6) {
                    std::unique_lock lock(mutex);
                    if (!free.wait_for(lock, std::chrono::seconds(15),
                                       [&] { return open < in_flight; })) {
                        ++failures;
                        return;
                    }
                    ++open;
                    lock.unlock();
                    const auto done = [&] {
                        const std::lock_guard l(mutex);
                        --open;
                        free.notify_one();
                    };
                    Message m = request_message(true);  // the first answer ends it
                    auto sent = node.request_async(
                        std::move(m), milliseconds(10'000),
                        [&, done](const Message&) {
                            ++answered;
                            done();
                        },
                        [&, done] {
                            ++failures;
                            done();
                        });
                    if (!sent) {
                        ++failures;
                        done();
                    }
                }
                std::unique_lock lock(mutex);
                free.wait_for(lock, std::chrono::seconds(15), [&] { return open == 0; });
            });
        }
        for (auto& t : crew) t.join();
        if (failures > 0)
            return {ErrorCode::OperationFailed, fmt::format("{} requests failed", failures.load())};
        rates.push_back(static_cast<double>(answered.load()) / (us_since(start) / 1e6));
        answered_total += static_cast<double>(answered.load());
    }
    ANGELIA_TRY_ASSIGN(const ServerWork after, server_work(store));
    ANGELIA_TRY(node.stop());
    ANGELIA_TRY(store.close());
    processes.stop();
    const double rate = median(rates);
    std::vector<std::pair<std::string, double>> numbers = after.per_request(before, answered_total);
    numbers.insert(numbers.begin(), {"per_second", rate});
    return Row{"saturated exclusive request/reply, three processes, strict, 256 in flight",
               fmt::format("{:.0f}/s", rate),
               "10 000/s (goal of the design)",
               rate / 10'000,
               ">= 10 000/s",
               rate >= 10'000,
               std::move(numbers)};
}

Result<Row> one_way(const std::string& folder, bool exclusive) {
    std::vector<double> rates;
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
        ANGELIA_TRY_ASSIGN(Store store, open_store("embedded:" + fresh(folder, "oneway")));
        auto o = options("consumer");
        o.window = 1000;
        Messaging consumer(store, o);
        std::atomic<std::uint64_t> handled{0};
        ANGELIA_TRY(consumer.listen("bench.one_way", [&](const Message&) {
            handled.fetch_add(1, std::memory_order_relaxed);
        }));
        ANGELIA_TRY(consumer.start());
        consumer.wait_ready(milliseconds(10'000));
        Messaging publisher(store, options("publisher"));
        constexpr std::uint64_t total = 40'000;
        constexpr std::uint64_t ahead = 5'000;
        const std::string text = payload(kPayloadBytes, 4);
        const auto start = Clock_::now();
        for (std::uint64_t sent = 0; sent < total;) {
            while (sent - std::min(sent, handled.load()) > ahead)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            std::vector<Message> batch(100);
            for (auto& m : batch) {
                m.topic = "bench.one_way";
                m.exclusive = exclusive;
                m.ttl = milliseconds(600'000);
                m.delete_after_processing =
                    false;  // every message is marked, and can be counted afterwards
                m.map_value = bson::make("payload", text);
            }
            ANGELIA_TRY(publisher.publish(std::move(batch)));
            sent += 100;
        }
        // Done when every mark is in the store.
        const auto name = store.collection(consumer.collection_name());
        const auto marked = bson::make("processed_by", "consumer");
        const auto deadline = Clock_::now() + std::chrono::seconds(60);
        std::int64_t marks = 0;
        while (marks < static_cast<std::int64_t>(total)) {
            if (Clock_::now() > deadline)
                return {ErrorCode::ExceededTimeLimit,
                        fmt::format("{} of {} messages were marked within 60 s", marks, total)};
            if (handled.load() < total) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                continue;
            }
            ANGELIA_TRY_ASSIGN(marks, store.count(name, marked));
        }
        rates.push_back(static_cast<double>(total) / (us_since(start) / 1e6));
        ANGELIA_TRY(consumer.stop());
        ANGELIA_TRY(store.close());
    }
    const double rate = median(rates);
    return Row{fmt::format("one-way {}, in process, strict, 2 KB, every message marked",
                           exclusive ? "exclusive" : "broadcast"),
               fmt::format("{:.0f}/s", rate),
               "8 000/s",
               rate / 8000,
               ">= 8 000/s (design: 20 000/s)",
               rate >= 8000,
               {{"per_second", rate}}};
}

Result<Row> start_up(const std::string& folder, bool memory) {
    std::vector<double> times;
    double resident_mb = 0;
    for (int i = 0; i < kRepetitions; ++i) {
        const auto t = Clock_::now();
        ANGELIA_TRY_ASSIGN(
            auto server,
            ChildProcess::start_self({"serve", memory ? std::string("embedded::memory:")
                                                      : "embedded:" + fresh(folder, "start")}));
        ANGELIA_TRY_ASSIGN(const std::string uri, server.read_line(milliseconds(10'000)));
        ANGELIA_TRY_ASSIGN(Store store, open_store(uri));
        ANGELIA_TRY(store.server_time());
        times.push_back(us_since(t));
        std::ifstream statm(fmt::format("/proc/{}/statm", server.pid()));
        double pages = 0, resident = 0;
        statm >> pages >> resident;
        resident_mb = resident * 4096 / 1e6;
        ANGELIA_TRY(store.close());
        server.close_stdin();
        server.wait(milliseconds(10'000));
    }
    const double ms = median(times) / 1000;
    const double goal = memory ? 50 : 150;
    return Row{fmt::format("start to first answered command, {}",
                           memory ? "memory" : "strict, empty folder"),
               fmt::format("{:.0f} ms, {:.0f} MB resident", ms, resident_mb),
               fmt::format("{:.0f} ms", goal),
               ms / goal,
               fmt::format("<= {:.0f} ms, <= 40 MB", goal),
               ms <= goal && resident_mb <= 40,
               {{"ms", ms}, {"resident_mb", resident_mb}}};
}

}  // namespace angelia::bench
