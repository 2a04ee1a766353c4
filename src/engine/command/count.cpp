#include "engine/command/arguments.h"
#include "engine/command/commands.h"

namespace angelia::engine::command {
namespace {

constexpr std::string_view kCountFields[] = {"query", "limit",     "skip",
                                             "hint",  "collation", "fields"};

void run_count(Call& call, const CountSpec& spec) {
    auto counted = call.engine().count(spec);
    if (call.failed(counted)) return;
    bson::Builder b;
    if (*counted <= INT32_MAX)
        b.add("n", static_cast<std::int32_t>(*counted));
    else
        b.add("n", *counted);
    call.succeed(std::move(b));
}

Result<void> count(const CallPtr& call) {
    const Arguments arguments("count", call->body());
    auto spec = std::make_shared<CountSpec>();
    ANGELIA_TRY_ASSIGN(spec->ns, call->collection());
    ANGELIA_TRY_ASSIGN(const auto query, arguments.document("query"));
    ANGELIA_TRY(arguments.no_collation());
    ANGELIA_TRY_ASSIGN(spec->skip, arguments.non_negative("skip", 0));
    ANGELIA_TRY_ASSIGN(const auto limit, arguments.integer("limit"));
    spec->limit = limit.value_or(0);
    spec->filter = bson::Document(query);
    spec->hint = bson::Value(arguments.value("hint"));
    if (query.empty()) {  // the collection's counter: no reason to leave this thread
        run_count(*call, *spec);
    } else {
        call->engine().workers().post([call, spec] { run_count(*call, *spec); });
    }
    return {};
}

}  // namespace

extern const CommandEntry kCountCommand{.name = "count",
                                        .handler = count,
                                        .fields = kCountFields,
                                        .flags = kReads | kApiVersion1,
                                        .help = "counts documents; without a query at no cost"};

}  // namespace angelia::engine::command
