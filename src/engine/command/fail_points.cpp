#include "engine/command/fail_points.h"

#include "engine/command/arguments.h"
#include "engine/command/command_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kFailData = "configureFailPoint.data";
constexpr std::string_view kFailCommandFields[] = {
    "failCommands",         "errorCode",       "errorLabels",
    "closeConnection",      "blockConnection", "blockTimeMS",
    "writeConcernError",    "appName",         "namespace",
    "failInternalCommands", "failLocalClients"};
constexpr std::string_view kFailGetMoreFields[] = {"errorCode", "closeConnection"};
constexpr std::string_view kFailWriteFields[] = {"failBeforeCommitExceptionCode",
                                                 "closeConnection"};

Result<std::optional<std::int32_t>> read_fail_code(const Arguments& data, std::string_view field) {
    ANGELIA_TRY_ASSIGN(const auto code, data.integer(field));
    if (!code) return std::optional<std::int32_t>();
    if (*code < 1 || *code > INT32_MAX)
        return Error(ErrorCode::BadValue,
                     fmt::format("'{}.{}' has to be an error code within 1 and {}, not {}",
                                 kFailData, field, INT32_MAX, *code));
    return std::optional(static_cast<std::int32_t>(*code));
}

Result<std::optional<std::vector<std::string>>> read_fail_texts(const Arguments& data,
                                                                std::string_view field) {
    ANGELIA_TRY_ASSIGN(const auto array, data.array(field));
    if (!array) return std::optional<std::vector<std::string>>();
    std::vector<std::string> texts;
    for (const auto& [key, value] : *array) {
        if (!value.is(bson::Type::String))
            return wrong_type(fmt::format("{}.{}.{}", kFailData, field, key), value, "string");
        texts.emplace_back(value.as_string());
    }
    return std::optional(std::move(texts));
}

Result<std::optional<std::string>> read_fail_text(const Arguments& data, std::string_view field) {
    ANGELIA_TRY_ASSIGN(const auto text, data.string(field));
    return text ? std::optional(std::string(*text)) : std::nullopt;
}

/// {code, codeName?, errmsg?, errInfo?, errorLabels?}: put into the reply as given.
Result<bson::Document> read_fail_write_concern_error(const Arguments& data) {
    ANGELIA_TRY_ASSIGN(const auto given, data.document("writeConcernError"));
    if (data.value("writeConcernError").is_missing()) return bson::Document();
    const std::string where = fmt::format("{}.writeConcernError", kFailData);
    const Arguments parts(where, given);
    constexpr std::string_view kParts[] = {"code", "codeName", "errmsg", "errInfo", "errorLabels"};
    ANGELIA_TRY(parts.only(kParts));
    ANGELIA_TRY(parts.required("code"));
    ANGELIA_TRY_ASSIGN(const auto code, parts.integer("code"));
    if (!code || *code < 1 || *code > INT32_MAX)
        return Error(ErrorCode::BadValue, fmt::format("'{}.code' has to be an error code", where));
    ANGELIA_TRY(parts.string("codeName"));
    ANGELIA_TRY(parts.string("errmsg"));
    ANGELIA_TRY(parts.document("errInfo"));
    ANGELIA_TRY(parts.array("errorLabels"));
    bson::Builder named;
    named.add_all(given);
    if (!given.has("codeName"))
        named.add("codeName", error_code_name(static_cast<ErrorCode>(*code)));
    return named.take();
}

Result<std::chrono::milliseconds> read_fail_block(const Arguments& data) {
    ANGELIA_TRY_ASSIGN(const bool block, data.boolean("blockConnection", false));
    ANGELIA_TRY_ASSIGN(const auto time, data.integer("blockTimeMS"));
    if (time && (*time < 0 || *time > INT32_MAX))
        return Error(ErrorCode::InvalidOptions,
                     fmt::format("'{}.blockTimeMS' has to be within 0 and {}, not {}", kFailData,
                                 INT32_MAX, *time));
    if (!block) return std::chrono::milliseconds(0);
    if (!time)
        return Error(ErrorCode::InvalidOptions,
                     "must specify 'blockTimeMS' when 'blockConnection' is true");
    return std::chrono::milliseconds(*time);
}

