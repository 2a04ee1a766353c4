#include "engine/command/commands.h"
#include "engine/command/images_option.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kCreateFields[] = {
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "collation",
    "indexOptionDefaults",
    "timeseries",
    "expireAfterSeconds",
    "clusteredIndex",
    "changeStreamPreAndPostImages",
    "autoIndexId",
    "idIndex",
    "storageEngine",
    "encryptedFields",
    "flags",
    "temp",
    "recordPreImages",
};
// Options that promise a behaviour which is not there yet: refused loudly rather than ignored.
constexpr std::string_view kCreateUnsupported[] = {
    "capped",         "validator",       "viewOn",         "timeseries", "expireAfterSeconds",
    "clusteredIndex", "encryptedFields", "recordPreImages"};
// What listCollections shows again.
constexpr std::string_view kCreateListed[] = {"validationLevel", "validationAction",
                                              "indexOptionDefaults", "storageEngine"};

Result<void> create(const CallPtr& call) {
    const Arguments arguments("create", call->body());
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    if (arguments.value("timeseries"))
        return Error(ErrorCode::InvalidOptions,
                     "time-series collections are not supported by this server");
    ANGELIA_TRY(arguments.none_of(kCreateUnsupported));
    ANGELIA_TRY(arguments.no_collation());
    ANGELIA_TRY_ASSIGN(const auto images, read_images_option(arguments, "create"));
    bson::Builder options;
    for (const auto name : kCreateListed) options.add(name, arguments.value(name));
    if (images.value_or(false))
        options.add("changeStreamPreAndPostImages", bson::make("enabled", true));
    if (call->statement()) {
        ANGELIA_TRY(call->engine().create_collection_in(call->statement(), ns, options.take()));
        call->succeed({});
        return {};
    }
    call->engine().create_collection(
        ns, options.take(),
        [call](Result<bson::Timestamp> created) {
            if (!call->failed(created)) call->succeed({}, *created);
        },
        call->deadline());
    return {};
}

}  // namespace

extern const CommandEntry kCreateCommand{.name = "create",
                                         .handler = create,
                                         .fields = kCreateFields,
                                         .flags = kWrites | kApiVersion1 | kInTransaction,
                                         .help = "makes an empty collection"};

}  // namespace angelia::engine::command
