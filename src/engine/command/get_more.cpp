// getMore: the next batch of a cursor. On a change stream without events it waits, without a
// thread.
#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/cursor_reply.h"
#include "engine/command/labels.h"
#include "engine/command/placement.h"
#include "engine/command/server_state.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kGetMoreFields[] = {"collection", "batchSize", "term",
                                               "lastKnownCommittedOpTime"};

Result<GetMoreSpec> parse_get_more(const Call& call) {
    const Arguments arguments("getMore", call.body());
    GetMoreSpec spec;
    const auto id = (*call.body().begin()).value;
    if (!id.is(bson::Type::Int64)) return wrong_type("getMore.getMore", id, "long");
    spec.cursor_id = id.as_int64();
    ANGELIA_TRY(arguments.required("collection"));
    ANGELIA_TRY_ASSIGN(const auto collection, arguments.string("collection"));
    if (!collection || collection->empty())
        return Error(ErrorCode::InvalidNamespace,
                     "getMore needs the name of the cursor's collection");
    spec.ns = Namespace{call.database(), std::string(*collection)};
    ANGELIA_TRY_ASSIGN(spec.batch_size, arguments.non_negative("batchSize", 0));
    spec.max_wait = call.generic().max_time;
    spec.lsid = call.generic().lsid.copy();
    spec.statement = call.statement();
    spec.run_on = call.connection()->post;
    return spec;
}

/// failGetMoreAfterCursorCheckout. When the connection ends, so does the request; the error that
/// comes back then reaches nobody.
std::optional<Error> meet_checkout(const CallPtr& call, bool change_stream) {
    const auto hit = call->state().fail_points.on_get_more();
    if (!hit || (!hit->error_code && !hit->close_connection)) return std::nullopt;
    if (hit->close_connection) call->hang_up();
    Error error(static_cast<ErrorCode>(hit->error_code.value_or(
                    static_cast<std::int32_t>(ErrorCode::HostUnreachable))),
                "Failing command via 'failGetMoreAfterCursorCheckout' failpoint");
    if (change_stream) add_change_stream_label(error);
    return error;
}

/// `id`: the entry that gives the right to answer.
void answer_get_more(const CallPtr& call, std::uint64_t id, Result<CursorBatch> batch) {
    if (!call->state().awaits.take(id)) return;
    if (call->failed(batch)) return;
    call->succeed(cursor_reply(*batch, false));
}

Result<void> get_more(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(auto spec, parse_get_more(*call));
    auto& state = call->state();
    state.operations.get_more.fetch_add(1, std::memory_order_relaxed);
    if (state.fail_points.any())
        spec.after_checkout = [call](bool change_stream) {
            return meet_checkout(call, change_stream);
        };
    call->release_request();
    // Whoever takes the entry answers: the engine's batch, or the shutdown of the server.
    const std::uint64_t id = state.awaits.add(call->connection()->id, false, [call](AwaitEnd how) {
        if (how == AwaitEnd::ConnectionClosed) return call->hang_up();
        Error error(ErrorCode::ShutdownInProgress,
                    "The server is in quiesce mode and will shut down");
        add_change_stream_label(error);  // only change streams wait
        call->fail(error);
    });
    if (id == 0)
        return Error(ErrorCode::ShutdownInProgress,
                     "The server is in quiesce mode and will shut down");
    const auto answer = [call, id](Result<CursorBatch> batch) {
        answer_get_more(call, id, std::move(batch));
    };
    // A wait is only given for change streams, which answer at once or wait without a thread; other
    // cursors may have much to read.
    if (spec.max_wait || !may_take_long(call->engine(), spec.ns, bson::DocumentView())) {
        call->engine().get_more(spec, answer);
    } else {
        call->engine().workers().post(
            [call, answer, shared = std::make_shared<const GetMoreSpec>(std::move(spec))] {
                call->engine().get_more(*shared, answer);
            });
    }
    return {};
}

}  // namespace

extern const CommandEntry kGetMoreCommand{.name = "getMore",
                                          .handler = get_more,
                                          .fields = kGetMoreFields,
                                          .flags = kApiVersion1 | kInTransaction,
                                          .help = "hands out the next documents of a cursor"};

}  // namespace angelia::engine::command
