// drop and dropDatabase: what is not there counts as dropped.
#include "engine/command/arguments.h"
#include "engine/command/commands.h"

namespace angelia::engine::command {
namespace {

Result<void> drop(const CallPtr& call) {
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    call->engine().drop_collection(
        ns,
        [call, ns](Result<std::int32_t> dropped) {
            bson::Builder b;
            if (dropped)
                b.add("nIndexesWas", *dropped).add("ns", ns.full());
            else if (dropped.error().code != ErrorCode::NamespaceNotFound)
                return call->fail(dropped.error());
            call->succeed(std::move(b));
        },
        call->deadline());
    return {};
}

Result<void> drop_database(const CallPtr& call) {
    if ((*call->body().begin()).value.to_int64() != 1)
        return Error(ErrorCode::IllegalOperation, "have to pass 1 as db parameter");
    const std::string db = call->database();
    call->engine().drop_database(
        db,
        [call, db](Result<bson::Timestamp> dropped) {
            bson::Builder b;
            if (dropped) {
                b.add("dropped", db);
            } else if (dropped.error().code != ErrorCode::NamespaceNotFound) {
                return call->fail(dropped.error());
            }
            call->succeed(std::move(b), dropped ? std::optional(*dropped) : std::nullopt);
        },
        call->deadline());
    return {};
}

}  // namespace

extern const CommandEntry kDropCommand{.name = "drop",
                                       .handler = drop,
                                       .flags = kWrites | kLong | kApiVersion1,
                                       .help = "removes a collection and its indexes"};
extern const CommandEntry kDropDatabaseCommand{.name = "dropDatabase",
                                               .handler = drop_database,
                                               .flags = kWrites | kLong | kApiVersion1,
                                               .help = "removes a database"};

}  // namespace angelia::engine::command
