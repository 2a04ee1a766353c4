#include "engine/command/fail_points.h"

#include "engine/command/arguments.h"
#include "engine/command/command_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kFailPointNames[] = {"failCommand", "failGetMoreAfterCursorCheckout"};

Result<void> check_fail_point_data(bson::DocumentView data) {
    for (const auto& [key, value] : data) {
        const bool number = key == "errorCode" || key == "blockTimeMS";
        const bool list = key == "failCommands" || key == "errorLabels";
        const bool text = key == "appName" || key == "namespace";
        if (number && !value.to_int64())
            return wrong_type(fmt::format("data.{}", key), value, "int");
        if (list && !value.is(bson::Type::Array))
            return wrong_type(fmt::format("data.{}", key), value, "array");
        if (text && !value.is(bson::Type::String))
            return wrong_type(fmt::format("data.{}", key), value, "string");
        if (key == "writeConcernError" && !value.is(bson::Type::Document))
            return wrong_type("data.writeConcernError", value, "object");
    }
    return {};
}

std::vector<std::string> text_list(bson::ValueView array) {
    std::vector<std::string> texts;
    if (const auto elements = array.get_array())
        for (const auto& element : *elements)
            if (const auto text = element.value.get_string()) texts.emplace_back(*text);
    return texts;
}

FailPointHit make_hit(bson::DocumentView data) {
    FailPointHit hit;
    if (const auto code = data.find("errorCode").to_int64())
        hit.error_code = static_cast<std::int32_t>(*code);
    if (data.has("errorLabels")) hit.error_labels = text_list(data.find("errorLabels"));
    hit.close_connection = data.find("closeConnection").truthy();
    if (data.find("blockConnection").truthy())
        hit.block = std::chrono::milliseconds(data.find("blockTimeMS").to_int64().value_or(0));
    if (const auto wce = data.find("writeConcernError").get_document())
        hit.write_concern_error = bson::Document(*wce);
    return hit;
}

}  // namespace

Result<std::int32_t> FailPoints::configure(std::string_view name, bson::ValueView mode,
                                           bson::DocumentView data) {
    if (std::find(std::begin(kFailPointNames), std::end(kFailPointNames), name) ==
        std::end(kFailPointNames)) {
        return Error(ErrorCode::FailedToParse,
                     fmt::format("there is no fail point named '{}'; failCommand and "
                                 "failGetMoreAfterCursorCheckout exist",
                                 name));
    }
    ANGELIA_TRY(check_fail_point_data(data));
    Point point;
    bool off = false;
    if (const auto word = mode.get_string()) {
        off = *word == "off";
        if (!off && *word != "alwaysOn")
            return Error(
                ErrorCode::FailedToParse,
                fmt::format("unknown fail point mode '{}'; off, alwaysOn, {{times}}, {{skip}}",
                            *word));
    } else if (const auto document = mode.get_document()) {
        const auto times = document->find("times").to_int64();
        const auto skip = document->find("skip").to_int64();
        if (times.has_value() == skip.has_value() || times.value_or(skip.value_or(0)) < 0)
            return Error(ErrorCode::FailedToParse,
                         "a fail point mode document holds either 'times' or 'skip' with a number "
                         "that is not negative");
        point.mode = times ? Mode::Times : Mode::Skip;
        point.left = times ? *times : *skip;
    } else {
        return wrong_type("configureFailPoint.mode", mode, "string or object");
    }
    point.data = bson::Document(data);
    const MutexLock lock(mutex_);
    const auto before = points_.find(name);
    const std::int32_t hits = before == points_.end() ? 0 : before->second.hits;
    if (off) {
        if (before != points_.end()) points_.erase(before);
    } else {
        point.hits = hits;
        points_.insert_or_assign(std::string(name), std::move(point));
    }
    any_.store(!points_.empty(), std::memory_order_relaxed);
    return hits;
}

bool FailPoints::use(Point& point) {
    if (point.mode == Mode::Times) {
        if (point.left == 0) return false;
        --point.left;
    } else if (point.mode == Mode::Skip && point.left > 0) {
        --point.left;
        return false;
    }
    ++point.hits;
    return true;
}

std::optional<FailPointHit> FailPoints::match_command(const CommandEntry& entry,
                                                      std::string_view application,
                                                      std::string_view ns) {
    const MutexLock lock(mutex_);
    const auto found = points_.find("failCommand");
    if (found == points_.end() || entry.name == "configureFailPoint") return std::nullopt;
    Point& point = found->second;
    const auto data = point.data.view();
    bool named = false;
    for (const auto& name : text_list(data.find("failCommands")))
        named = named || find_command(name) == &entry;
    if (!named) return std::nullopt;
    if (const auto wanted = data.find("appName").get_string(); wanted && *wanted != application)
        return std::nullopt;
    if (const auto wanted = data.find("namespace").get_string(); wanted && *wanted != ns)
        return std::nullopt;
    if (!use(point)) return std::nullopt;
    return make_hit(data);
}

std::optional<FailPointHit> FailPoints::match_plain(std::string_view name) {
    const MutexLock lock(mutex_);
    const auto found = points_.find(name);
    if (found == points_.end() || !use(found->second)) return std::nullopt;
    return make_hit(found->second.data.view());
}

}  // namespace angelia::engine::command
