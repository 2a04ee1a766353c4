// ./do bench: every row of the table, with floors measured in the same run. Writes
// bench/results/latest.json.
#include "floors.h"
#include "messaging_rows.h"
#include "server_rows.h"

#include "cli/table.h"

#include <angelia/angelia.h>

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace angelia::bench {
namespace {

std::string json_of(const Floors& floors, const std::vector<Row>& rows) {
    bson::Builder b;
    b.open("floors")
        .add("hops4_paced_p50_us", floors.hops4_paced.p50_us)
        .add("hops4_paced_p99_us", floors.hops4_paced.p99_us);
    b.add("hops4_back_to_back_p50_us", floors.hops4_back_to_back.p50_us)
        .add("hops2_back_to_back_p50_us", floors.hops2_back_to_back.p50_us)
        .add("sync_us", floors.sync_us)
        .close();
    b.open_array("rows");
    for (const auto& r : rows) {
        b.push_document()
            .add("what", r.what)
            .add("measured", r.measured)
            .add("floor", r.floor)
            .add("ratio", r.ratio)
            .add("goal", r.goal)
            .add("met", r.met);
        for (const auto& [key, value] : r.numbers) b.add(key, value);
        b.close();
    }
    b.close();
    const auto document = b.take();
    return bson::to_json_pretty(document.view());
}

int measure(const std::string& results, const std::string& only) {
    ::signal(SIGPIPE, SIG_IGN);
    set_mongo_driver_log({});
    std::string folder = (std::filesystem::current_path() / "build" / "bench-data-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr)
        return fmt::print(stderr, "bench: cannot make {}\n", folder), 1;
    fmt::print(stderr, "measuring floors\n");
    const auto floors = measure_floors(folder);
    if (!floors) return fmt::print(stderr, "bench: {}\n", floors.error().message), 1;
    struct Entry {
        const char* name;
        std::function<Result<Row>()> run;
        const char* group = "messaging";
    };
    const Entry rows[] = {
        {"in-process", [&] { return request_reply_in_process(); }},
        {"memory", [&] { return request_reply_three_processes(*floors, folder, false); }},
        {"strict", [&] { return request_reply_three_processes(*floors, folder, true); }},
        {"exclusive-memory", [&] { return request_reply_exclusive(folder, false); }},
        {"exclusive-strict", [&] { return request_reply_exclusive(folder, true); }},
        {"saturated", [&] { return request_reply_saturated(folder); }},
        {"one-way", [&] { return one_way(folder, false); }},
        {"one-way-exclusive", [&] { return one_way(folder, true); }},
        {"start-memory", [&] { return start_up(folder, true); }},
        {"start-strict", [&] { return start_up(folder, false); }},
        {"transaction", [&] { return transaction_of_two(folder); }, "server"},
        {"transactions", [&] { return transactions_of_many(folder); }, "server"},
        {"insert", [&] { return single_insert(*floors, folder); }, "server"},
        {"event", [] { return event_after_reply(); }, "server"},
    };
    std::vector<Row> done;
    int failed = 0;
    for (const auto& [name, run, group] : rows) {
        if (!only.empty() && only != name && only != group) continue;
        fmt::print(stderr, "measuring {}\n", name);
        auto row = run();
        if (row) {
            done.push_back(*std::move(row));
        } else {
            fmt::print(stderr, "bench: {}: {}\n", name, row.error().message);
            ++failed;
        }
    }
    std::vector<std::vector<std::string>> table{
        {"WHAT", "MEASURED", "AGAINST", "RATIO", "GOAL", "MET"}};
    for (const auto& r : done)
        table.push_back({r.what, r.measured, r.floor, fmt::format("{:.2f}", r.ratio), r.goal,
                         r.met ? "yes" : "NO"});
    fmt::print(
        "floors: hops4 {:.0f} us p50, {:.0f} us p99 at 100/s ({:.0f} us back to back); sync {:.0f} "
        "us p50\n\n{}",
        floors->hops4_paced.p50_us, floors->hops4_paced.p99_us, floors->hops4_back_to_back.p50_us,
        floors->sync_us, cli::format_table(table));
    std::ofstream(results) << json_of(*floors, done) << "\n";
    fmt::print("\nwritten to {}\n", results);
    std::filesystem::remove_all(folder);
    return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace angelia::bench

int main(int argc, char** argv) {
    using namespace angelia::bench;
    const std::string role = argc > 1 ? argv[1] : "";
    if (role == "floor-server") return floor_server();
    if (role == "floor-responder" && argc > 2) return floor_responder(std::atoi(argv[2]));
    if (role == "floor-echo") return floor_echo();
    if (role == "serve" && argc > 2) return child_server(argv[2]);
    if (role == "responder" && argc > 2) return child_responder(argv[2]);
    return measure(argc > 2 ? argv[2] : "bench/results/latest.json", role);
}
