// hello and its old spellings: what drivers ask first on every connection, and what their monitors
// wait on.
#include "engine/command/announce.h"
#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/fail_point_hit.h"
#include "engine/command/server_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace angelia::engine::command {
namespace {

constexpr std::size_t kApplicationNameBytesMax = 128;  // MongoDB handshake specification
constexpr std::size_t kClientMetadataBytesMax = 512;   // MongoDB handshake specification
constexpr std::string_view kHelloFields[] = {
    "client",           "compression",        "helloOk",
    "hostInfo",         "internalClient",     "loadBalanced",
    "maxAwaitTimeMS",   "saslSupportedMechs", "speculativeAuthenticate",
    "topologyVersion",  "backpressure",       "hangUpOnStepDown",
    "hangUpOnStepdown", "forShell",
};
// The term never changes: a store has one member, and it is elected once.
constexpr std::int64_t kTerm = 1;
constexpr bson::ObjectId kElectionId{{0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, kTerm}};

Result<void> read_client_metadata(Call& call, bson::ValueView given) {
    Connection& connection = *call.connection();
    const bool first = !std::exchange(connection.hello_seen, true);
    if (given.is_missing()) return {};
    if (!first)
        return Error(ErrorCode::ClientMetadataCannotBeMutated,
                     "The client metadata document may only be sent in the first hello");
    if (!given.is(bson::Type::Document)) return wrong_type("client", given, "object");
    const auto client = given.as_document();
    if (client.size_bytes() > kClientMetadataBytesMax) {
        return Error(
            ErrorCode::ClientMetadataDocumentTooLarge,
            fmt::format("The client metadata document must be less then or equal to {} bytes",
                        kClientMetadataBytesMax));
    }
    const auto application = client.find("application");
    if (!application.is_missing() && !application.is(bson::Type::Document))
        return wrong_type("client.application", application, "object");
    const auto name = client.find_path("application.name");
    if (!name.is_missing() && !name.is(bson::Type::String))
        return wrong_type("client.application.name", name, "string");
    if (name && name.as_string().size() > kApplicationNameBytesMax) {
        return Error(
            ErrorCode::ClientMetadataAppNameTooLarge,
            fmt::format(
                "The 'client.application.name' field must be less then or equal to {} bytes",
                kApplicationNameBytesMax));
    }
    for (const std::string_view required : {"driver", "os"})
        if (!client.find(required).is(bson::Type::Document))
            return Error(
                ErrorCode::ClientMetadataMissingField,
                fmt::format("Missing required sub-document '{}' in the client metadata document",
                            required));
    for (const std::string_view required : {"driver.name", "driver.version", "os.type"})
        if (!client.find_path(required).is(bson::Type::String))
            return Error(ErrorCode::ClientMetadataMissingField,
                         fmt::format("Missing required field '{}' in the client metadata document",
                                     required));
    connection.client_metadata = bson::Document(client);
    if (name) connection.application_name = name.as_string();
    return {};
}

/// What the answer depends on besides the server's state.
struct HelloForm {
    bool legacy_name = false;
    bool hello_ok = false;
    std::vector<std::string_view>
        compressors;  ///< that client and door know, in the client's order
};

Result<std::vector<std::string_view>> common_compressors(const Call& call,
                                                         const Arguments& arguments) {
    std::vector<std::string_view> common;
    ANGELIA_TRY_ASSIGN(const auto wanted, arguments.array("compression"));
    if (!wanted) return common;
    const auto& known = call.connection()->compressors;
    for (const auto& [key, value] : *wanted) {
        if (!value.is(bson::Type::String))
            return wrong_type(fmt::format("hello.compression.{}", key), value, "string");
        const auto found = std::find(known.begin(), known.end(), value.as_string());
        if (found != known.end() && std::find(common.begin(), common.end(), *found) == common.end())
            common.push_back(*found);
    }
    return common;
}

bson::Builder hello_reply(Call& call, const HelloForm& form) {
    const Engine& engine = call.engine();
    const auto& host = call.connection()->advertised_host;
    const auto time = engine.operation_time();
    const bson::Date written{std::int64_t{time.seconds} * 1000};
    const auto op_time = bson::make("ts", time, "t", kTerm);
    bson::Builder b;
    if (form.hello_ok) b.add("helloOk", true);
    b.add(form.legacy_name ? "ismaster" : "isWritablePrimary", true);
    b.add("topologyVersion", call.state().topology_version());
    b.add("hosts", bson::array(host))
        .add("setName", engine.options().replica_set_name)
        .add("setVersion", std::int32_t{1})
        .add("secondary", false);
    b.add("primary", host).add("me", host).add("electionId", kElectionId);
    b.open("lastWrite")
        .add("opTime", op_time)
        .add("lastWriteDate", written)
        .add("majorityOpTime", op_time)
        .add("majorityWriteDate", written)
        .close();
    b.add("maxBsonObjectSize", static_cast<std::int32_t>(bson::kDocumentBytesMax))
        .add("maxMessageSizeBytes", kMessageBytesMax);
    b.add("maxWriteBatchSize", kWriteBatchMax)
        .add("localTime", bson::Date{engine.options().storage.clock->system_millis()});
    b.add("logicalSessionTimeoutMinutes", kSessionMinutes)
        .add("connectionId", call.connection()->id);
    b.add("minWireVersion", kWireVersionMin)
        .add("maxWireVersion", kWireVersionMax)
        .add("readOnly", false);
    if (!form.compressors.empty()) {
        b.open_array("compression");
        for (const auto name : form.compressors) b.push(name);
        b.close();
    }
    return b;
}

/// A hello that waits for a change of the server or the end of its time; with exhaust, again and
/// again. Its own lock, because the timer may fire before the wait is fully set up.
class WaitingHello : public std::enable_shared_from_this<WaitingHello> {
  public:
    WaitingHello(CallPtr call, HelloForm form, milliseconds patience)
        : call_(std::move(call)), form_(form), patience_(patience) {}

