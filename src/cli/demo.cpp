// angelia demo: real messages through a durable store, a worker killed on the way, and a proof read
// from the store.
#include "cli/child_process.h"
#include "cli/commands.h"
#include "cli/demo_proof.h"
#include "cli/demo_publisher.h"
#include "cli/duration.h"
#include "cli/node_options.h"
#include "cli/output.h"
#include "cli/table.h"

#include <angelia/angelia.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>

namespace angelia::cli {
namespace {

using demo::Kind;

struct DemoOptions {
    std::string data, input, tamper;
    double seconds = 20;
    double rate = 200;
    std::uint16_t port = 27027;
    bool stay = false, no_stay = false;
    bool json = false;
};

constexpr milliseconds kLease{2000};
constexpr milliseconds kReadyTimeout{30'000};
constexpr milliseconds kDrainTimeout{60'000};

/// The processes: 2 broadcast listeners, 3 workers, a responder.
class Cast {
  public:
    Cast(std::string uri, const demo::Input& input) : uri_(std::move(uri)), input_(input) {}

    Result<void> start_all() {
        for (const char* id : {"listener-1", "listener-2"}) ANGELIA_TRY(start(id, Kind::Broadcast));
        for (const char* id : {"worker-1", "worker-2", "worker-3"})
            ANGELIA_TRY(start(id, Kind::Work));
        ANGELIA_TRY(start("responder-1", Kind::Request));
        for (auto& [id, child] : children_) ANGELIA_TRY(await_ready(id, child));
        return {};
    }
    Result<void> replace(const std::string& victim, const std::string& successor) {
        for (auto it = children_.begin(); it != children_.end(); ++it) {
            if (it->first != victim) continue;
            it->second.kill();
            children_.erase(it);
            break;
        }
        return start(successor, Kind::Work);
    }
    /// Names of processes that did not end well.
    std::vector<std::string> stop_all() {
        for (auto& [id, child] : children_) child.close_stdin();
        std::vector<std::string> bad;
        for (auto& [id, child] : children_) {
            if (const int code = child.wait(milliseconds(10'000)); code != 0)
                bad.push_back(fmt::format("{} ended with {}", id, code));
        }
        children_.clear();
        return bad;
    }

  private:
    Result<void> start(const std::string& id, Kind kind) {
        ANGELIA_TRY_ASSIGN(ChildProcess child,
                           ChildProcess::start_self({"demo-node", "--store", uri_, "--id", id,
                                                     "--role", kind_name(kind), "--lease-ms",
                                                     std::to_string(kLease.count())}));
        for (const std::string& topic : input_.topics)
            ANGELIA_TRY(child.write_line(demo::topic_of(topic, kind)));
        ANGELIA_TRY(child.write_line(""));
        children_.emplace_back(id, std::move(child));
        return {};
    }
    static Result<void> await_ready(const std::string& id, ChildProcess& child) {
        const auto line = child.read_line(kReadyTimeout);
        if (!line)
            return {ErrorCode::OperationFailed,
                    fmt::format("{} did not get ready: {}", id, line.error().message)};
        return {};
    }
    std::string uri_;
    const demo::Input& input_;
    std::vector<std::pair<std::string, ChildProcess>> children_;
};

Result<std::unique_ptr<Server>> serve_on(const Store& store, std::uint16_t port) {
    ServerOptions options;
    options.port = port;
    auto server = Server::start(store, options);
    if (server || port == 0) return server;
    options.port = 0;  // taken: any free one
    return Server::start(store, options);
}

Result<void> clear_old_records(Store& store, const Messaging& node) {
    for (const char* name :
         {demo::kPublished, demo::kEffects, demo::kAnswered, demo::kKills, demo::kNodes})
        ANGELIA_TRY(store.drop(store.collection(name)));
    for (const std::string& name : {node.collection_name(), node.lock_collection_name(),
                                    node.participants_collection_name()}) {
        ANGELIA_TRY(store.drop(store.collection(name)));
    }
    return {};
}

class LiveTable {
  public:
    explicit LiveTable(bool quiet) : quiet_(quiet) {
        if (!quiet_)
            print("{:>7} {:>10} {:>10} {:>9} {:>10} {:>10} {:>10}\n", "SECOND", "PUBLISHED",
                  "DELIVERED", "ANSWERED", "IN FLIGHT", "P50", "P99");
    }
    Result<void> row(double second, Store& store, const Messaging& node,
                     const demo::Publisher& publisher) {
        if (quiet_) return {};
        ANGELIA_TRY_ASSIGN(const auto delivered,
                           store.count(store.collection(demo::kEffects), bson::Document()));
        ANGELIA_TRY_ASSIGN(const auto open,
                           store.count(store.collection(node.collection_name()),
                                       bson::make("exclusive", true, "processed_by.0",
                                                  bson::make("$exists", false))));
        const auto l = publisher.latencies();
        print("{:>7.1f} {:>10} {:>10} {:>9} {:>10} {:>10} {:>10}\n", second, publisher.published(),
              delivered, publisher.answered(), open, l.count > 0 ? format_duration(l.p50) : "-",
              l.count > 0 ? format_duration(l.p99) : "-");
        std::fflush(stdout);
        return {};
    }

  private:
    bool quiet_;
};

/// Publishes at the rate; at 40 % of the time one worker is killed. Ends early on a signal.
Result<void> play(const DemoOptions& o, const SignalWatch& signals, Store& store, Messaging& node,
                  Cast& cast, demo::Publisher& publisher, LiveTable& table) {
    const auto start = real_clock().steady_now();
    const auto elapsed = [&] {
        return static_cast<double>((real_clock().steady_now() - start).count()) / 1e6;
    };
    double next_row = 1;
    bool killed = false;
    while (elapsed() < o.seconds) {
        const auto due = static_cast<std::uint64_t>(elapsed() * o.rate);
        if (due > publisher.published())
            ANGELIA_TRY(publisher.publish(due - publisher.published()));
        ANGELIA_TRY(publisher.record_answers());
        if (!killed && elapsed() > o.seconds * 0.4) {
            killed = true;
            ANGELIA_TRY(store.insert(
                store.collection(demo::kKills),
                bson::make("_id", "worker-1", "at", bson::Date{real_clock().system_millis()})));
            ANGELIA_TRY(cast.replace("worker-1", "worker-4"));
            if (!o.json) print("        worker-1 killed with -9, worker-4 started\n");
        }
        if (elapsed() >= next_row) {
            ANGELIA_TRY(table.row(elapsed(), store, node, publisher));
            next_row += 1;
        }
        if (signals.wait(milliseconds(10))) break;
    }
    return table.row(elapsed(), store, node, publisher);
}

/// Until nothing is missing, or the time for it is over (then the proof will say what is missing).
Result<void> drain(Store& store, demo::Publisher& publisher, const SignalWatch& signals) {
    const auto deadline = real_clock().steady_now() + kDrainTimeout;
    while (real_clock().steady_now() < deadline) {
        ANGELIA_TRY(publisher.record_answers());
        ANGELIA_TRY_ASSIGN(const auto records, demo::load_records(store));
        if (demo::check(records).missing == 0 || signals.wait(milliseconds(200))) break;
    }
    return {};
}

/// For the tests of the proof: it must notice one effect too few or too many.
Result<void> tamper(Store& store, const std::string& how) {
    const auto effects = store.collection(demo::kEffects);
    store::FindRequest find;
    find.collection = effects;
    find.limit = 1;
    ANGELIA_TRY_ASSIGN(const auto found, store.find(find));
    if (found.empty()) return {ErrorCode::NoMatchingDocument, "there is no effect to tamper with"};
    if (how == "remove-effect") {
        std::vector<store::DeleteOp> ops(1);
        bson::Builder filter;
        filter.add("_id", found.front().find("_id"));
        ops[0].filter = filter.take();
        ANGELIA_TRY(store.remove(effects, std::move(ops)));
        return {};
    }
    bson::Builder copy;
    copy.add("_id", bson::ObjectId::generate());
    for (const bson::Element& e : found.front().view()) {
        if (e.key != "_id") copy.add(e.key, e.value);
    }
    ANGELIA_TRY(store.insert(effects, copy.take()));
    return {};
}

void print_proof(const demo::Proof& p, const demo::Latencies& l, bool json) {
    if (json) {
        print(
            "{{\"holds\": {}, \"broadcasts\": {}, \"work\": {}, \"requests\": {}, \"effects\": {}, "
            "\"later_attempts\": {}, \"missing\": {}, "
            "\"violations\": {}, \"request_p50_us\": {}, \"request_p99_us\": {}}}\n",
            p.holds(), p.broadcasts, p.work, p.requests, p.effects, p.later_attempts, p.missing,
            p.violation_count, l.p50.count(), l.p99.count());
    } else {
        print("\nProof, read from the freshly opened store:\n{}",
              format_table({{"WHAT", "PUBLISHED"},
                            {"broadcasts, two listeners each", std::to_string(p.broadcasts)},
                            {"work messages", std::to_string(p.work)},
                            {"requests", std::to_string(p.requests)}}));
        print("{} executions left {} effect records; {} of them were second or later attempts\n",
              p.effects, p.effects, p.later_attempts);
        print(
            "{}\n",
            p.holds()
                ? "Every promise held: nothing lost, no attempt twice, no take-over from a living "
                  "holder."
                : fmt::format("THE PROOF FAILED: {} violations, {} executions or answers missing",
                              p.violation_count, p.missing));
    }
    for (const auto& v : p.violations) say("angelia: {}\n", v);
}

struct Folder {
    std::string path;
    bool temporary = false;
    ~Folder() {
        std::error_code ignored;  // a left-over temporary folder is not worth an error
        if (temporary && !path.empty()) std::filesystem::remove_all(path, ignored);
    }
};

Result<void> make_folder(const DemoOptions& o, Folder& folder) {
    folder.path = o.data;
    if (!o.data.empty()) return {};
    std::string pattern = (std::filesystem::temp_directory_path() / "angelia-demo-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
        return {ErrorCode::FileStreamFailed,
                fmt::format("cannot make a folder below {}",
                            std::filesystem::temp_directory_path().string())};
    folder.path = pattern;
    folder.temporary = true;
    return {};
}

Result<demo::Latencies> run_and_close(const DemoOptions& o, const SignalWatch& signals,
                                      const demo::Input& input, const std::string& address) {
    OpenOptions open;
    open.log = stderr_log(false);
    ANGELIA_TRY_ASSIGN(Store store, open_store(address, open));
    messaging::Options options;
    options.id = "demo-publisher";
    options.log = open.log;
    demo::Latencies latencies;
    {
        Messaging node(store, options);
        ANGELIA_TRY(clear_old_records(store, node));
        ANGELIA_TRY_ASSIGN(const auto server, serve_on(store, o.port));
        if (!o.json) print("playing {}\nstore {} at {}\n", input.source, address, server->uri());
        std::fflush(stdout);
        ANGELIA_TRY(node.start());
        if (!node.wait_ready(kReadyTimeout))
            return {ErrorCode::ExceededTimeLimit, "the publishing node was not ready within 30 s"};
        Cast cast(server->uri(), input);
        ANGELIA_TRY(cast.start_all());
        demo::Publisher publisher(store, node, input);
        LiveTable table(o.json);
        ANGELIA_TRY(play(o, signals, store, node, cast, publisher, table));
        ANGELIA_TRY(drain(store, publisher, signals));
        latencies = publisher.latencies();
        ANGELIA_TRY(node.stop());
        for (const auto& bad : cast.stop_all()) say("angelia: {}\n", bad);
        server->stop();
    }
    ANGELIA_TRY(store.close());
    return latencies;
}

int stay_up(const DemoOptions& o, const SignalWatch& signals, Store& store) {
    auto server = serve_on(store, o.port);
    if (!server) return fail(server.error());
    if (!o.json) {
        const std::string uri =
            fmt::format("mongodb://127.0.0.1:{}/angelia?replicaSet=rs0", (*server)->port());
        print(
            "\nThe store stays up until Ctrl-C. Look at its documents:\n  mongosh '{0}'\n  angelia "
            "status --store '{0}'\n"
            "  angelia publish greeting --text hello --store '{0}'\n",
            uri);
        std::fflush(stdout);
    }
    signals.wait();
    (*server)->stop();
    return kOk;
}

int run_demo(const DemoOptions& o) {
    const SignalWatch signals;
    auto input = demo::load_input(o.input);
    if (!input) return fail(input.error());
    Folder folder;
    if (auto made = make_folder(o, folder); !made) return fail(made.error());
    const std::string address = "embedded:" + folder.path;
    const auto latencies = run_and_close(o, signals, *input, address);
    if (!latencies) return fail(latencies.error());

    auto store = open_store(address);
    if (!store) return fail(store.error());
    if (!o.tamper.empty()) {
        if (auto done = tamper(*store, o.tamper); !done) return fail(done.error());
    }
    auto records = demo::load_records(*store);
    if (!records) return fail(records.error());
    const demo::Proof proof = demo::check(*records);
    print_proof(proof, *latencies, o.json);
    int code = proof.holds() ? kOk : kFailed;
    const bool stay = o.stay || (!o.no_stay && stdout_is_terminal());
    if (stay && !signals.stopped()) {
        if (const int stayed = stay_up(o, signals, *store); stayed != kOk) code = stayed;
    } else if (!o.json) {
        const std::string where =
            o.port == 0 ? "a free port"
                        : fmt::format("mongodb://127.0.0.1:{}/angelia?replicaSet=rs0", o.port);
        print("\nWith --stay the store stays up at {} for mongosh, Compass or any driver.\n",
              where);
    }
    if (auto closed = store->close(); !closed) return fail(closed.error());
    return code;
}

}  // namespace

void add_demo(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<DemoOptions>();
    CLI::App* command = app.add_subcommand(
        "demo", "real messages through a durable store, with a proof at the end");
    command->add_option("--data", o->data,
                        "data folder (default: a fresh temporary one, removed at the end); records "
                        "of an earlier demo in it are dropped");
    command->add_option("--input", o->input,
                        "NDJSON of whole messages, as publish --messages takes them (default: this "
                        "folder's git history)");
    command->add_option("--seconds", o->seconds, "how long to publish")
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str();
    command->add_option("--rate", o->rate, "messages a second")
        ->check(CLI::Range(0.1, 100000.0))
        ->capture_default_str();
    command
        ->add_option("--port", o->port, "port to serve the store on; any free one if it is taken")
        ->capture_default_str();
    command->add_flag("--stay", o->stay, "stay up until Ctrl-C (default on a terminal)");
    command->add_flag("--no-stay", o->no_stay, "end after the proof")->excludes("--stay");
    command->add_flag("--json", o->json, "print only the proof, as JSON");
    command->add_option("--tamper", o->tamper)
        ->check(CLI::IsMember({"remove-effect", "add-effect"}))
        ->group("");
    command->footer(
        "Examples:\n  angelia demo\n  angelia demo --seconds 5 --rate 1000 --input messages.ndjson "
        "--no-stay\nExit code 1: the proof failed.");
    command->callback([o, &invocation] { invocation.run = [o] { return run_demo(*o); }; });
}

}  // namespace angelia::cli
