// collMod: expiry and visibility of an index, images for change streams. What it cannot change here
// is refused.
#include "engine/command/commands.h"
#include "engine/command/images_option.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kCollModFields[] = {
    "index",          "validator",  "validationLevel",
    "viewOn",         "pipeline",   "validationAction",
    "cappedSize",     "cappedMax",  "expireAfterSeconds",
    "dryRun",         "timeseries", "changeStreamPreAndPostImages",
    "recordPreImages"};
constexpr std::string_view kCollModUnsupported[] = {
    "validator", "validationLevel", "validationAction", "viewOn",
    "pipeline",  "cappedSize",      "cappedMax",        "expireAfterSeconds",
    "dryRun",    "timeseries",      "recordPreImages"};
constexpr std::string_view kCollModIndexFields[] = {"name",   "keyPattern", "expireAfterSeconds",
                                                    "hidden", "unique",     "prepareUnique"};
constexpr std::string_view kCollModIndexUnsupported[] = {"unique", "prepareUnique"};

Result<std::optional<CollectionChange::IndexChange>> read_index_change(bson::ValueView value) {
    if (value.is_missing()) return std::optional<CollectionChange::IndexChange>();
    if (!value.is(bson::Type::Document)) return wrong_type("collMod.index", value, "object");
    const Arguments arguments("collMod.index", value.as_document());
    ANGELIA_TRY(arguments.only(kCollModIndexFields));
    ANGELIA_TRY(arguments.none_of(kCollModIndexUnsupported));
    CollectionChange::IndexChange change;
    ANGELIA_TRY_ASSIGN(const auto name, arguments.string("name"));
    ANGELIA_TRY_ASSIGN(const auto key, arguments.document("keyPattern"));
    if (name && !key.empty())
        return Error(ErrorCode::InvalidOptions, "Cannot specify both key pattern and name.");
    if (!name && key.empty())
        return Error(ErrorCode::InvalidOptions, "Must specify either index name or key pattern.");
    change.name = name.value_or(std::string_view());
    if (name && name->empty())
        return Error(ErrorCode::IndexNotFound, "cannot find an index with an empty name");
    change.key = bson::Document(key);
    const auto expire = arguments.value("expireAfterSeconds");
    if (!expire.is_missing()) {
        if (!expire.is_number())
            return wrong_type("collMod.index.expireAfterSeconds", expire, "number");
        change.expire_after_seconds = expire.to_int64();
        if (!change.expire_after_seconds)
            change.expire_after_seconds =
                static_cast<std::int64_t>(expire.to_double().value_or(-1));
    }
    if (!arguments.value("hidden").is_missing()) {
        ANGELIA_TRY_ASSIGN(change.hidden, arguments.boolean("hidden", false));
    }
    if (!change.expire_after_seconds && !change.hidden)
        return Error(ErrorCode::InvalidOptions,
                     "no expireAfterSeconds, hidden, unique, or prepareUnique field");
    return std::optional(std::move(change));
}

Result<void> coll_mod(const CallPtr& call) {
    const Arguments arguments("collMod", call->body());
    ANGELIA_TRY_ASSIGN(const auto ns, call->collection());
    ANGELIA_TRY(arguments.none_of(kCollModUnsupported));
    CollectionChange change;
    ANGELIA_TRY_ASSIGN(change.index, read_index_change(arguments.value("index")));
    ANGELIA_TRY_ASSIGN(change.keep_images, read_images_option(arguments, "collMod"));
    call->engine().modify_collection(
        ns, std::move(change),
        [call](Result<CollectionChanged> changed) {
            if (call->failed(changed)) return;
            bson::Builder b;
            if (changed->expire_old) b.add("expireAfterSeconds_old", *changed->expire_old);
            if (changed->expire_new) b.add("expireAfterSeconds_new", *changed->expire_new);
            if (changed->hidden_old) b.add("hidden_old", *changed->hidden_old);
            if (changed->hidden_new) b.add("hidden_new", *changed->hidden_new);
            call->succeed(std::move(b), changed->operation_time);
        },
        call->deadline());
    return {};
}

}  // namespace

Result<std::optional<bool>> read_images_option(const Arguments& arguments,
                                               std::string_view command) {
    constexpr std::string_view kOption = "changeStreamPreAndPostImages";
    constexpr std::string_view kFields[] = {"enabled"};
    const auto value = arguments.value(kOption);
    if (value.is_missing()) return std::optional<bool>();
    const std::string where = fmt::format("{}.{}", command, kOption);
    if (!value.is(bson::Type::Document)) return wrong_type(where, value, "object");
    const Arguments inner(where, value.as_document());
    ANGELIA_TRY(inner.only(kFields));
    ANGELIA_TRY_ASSIGN(const auto enabled, inner.required("enabled"));
    const auto flag = enabled.get_bool();
    if (!flag) return wrong_type(where + ".enabled", enabled, "bool");
    return std::optional(*flag);
}

extern const CommandEntry kCollModCommand{
    .name = "collMod",
    .handler = coll_mod,
    .fields = kCollModFields,
    .flags = kWrites | kApiVersion1,
    .help = "changes options of a collection or of one index"};

}  // namespace angelia::engine::command
