// angelia status: who is on the queue, and what waits there.
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/node_options.h"
#include "cli/output.h"
#include "cli/table.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace angelia::cli {
namespace {

struct StatusOptions {
    CommonOptions common;
    QueueOptions queue;
    std::string timeout = "1s";
};

struct QueueCounts {
    std::int64_t waiting = 0;     ///< exclusive, nobody has it
    std::int64_t leased = 0;      ///< exclusive, a node works on it
    std::int64_t failed = 0;      ///< exclusive, in back-off after a failure
    std::int64_t broadcasts = 0;  ///< still stored
};

Result<QueueCounts> count_queue(store::Store& store, const std::string& collection,
                                bson::Date now) {
    const auto name = store.collection(collection);
    const auto unmarked = bson::make("$exists", false);
    const auto live = bson::make("$gt", now);
    const auto absent = bson::make("$exists", false);
    const auto present = bson::make("$exists", true);
    QueueCounts counts;
    ANGELIA_TRY_ASSIGN(counts.leased,
                       store.count(name, bson::make("exclusive", true, "processed_by.0", unmarked,
                                                    "leased_until", live, "last_error", absent)));
    ANGELIA_TRY_ASSIGN(counts.failed,
                       store.count(name, bson::make("exclusive", true, "processed_by.0", unmarked,
                                                    "last_error", present)));
    ANGELIA_TRY_ASSIGN(
        const std::int64_t open,
        store.count(name, bson::make("exclusive", true, "processed_by.0", unmarked)));
    counts.waiting = std::max<std::int64_t>(
        0, open - counts.leased - counts.failed);  // four counts, not one moment
    ANGELIA_TRY_ASSIGN(counts.broadcasts,
                       store.count(name, bson::make("exclusive", bson::make("$ne", true))));
    return counts;
}

struct NodeRow {
    std::string id, host, implementation, topics, answered;
};

std::string topics_of(const Message& answer) {
    std::string topics;
    if (!answer.map_value) return topics;
    const auto by_name = answer.map_value->find("message_listeners_by_name").get_document();
    if (!by_name) return topics;
    for (const bson::Element& e : *by_name)
        topics += (topics.empty() ? "" : ", ") + std::string(e.key);
    return topics;
}

Result<std::vector<NodeRow>> nodes_of(store::Store& store, Messaging& asker,
                                      const std::vector<Message>& answers, std::int64_t now_ms) {
    store::FindRequest find;
    find.collection = store.collection(asker.participants_collection_name());
    find.limit = 1000;
    ANGELIA_TRY_ASSIGN(const auto participants, store.find(find));
    std::vector<NodeRow> rows;
    for (const auto& p : participants) {
        NodeRow row;
        row.id = p.find("_id").get_string().value_or("?");
        if (row.id == asker.id()) continue;
        row.host = p.find("hostname").get_string().value_or("");
        row.implementation = p.find("implementation").get_string().value_or("");
        const auto seen = p.find("last_seen").to_int64().value_or(now_ms);
        row.answered =
            fmt::format("no, seen {} ago",
                        format_duration(milliseconds(std::max<std::int64_t>(0, now_ms - seen))));
        rows.push_back(row);
    }
    for (const Message& answer : answers) {
        auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const NodeRow& r) { return r.id == answer.sender; });
        if (row == rows.end()) {
            rows.emplace_back();
            row = rows.end() - 1;
            row->id = answer.sender;
            row->host = answer.sender_host;
        }
        row->topics = topics_of(answer);
        row->answered = "yes";
    }
    return rows;
}

void print_table(const std::vector<NodeRow>& nodes, const QueueCounts& counts) {
    std::vector<std::vector<std::string>> rows{
        {"NODE", "HOST", "IMPLEMENTATION", "ANSWERED", "TOPICS"}};
    for (const auto& n : nodes)
        rows.push_back({n.id, n.host, n.implementation, n.answered, n.topics});
    print("{}", nodes.empty() ? std::string("no other node on this queue\n") : format_table(rows));
    print("\n{}",
          format_table({{"WAITING", "LEASED", "FAILED", "BROADCASTS STORED"},
                        {std::to_string(counts.waiting), std::to_string(counts.leased),
                         std::to_string(counts.failed), std::to_string(counts.broadcasts)}}));
}

void print_json(const std::string& queue, const std::vector<NodeRow>& nodes,
                const QueueCounts& counts) {
    bson::Builder b;
    b.add("queue", queue).open_array("nodes");
    for (const auto& n : nodes) {
        b.push(bson::make("id", n.id, "host", n.host, "implementation", n.implementation,
                          "answered", n.answered == "yes", "topics", n.topics));
    }
    b.close()
        .add("waiting", counts.waiting)
        .add("leased", counts.leased)
        .add("failed", counts.failed)
        .add("broadcasts", counts.broadcasts);
    const auto document = b.take();
    print("{}\n", bson::to_json(document.view()));
}

int status(const StatusOptions& o) {
    const milliseconds timeout = parse_duration(o.timeout).value_or_throw();
    auto options = node_options(o.common, o.queue);
    if (!options) return fail_arguments(options.error());
    auto store = open_common_store(o.common);
    if (!store) return fail_arguments(store.error());
    options->status_listener = false;
    options->implementation_check =
        ImplementationCheck::Ignore;  // it only asks: nobody needs to see it
    Messaging asker(*store, *std::move(options));
    if (auto started = asker.start(); !started) return fail_arguments(started.error());
    asker.wait_ready(milliseconds(5000));

    auto answers =
        asker.request_all({.topic = "morphium.status_info", .value = "MESSAGING_ONLY"}, 0, timeout);
    if (!answers) return fail(answers.error());
    const auto time = store->server_time();
    if (!time) return fail(time.error());
    auto nodes = nodes_of(*store, asker, *answers, time->now.millis);
    if (!nodes) return fail(nodes.error());
    auto counts = count_queue(*store, asker.collection_name(), time->now);
    if (!counts) return fail(counts.error());
    if (auto stopped = asker.stop(); !stopped) return fail(stopped.error());
    o.common.json() ? print_json(o.queue.queue, *nodes, *counts) : print_table(*nodes, *counts);
    return kOk;
}

}  // namespace

void add_status(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<StatusOptions>();
    CLI::App* command = app.add_subcommand("status", "who is on the queue, and what waits there");
    add_common_options(*command, o->common);
    add_queue_options(*command, o->queue);
    add_duration_option(*command, "--timeout", o->timeout, "how long to wait for answers of nodes")
        ->capture_default_str();
    command->footer("Examples:\n  angelia status\n  angelia status --queue orders -o json");
    command->callback([o, &invocation] { invocation.run = [o] { return status(*o); }; });
}

}  // namespace angelia::cli
