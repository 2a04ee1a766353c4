#include "engine/command/announce.h"
#include "engine/command/commands.h"

#include <angelia/bson/types.h>

namespace angelia::engine::command {
namespace {

Result<void> build_info(const CallPtr& call) {
    bson::Builder b;
    b.add("version", kServerVersion)
        .add("gitVersion", "unknown")
        .add("modules", bson::Array())
        .add("allocator", "system");
    b.add("javascriptEngine", "none").add("sysInfo", "deprecated").open_array("versionArray");
    for (const auto part : kServerVersionParts) b.push(part);
    b.close();
    b.add("openssl", bson::make("running", "disabled"))
        .add("buildEnvironment", bson::Document())
        .add("bits", std::int32_t{64})
        .add("debug", false);
    b.add("maxBsonObjectSize", static_cast<std::int32_t>(bson::kDocumentBytesMax))
        .add("storageEngines", bson::array("rocksdb"));
    b.add("angelia", bson::make("version", kProductVersion));
    call->succeed(std::move(b));
    return {};
}

}  // namespace

extern const CommandEntry kBuildInfoCommand{
    .name = "buildInfo",
    .aliases = {"buildinfo"},
    .handler = build_info,
    .flags = kReads,
    .help = "the version that this server announces, and its own"};

}  // namespace angelia::engine::command
