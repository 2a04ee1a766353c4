// angelia doctor: what this store can do, what is missing, and the command that repairs it.
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

struct DoctorOptions {
    CommonOptions common;
    QueueOptions queue;
};

struct Finding {
    std::string what;
    std::string value;
    std::string trouble;  ///< empty: fine
    std::string repair;   ///< a command, where there is one
};

std::string yes_no(bool b) { return b ? "yes" : "no"; }

void check_capabilities(const store::Capabilities& c, std::vector<Finding>& findings) {
    findings.push_back({"topology", c.topology, "", ""});
    findings.push_back({"version", c.server_version, "", ""});
    const char* replica_set =
        "restart mongod with --replSet rs0, then: mongosh --eval 'rs.initiate()'";
    findings.push_back({"change streams", yes_no(c.change_streams),
                        c.change_streams ? "" : "messaging polls: slower, more load",
                        c.change_streams ? "" : replica_set});
    const bool standalone = c.topology.rfind("standalone", 0) == 0;
    findings.push_back({"transactions", yes_no(c.transactions),
                        standalone ? "no transactional outbox" : "",
                        standalone ? replica_set : ""});
    findings.push_back({"TTL indexes", yes_no(c.ttl_indexes),
                        c.ttl_indexes ? "" : "expired messages stay until a node deletes them",
                        ""});
    findings.push_back({"batch resume tokens", yes_no(c.batch_tokens), "", ""});
    findings.push_back({"startAfter", yes_no(c.start_after), "", ""});
    findings.push_back({"fills timestamps", yes_no(c.fills_timestamps), "", ""});
}

void check_clock(store::Store& store, std::vector<Finding>& findings) {
    const auto time = store.server_time();
    if (!time) {
        findings.push_back({"clock skew", "unknown", time.error().message, ""});
        return;
    }
    const auto skew = milliseconds(std::abs(time->now.millis - real_clock().system_millis()));
    const bool bad =
        skew > milliseconds(1000) + std::chrono::duration_cast<milliseconds>(time->round_trip);
    findings.push_back({"clock skew", format_duration(skew),
                        bad ? "clocks of this machine and the server differ" : "",
                        bad ? "timedatectl set-ntp true" : ""});
    findings.push_back({"round trip", format_duration(time->round_trip), "", ""});
}

void check_log_and_latency(store::Store& store, std::vector<Finding>& findings) {
    const auto diagnostics = store.diagnostics();
    const auto hours = diagnostics->log_window_hours();
    if (hours) {
        findings.push_back({"log window", fmt::format("{:.2f} h", *hours), "", ""});
    } else {
        findings.push_back({"log window", "unknown (" + hours.error().message + ")", "", ""});
    }
    const auto scratch = store.collection("angelia_doctor_scratch");
    const auto latency = diagnostics->write_latency(scratch, 20);
    const bool slow = latency && *latency > milliseconds(100);
    findings.push_back(
        {"durable write", latency ? format_duration(*latency) : "failed",
         latency ? (slow ? "every claim and mark waits that long" : "") : latency.error().message,
         ""});
    if (auto dropped = store.drop(scratch); !dropped)
        findings.push_back({"drop", "failed", dropped.error().message, ""});
}

Result<void> check_collections(store::Store& store, const Messaging& node,
                               std::vector<Finding>& findings) {
    ANGELIA_TRY_ASSIGN(const auto names, store.list_collections());
    const auto diagnostics = store.diagnostics();
    for (const std::string& name : {node.collection_name(), node.lock_collection_name(),
                                    node.participants_collection_name()}) {
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            findings.push_back({"collection " + name, "absent", "", ""});
            continue;
        }
        ANGELIA_TRY_ASSIGN(const auto count, store.count(store.collection(name), bson::Document()));
        std::string indexes;
        bool ttl = false;
        const auto reply =
            diagnostics->run_command(store.database(), bson::make("listIndexes", name));
        if (!reply) return reply.error();
        if (const auto batch = reply->view().find_path("cursor.firstBatch").get_array()) {
            for (const bson::Element& e : *batch) {
                const auto index = e.value.get_document().value_or(bson::DocumentView());
                indexes += (indexes.empty() ? "" : ", ") +
                           std::string(index.find("name").get_string().value_or("?"));
                ttl = ttl || index.has("expireAfterSeconds");
            }
        }
        const bool wants_ttl = name != node.participants_collection_name();
        findings.push_back(
            {"collection " + name, fmt::format("{} documents; indexes {}", count, indexes),
             wants_ttl && !ttl ? "no TTL index: nothing expires" : "",
             wants_ttl && !ttl ? fmt::format("mongosh --eval 'db.{}.createIndex({{delete_at: 1}}, "
                                             "{{expireAfterSeconds: 0}})'",
                                             name)
                               : ""});
    }
    return {};
}

int doctor(const DoctorOptions& o) {
    auto options = node_options(o.common, o.queue);
    if (!options) return fail_arguments(options.error());
    auto store = open_common_store(o.common);
    if (!store) return fail_arguments(store.error());
    std::vector<Finding> findings;
    findings.push_back({"store", store->describe(), "", ""});
    const auto capabilities = store->capabilities();
    if (!capabilities) return fail(capabilities.error());
    check_capabilities(*capabilities, findings);
    check_clock(*store, findings);
    check_log_and_latency(*store, findings);
    const Messaging node(*store, *std::move(options));
    if (auto checked = check_collections(*store, node, findings); !checked)
        return fail(checked.error());

    std::size_t troubles = 0;
    if (o.common.json()) {
        bson::Builder b;
        b.open_array("findings");
        for (const auto& f : findings) {
            b.push_document().add("what", f.what).add("value", f.value);
            if (!f.trouble.empty()) b.add("trouble", f.trouble);
            if (!f.repair.empty()) b.add("repair", f.repair);
            b.close();
        }
        b.close();
        const auto document = b.take();
        print("{}\n", bson::to_json(document.view()));
    } else {
        std::vector<std::vector<std::string>> rows{{"WHAT", "VALUE", "TROUBLE"}};
        for (const auto& f : findings) rows.push_back({f.what, f.value, f.trouble});
        print("{}", format_table(rows));
        for (const auto& f : findings) {
            if (!f.repair.empty()) print("\n{}: {}\n  {}\n", f.what, f.trouble, f.repair);
        }
    }
    for (const auto& f : findings) troubles += f.trouble.empty() ? 0 : 1;
    return troubles == 0 ? kOk : kFailed;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
    auto o = std::make_shared<DoctorOptions>();
    CLI::App* command = app.add_subcommand(
        "doctor", "what this store can do, what is missing, and what repairs it");
    add_common_options(*command, o->common);
    add_queue_options(*command, o->queue);
    command->footer(
        "Examples:\n  angelia doctor\n  angelia doctor --store mongodb://db1/app -o json\nExit "
        "code 1: there is trouble.");
    command->callback([o, &invocation] { invocation.run = [o] { return doctor(*o); }; });
}

}  // namespace angelia::cli
