// renameCollection: another name for the same data, also in another database.
#include "engine/command/arguments.h"
#include "engine/command/commands.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kRenameFields[] = {"to", "dropTarget", "stayTemp"};

Result<Namespace> read_rename_namespace(std::string_view field, bson::ValueView value) {
    const auto text = value.get_string();
    if (!text) return wrong_type(fmt::format("renameCollection.{}", field), value, "string");
    const std::size_t dot = text->find('.');
    if (dot == std::string_view::npos || dot == 0 || dot + 1 == text->size())
        return Error(ErrorCode::InvalidNamespace,
                     fmt::format("Invalid namespace specified '{}'", *text));
    Namespace ns{std::string(text->substr(0, dot)), std::string(text->substr(dot + 1))};
    if (ns.collection.starts_with("system."))
        return Error(ErrorCode::IllegalOperation,
                     fmt::format("renaming system collections is not allowed: {}", ns.full()));
    ANGELIA_TRY(check_namespace(ns));
    return ns;
}

Result<RenameOptions> read_drop_target(bson::ValueView value) {
    RenameOptions options;
    if (value.is_missing()) return options;
    if (value.is(bson::Type::Binary)) {
        const auto uuid = value.as_binary();
        options.target_uuid.emplace();
        if (uuid.subtype != 4 || uuid.bytes.size() != options.target_uuid->size())
            return wrong_type("renameCollection.dropTarget", value, "bool or UUID");
        std::copy(uuid.bytes.begin(), uuid.bytes.end(),
                  reinterpret_cast<char*>(options.target_uuid->data()));
        options.drop_target = true;
        return options;
    }
    if (!value.is(bson::Type::Bool) && !value.is_number())
        return wrong_type("renameCollection.dropTarget", value, "bool or UUID");
    options.drop_target = value.truthy();
    return options;
}

Result<void> rename_collection_command(const CallPtr& call) {
    const Arguments arguments("renameCollection", call->body());
    ANGELIA_TRY_ASSIGN(const auto from,
                       read_rename_namespace("renameCollection", (*call->body().begin()).value));
    ANGELIA_TRY_ASSIGN(const auto to_value, arguments.required("to"));
    ANGELIA_TRY_ASSIGN(const auto to, read_rename_namespace("to", to_value));
    ANGELIA_TRY_ASSIGN(const auto options, read_drop_target(arguments.value("dropTarget")));
    call->engine().rename_collection(
        from, to, options,
        [call](Result<bson::Timestamp> renamed) {
            if (!call->failed(renamed)) call->succeed({}, *renamed);
        },
        call->deadline());
    return {};
}

}  // namespace

extern const CommandEntry kRenameCollectionCommand{.name = "renameCollection",
                                                   .handler = rename_collection_command,
                                                   .fields = kRenameFields,
                                                   .flags = kWrites | kAdminOnly,
                                                   .help = "gives a collection another name"};

}  // namespace angelia::engine::command
