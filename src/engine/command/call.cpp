#include "engine/command/call.h"

#include "engine/command/arguments.h"
#include "engine/command/command_table.h"
#include "engine/command/labels.h"
#include "engine/command/server_state.h"
#include "engine/session/session_table.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

void add_labels(bson::Builder& b, const std::vector<std::string>& labels) {
    if (labels.empty()) return;
    b.open_array("errorLabels");
    for (const auto& label : labels) b.push(label);
    b.close();
}

SteadyTime steady_now_of(Engine& engine) { return engine.options().storage.clock->steady_now(); }

}  // namespace

Call::Call(const CommandEntry& entry, Engine& engine, std::shared_ptr<ServerState> state,
           std::shared_ptr<Connection> connection, Request request, ReplyFunction reply)
    : entry_(entry),
      engine_(engine),
      state_(std::move(state)),
      connection_(std::move(connection)),
      request_(std::move(request)),
      reply_(std::move(reply)),
      started_(steady_now_of(engine)) {}

SteadyTime Call::deadline() const {
    return generic_.max_time ? started_ + *generic_.max_time : SteadyTime::max();
}

std::optional<RetryKey> Call::retry_key() const {
    if (!is_retryable()) return std::nullopt;
    return RetryKey{generic_.lsid.copy(), *generic_.txn_number};
}

RetryKey Call::transaction_key() const {
    return RetryKey{generic_.lsid.copy(), generic_.txn_number.value_or(0)};
}

Result<void> Call::begin_statement() {
    ANGELIA_TRY_ASSIGN(statement_,
                       engine_.begin_statement(transaction_key(), generic_.starts_transaction,
                                               generic_.read_concern.at_cluster_time));
    return {};
}

void Call::end_statement(bool failed) {
    if (!statement_) return;
    if (failed) statement_->fail();
    // Before the answer: the client may send the next statement as soon as it has it.
    statement_->finish();
}

Result<std::vector<bson::DocumentView>> Call::documents(std::string_view field) const {
    for (const auto& sequence : request_.sequences)
        if (sequence.name == field) return sequence.documents;
    const Arguments arguments(entry_.name, body());
    ANGELIA_TRY_ASSIGN(const auto array, arguments.array(field));
    if (!array) return missing_field(fmt::format("{}.{}", entry_.name, field));
    std::vector<bson::DocumentView> documents;
    for (const auto& [key, value] : *array) {
        if (!value.is(bson::Type::Document))
            return wrong_type(fmt::format("{}.{}.{}", entry_.name, field, key), value, "object");
        documents.push_back(value.as_document());
    }
    return documents;
}

Result<Namespace> Call::collection() const {
    const auto value = (*body().begin()).value;
    if (!value.is(bson::Type::String))
        return Error(ErrorCode::BadValue,
                     fmt::format("collection name has invalid type {}; a string is needed",
                                 bson::type_alias(value.type())));
    return Namespace{request_.database, std::string(value.as_string())};
}

bson::Document Call::complete(bson::Builder fields, double ok,
                              std::optional<bson::Timestamp> time) {
    const auto newest = engine_.operation_time();
    const auto own = time.value_or(newest);
    fields.add("ok", ok);
    fields.open("$clusterTime").add("clusterTime", std::max(own, newest));
    constexpr std::string_view kNoHash("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
    fields.open("signature")
        .add("hash", bson::BinaryView{0, kNoHash})
        .add("keyId", std::int64_t{0})
        .close()
        .close();
    fields.add("operationTime", own);
    return fields.take();
}

void Call::send(Reply reply) {
    release_request();
    reply_(std::move(reply));
}

void Call::succeed(bson::Builder fields, std::optional<bson::Timestamp> time) {
    if (answered_.exchange(true)) return;
    end_statement(false);
    const bool injected = fail_point_ && !fail_point_->write_concern_error.empty();
    if (injected) {
        const auto wce = fail_point_->write_concern_error.view();
        const auto code = static_cast<ErrorCode>(wce.find("code").to_int64().value_or(0));
        bson::Builder named;
        named.add_all(wce);
        if (!wce.has("codeName")) named.add("codeName", error_code_name(code));
        fields.add("writeConcernError", named.take());
        add_labels(fields, labels_for_write_concern_error(*this, code));
        // Without it a driver takes the server for lost until its next heartbeat, 10 s later.
        if (is_state_change(code)) fields.add("topologyVersion", state_->topology_version());
    } else if (generic_.write_concern.unsatisfiable) {
        fields.add("writeConcernError", write_concern_error(generic_.write_concern));
        add_labels(fields, labels_for_write_concern_error(
                               *this, generic_.write_concern.unsatisfiable->code));
    }
    send({.body = complete(std::move(fields), 1.0, time)});
}

void Call::succeed_with_more_to_come(bson::Builder fields) {
    if (answered_.load()) return;
    reply_({.body = complete(std::move(fields), 1.0, std::nullopt), .more_to_come = true});
}

void Call::fail(const Error& error) {
    if (answered_.exchange(true)) return;
    end_statement(true);
    state_->counters[command_index(entry_)].failed.fetch_add(1, std::memory_order_relaxed);
    bson::Builder b;
    b.add("errmsg", error.message)
        .add("code", static_cast<std::int32_t>(error.code))
        .add("codeName", error_code_name(error.code));
    if (!error.details_bson.empty()) b.add_all(bson::DocumentView(error.details_bson));
    add_labels(b, labels_for(*this, error));
    if (is_state_change(error.code)) b.add("topologyVersion", state_->topology_version());
    send({.body = complete(std::move(b), 0.0, std::nullopt)});
}

void Call::hang_up() {
    if (answered_.exchange(true)) return;
    end_statement(false);
    send({.close_connection = true, .send = false});
}

}  // namespace angelia::engine::command