    void answer() {
        if (!call_->request().exhaust_allowed) return call_->succeed(hello_reply(*call_, form_));
        // Each answer of a stream counts as a hello of its own; a fault ends the stream.
        const bool first = !std::exchange(streaming_, true);
        if (!first && call_->state().fail_points.any() &&
            meet_fail_point(call_, [self = shared_from_this()](const CallPtr&) { self->stream(); }))
            return;
        stream();
    }

    void stream() {
        const std::int64_t shown = call_->state().topology_counter.load();
        call_->succeed_with_more_to_come(hello_reply(*call_, form_));
        wait(shown);
    }

    /// `shown`: the counter that the client knows.
    void wait(std::int64_t shown) {
        auto& awaits = call_->state().awaits;
        auto self = shared_from_this();
        const std::uint64_t id =
            awaits.add(call_->connection()->id, true, [self](AwaitEnd how) { self->ended(how); });
        if (id == 0) return ended(AwaitEnd::Shutdown);
        const auto timer = call_->engine().timers().post_after(patience_, [self, id] {
            if (self->call_->state().awaits.take(id)) self->answer();
        });
        {
            const std::lock_guard lock(mutex_);
            timer_ = timer;
        }
        if (call_->state().topology_counter.load() != shown && awaits.take(id))
            ended(AwaitEnd::ServerChanged);
    }

  private:
    void ended(AwaitEnd how) {
        {
            const std::lock_guard lock(mutex_);
            if (timer_) call_->engine().timers().cancel(*timer_);
            timer_.reset();
        }
        switch (how) {
            case AwaitEnd::ConnectionClosed:
                return call_->hang_up();
            case AwaitEnd::ServerChanged:
                return answer();
            case AwaitEnd::Shutdown:
                return call_->fail(Error(ErrorCode::ShutdownInProgress,
                                         "The server is in quiesce mode and will shut down"));
        }
    }

    const CallPtr call_;  // shared with whoever answers first
    const HelloForm form_;
    const milliseconds patience_;
    bool streaming_ = false;  // one answer at a time
    std::mutex mutex_;
    std::optional<Executor::TimerId> timer_;  // guarded by mutex_
};

struct KnownTopology {
    bson::ObjectId process_id;
    std::int64_t counter = 0;
    milliseconds patience{0};
};

/// Nothing when the client does not want to wait.
Result<std::optional<KnownTopology>> read_known_topology(const Arguments& arguments) {
    ANGELIA_TRY_ASSIGN(const auto version, arguments.document("topologyVersion"));
    ANGELIA_TRY_ASSIGN(const auto patience, arguments.integer("maxAwaitTimeMS"));
    if (version.empty() && !patience) return std::optional<KnownTopology>();
    if (version.empty())
        return Error(ErrorCode::InvalidOptions,
                     "A request with a 'maxAwaitTimeMS' field must include 'topologyVersion'");
    if (!patience)
        return Error(ErrorCode::InvalidOptions,
                     "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'");
    if (*patience < 0 || *patience > INT32_MAX)
        return Error(ErrorCode::InvalidOptions,
                     "'maxAwaitTimeMS' must be a non-negative 32-bit integer");
    const auto process_id = version.find("processId").get_object_id();
    const auto counter = version.find("counter");
    if (!process_id)
        return wrong_type("topologyVersion.processId", version.find("processId"), "objectId");
    if (!counter.is(bson::Type::Int64))
        return wrong_type("topologyVersion.counter", counter, "long");
    if (counter.as_int64() < 0)
        return Error(ErrorCode::InvalidOptions, "'topologyVersion.counter' must not be negative");
    return std::optional(KnownTopology{*process_id, counter.as_int64(), milliseconds(*patience)});
}

Result<void> hello(const CallPtr& call) {
    const Arguments arguments("hello", call->body());
    ANGELIA_TRY(read_client_metadata(*call, call->body().find("client")));
    HelloForm form;
    form.legacy_name = (*call->body().begin()).key != "hello";
    form.hello_ok = call->body().find("helloOk").truthy();
    ANGELIA_TRY_ASSIGN(form.compressors, common_compressors(*call, arguments));
    ANGELIA_TRY_ASSIGN(const auto known, read_known_topology(arguments));
    auto& state = call->state();
    if (!known) {
        if (state.shutting_down)
            return Error(ErrorCode::ShutdownInProgress,
                         "The server is in quiesce mode and will shut down");
        call->succeed(hello_reply(*call, form));
        return {};
    }
    if (known->process_id == state.process_id && known->counter > state.topology_counter.load()) {
        return Error(ErrorCode::InvalidOptions,
                     fmt::format("'topologyVersion.counter' is {}, newer than this server's {}",
                                 known->counter, state.topology_counter.load()));
    }
    call->release_request();
    const auto waiting = std::make_shared<WaitingHello>(call, form, known->patience);
    if (known->process_id == state.process_id)
        waiting->wait(known->counter);
    else
        waiting->answer();
    return {};
}

}  // namespace

extern const CommandEntry kHelloCommand{
    .name = "hello",
    .aliases = {"isMaster", "ismaster"},
    .handler = hello,
    .fields = kHelloFields,
    .flags = kAnyFields | kDuringShutdown | kApiVersion1 | kReads | kWrites,
    .help =
        "what this server is and can; waits for a change when given topologyVersion and "
        "maxAwaitTimeMS"};

}  // namespace angelia::engine::command