Result<std::int64_t> read_fail_count(bson::DocumentView mode, std::string_view field) {
    const auto value = mode.find(field);
    if (!value.is_number())
        return wrong_type(fmt::format("configureFailPoint.mode.{}", field), value, "int");
    const auto count = value.to_int64();
    if (!count || *count < 0 || *count > INT32_MAX)
        return Error(ErrorCode::BadValue,
                     fmt::format("'{}' option to 'mode' has to be a whole number within 0 and {}",
                                 field, INT32_MAX));
    return *count;
}

}  // namespace

FailPointHit FailPointHit::copy() const {
    FailPointHit other;
    other.error_code = error_code;
    other.error_labels = error_labels;
    other.close_connection = close_connection;
    other.block = block;
    other.write_concern_error = write_concern_error.copy();
    return other;
}

Result<FailPoints::Point> FailPoints::parse_mode(bson::ValueView mode) {
    Point point;
    if (const auto word = mode.get_string()) {
        if (*word != "off" && *word != "alwaysOn")
            return Error(ErrorCode::BadValue, fmt::format("unknown mode: {}", *word));
        point.mode = *word == "off" ? Mode::Off : Mode::AlwaysOn;
        return point;
    }
    const auto document = mode.get_document();
    if (!document) return wrong_type("configureFailPoint.mode", mode, "string or object");
    if (document->count() != 1 || !(document->has("times") || document->has("skip") ||
                                    document->has("activationProbability")))
        return Error(ErrorCode::BadValue,
                     "'mode' must be one of 'off', 'alwaysOn', {times: n}, {skip: n} or "
                     "{activationProbability: p}");
    if (document->has("activationProbability")) {
        const auto given = document->find("activationProbability");
        if (!given.is_number())
            return wrong_type("configureFailPoint.mode.activationProbability", given, "double");
        point.mode = Mode::Random;
        point.probability = given.to_double().value_or(-1);
        if (!(point.probability >= 0 && point.probability <= 1))
            return Error(ErrorCode::BadValue,
                         fmt::format("activationProbability must be between 0.0 and 1.0; found {}",
                                     point.probability));
        return point;
    }
    const bool times = document->has("times");
    point.mode = times ? Mode::Times : Mode::Skip;
    ANGELIA_TRY_ASSIGN(point.left, read_fail_count(*document, times ? "times" : "skip"));
    return point;
}

Result<void> FailPoints::parse_command_data(bson::DocumentView data, Point& point) {
    const Arguments arguments(kFailData, data);
    ANGELIA_TRY(arguments.only(kFailCommandFields));
    ANGELIA_TRY_ASSIGN(auto commands, read_fail_texts(arguments, "failCommands"));
    if (!commands && point.mode != Mode::Off)
        return missing_field(fmt::format("{}.failCommands", kFailData));
    point.commands = std::move(commands).value_or(std::vector<std::string>());
    ANGELIA_TRY_ASSIGN(point.application, read_fail_text(arguments, "appName"));
    ANGELIA_TRY_ASSIGN(point.ns, read_fail_text(arguments, "namespace"));
    // Who runs inside the server is never failed: nothing here sends itself commands.
    ANGELIA_TRY(arguments.boolean("failInternalCommands", false));
    ANGELIA_TRY(arguments.boolean("failLocalClients", false));
    ANGELIA_TRY_ASSIGN(point.hit.error_code, read_fail_code(arguments, "errorCode"));
    ANGELIA_TRY_ASSIGN(point.hit.error_labels, read_fail_texts(arguments, "errorLabels"));
    ANGELIA_TRY_ASSIGN(point.hit.close_connection, arguments.boolean("closeConnection", false));
    ANGELIA_TRY_ASSIGN(point.hit.block, read_fail_block(arguments));
    ANGELIA_TRY_ASSIGN(point.hit.write_concern_error, read_fail_write_concern_error(arguments));
    return {};
}

