#include "messaging/participants.h"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace angelia::messaging {
namespace {

/// A process of this machine that has ended; false where it cannot be known.
bool is_dead_process(std::int64_t pid) {
    return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

}  // namespace

Participants::Participants(Context& context) : context_(context), instance_(random_uuid()) {}

bson::Document Participants::document(std::int64_t now) const {
    // The last two are ours: which process and object it is. Others ignore them.
    return bson::make("_id", context_.self, "implementation", context_.names.implementation,
                      "hostname", context_.host, "started_at", started_at_, "last_seen", now,
                      "instance", instance_, "pid", static_cast<std::int64_t>(::getpid()));
}

bool Participants::alive(bson::DocumentView participant, std::int64_t now) const {
    const auto seen = participant["last_seen"].to_int64();
    if (!seen || *seen < now - context_.options.participant_timeout.count()) return false;
    const auto pid = participant["pid"].to_int64();
    const bool here = participant["hostname"].get_string() == std::string_view(context_.host);
    return !(here && pid && is_dead_process(*pid));
}

Result<void> Participants::announce() {
    ANGELIA_TRY_ASSIGN(const auto time, context_.store.server_time());
    context_.learn_server_time(time);
    started_at_ = context_.server_millis();
    ANGELIA_TRY(take_id(started_at_));
    if (auto ok = check_others(started_at_, true); !ok) {
        withdraw();
        return ok;
    }
    return {};
}

Result<void> Participants::take_id(std::int64_t now) {
    if (!announces()) return {};
    const auto own = document(now);
    auto inserted = context_.store.insert(context_.participants, own);
    if (!inserted) return std::move(inserted).error();
    if (inserted->errors.empty()) return {};
    if (inserted->errors[0].error.code != ErrorCode::DuplicateKey) return inserted->errors[0].error;
    ANGELIA_TRY_ASSIGN(
        const auto found,
        context_.store.find(
            {context_.participants, bson::make("_id", context_.self), {}, {}, 0, 1}));
    const auto refused = [&](bson::DocumentView holder) -> Result<void> {
        return {ErrorCode::ConflictingOperationInProgress,
                fmt::format("the id \"{}\" is alive on the queue (process {} on {}, seen {} ms "
                            "ago); use another id, or wait until it has not been seen for {} ms",
                            context_.self, holder["pid"].to_int64().value_or(0),
                            holder["hostname"].get_string().value_or("unknown"),
                            now - holder["last_seen"].to_int64().value_or(0),
                            context_.options.participant_timeout.count())};
    };
    if (!found.empty() && alive(found[0], now)) return refused(found[0]);
    // Replaces exactly what was read: of two that try, one wins.
    store::UpdateOp op;
    op.filter = found.empty() ? bson::make("_id", context_.self) : found[0].copy();
    op.update = own.copy();
    op.upsert = found.empty();
    std::vector<store::UpdateOp> ops;
    ops.push_back(std::move(op));
    ANGELIA_TRY_ASSIGN(const auto replaced,
                       context_.store.update(context_.participants, std::move(ops)));
    if (!replaced.errors.empty() ||
        replaced.matched + static_cast<std::int64_t>(replaced.upserted.size()) == 0) {
        return refused(found.empty() ? own.view() : found[0].view());
    }
    return {};
}

Result<void> Participants::check_others(std::int64_t now, bool at_start) {
    if (!announces()) return {};
    ANGELIA_TRY_ASSIGN(const auto all,
                       context_.store.find({context_.participants, {}, {}, {}, 0, 10'000}));
    bool foreign = false;
    for (const auto& p : all) {
        const auto id = p["_id"].get_string();
        if (!id || *id == context_.self || !alive(p, now)) continue;
        if (!p.has("instance")) foreign = true;
        const auto implementation = p["implementation"].get_string();
        if (!implementation || *implementation == context_.names.implementation) continue;
        const auto text = fmt::format(
            "participant \"{}\" on {} uses {} and this node {}: they do not see each other's "
            "messages",
            *id, p["hostname"].get_string().value_or("an unknown host"), *implementation,
            context_.names.implementation);
        if (at_start && context_.options.implementation_check == ImplementationCheck::Refuse)
            return {ErrorCode::IllegalOperation, text};
        constexpr std::size_t kWarnedMax = 1000;
        if (warned_.size() < kWarnedMax && warned_.insert(std::string(*id)).second)
            context_.log(LogLevel::Warning, text);
    }
    foreign_nodes_ = foreign;
    return {};
}

void Participants::beat() {
    const auto fail = [&](const Error& error) {
        context_.metrics.add(Counter::heartbeat_errors);
        context_.log(LogLevel::Warning, "heartbeat failed: " + error.to_string());
    };
    auto time = context_.store.server_time();
    if (!time) return fail(time.error());
    context_.learn_server_time(*time);
    if (!announces()) return;
    const auto now = context_.server_millis();
    store::UpdateOp own;
    own.filter = bson::make("_id", context_.self, "instance", instance_);
    own.update = document(now);
    own.upsert = true;  // others may have removed it while this process slept
    std::vector<store::UpdateOp> ops;
    ops.push_back(std::move(own));
    auto updated = context_.store.update(context_.participants, std::move(ops));
    if (!updated) return fail(updated.error());
    if (!updated->errors.empty()) {
        context_.metrics.add(Counter::heartbeat_errors);
        context_.log(LogLevel::Error,
                     "another process uses this node's id; messages may be handled by either: " +
                         updated->errors[0].error.to_string());
    }
    std::vector<store::DeleteOp> gone(1);
    gone[0].filter = bson::make(
        "last_seen", bson::make("$lt", now - 3 * context_.options.participant_timeout.count()));
    gone[0].multi = true;
    if (auto removed = context_.store.remove(context_.participants, std::move(gone)); !removed)
        return fail(removed.error());
    if (auto checked = check_others(now, false); !checked) fail(checked.error());
}

void Participants::withdraw() {
    if (!announces()) return;
    std::vector<store::DeleteOp> own(1);
    own[0].filter = bson::make("_id", context_.self, "instance", instance_);
    auto removed = context_.store.remove(context_.participants, std::move(own), true,
                                         {.timeout = milliseconds(2000)});
    if (!removed)
        context_.log(LogLevel::Warning, "the participants document could not be removed: " +
                                            removed.error().to_string());
}

}  // namespace angelia::messaging