Result<void> FailPoints::parse_get_more_data(bson::DocumentView data, Point& point) {
    const Arguments arguments(kFailData, data);
    ANGELIA_TRY(arguments.only(kFailGetMoreFields));
    ANGELIA_TRY_ASSIGN(point.hit.error_code, read_fail_code(arguments, "errorCode"));
    ANGELIA_TRY_ASSIGN(point.hit.close_connection, arguments.boolean("closeConnection", false));
    return {};
}

Result<void> FailPoints::parse_write_data(bson::DocumentView data, Point& point) {
    const Arguments arguments(kFailData, data);
    ANGELIA_TRY(arguments.only(kFailWriteFields));
    ANGELIA_TRY_ASSIGN(point.hit.error_code,
                       read_fail_code(arguments, "failBeforeCommitExceptionCode"));
    ANGELIA_TRY_ASSIGN(point.hit.close_connection, arguments.boolean("closeConnection", true));
    return {};
}

Result<std::int32_t> FailPoints::configure(std::string_view name, bson::ValueView mode,
                                           bson::DocumentView data) {
    struct Kind {
        std::string_view name;
        Result<void> (*parse)(bson::DocumentView, Point&);
    };
    constexpr Kind kKinds[] = {{"failCommand", &FailPoints::parse_command_data},
                               {"failGetMoreAfterCursorCheckout", &FailPoints::parse_get_more_data},
                               {"onPrimaryTransactionalWrite", &FailPoints::parse_write_data}};
    const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [name](const Kind& k) { return k.name == name; });
    if (kind == std::end(kKinds))
        return Error(ErrorCode::FailPointSetFailed,
                     fmt::format("{} not found; failCommand, failGetMoreAfterCursorCheckout and "
                                 "onPrimaryTransactionalWrite exist",
                                 name));
    ANGELIA_TRY_ASSIGN(auto point, parse_mode(mode));
    ANGELIA_TRY(kind->parse(data, point));
    const MutexLock lock(mutex_);
    Point& place = points_[std::string(name)];
    point.hits = place.hits;
    place = std::move(point);
    any_.store(std::any_of(points_.begin(), points_.end(),
                           [](const auto& p) { return p.second.mode != Mode::Off; }),
               std::memory_order_relaxed);
    return place.hits;
}

bool FailPoints::use(Point& point) {
    switch (point.mode) {
        case Mode::Off:
            return false;
        case Mode::AlwaysOn:
            break;
        case Mode::Times:
            if (point.left == 0) return false;
            --point.left;
            break;
        case Mode::Skip:
            if (point.left > 0) {
                --point.left;
                return false;
            }
            break;
        case Mode::Random:
            if (!std::bernoulli_distribution(point.probability)(random_)) return false;
            break;
    }
    ++point.hits;
    return true;
}

std::optional<FailPointHit> FailPoints::on_command(const CommandFacts& facts) {
    if (!any()) return std::nullopt;
    const MutexLock lock(mutex_);
    const auto found = points_.find("failCommand");
    if (found == points_.end() || facts.entry.name == "configureFailPoint") return std::nullopt;
    Point& point = found->second;
    const bool named = std::any_of(
        point.commands.begin(), point.commands.end(), [&facts](const std::string& name) {
            return name == facts.sent_name || find_command(name) == &facts.entry;
        });
    if (!named) return std::nullopt;
    if (point.application && *point.application != facts.application) return std::nullopt;
    if (point.ns && *point.ns != facts.ns) return std::nullopt;
    // Without a write concern there is nothing that its error could be about.
    const bool only_concern = !point.hit.write_concern_error.empty() && !point.hit.error_code &&
                              !point.hit.close_connection && point.hit.block.count() == 0;
    if (only_concern && !facts.entry.has(kWrites)) return std::nullopt;
    if (!use(point)) return std::nullopt;
    return point.hit.copy();
}

std::optional<FailPointHit> FailPoints::meet(std::string_view name) {
    if (!any()) return std::nullopt;
    const MutexLock lock(mutex_);
    const auto found = points_.find(name);
    if (found == points_.end() || !use(found->second)) return std::nullopt;
    return found->second.hit.copy();
}

}  // namespace angelia::engine::command
