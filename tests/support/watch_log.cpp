#include "watch_log.h"

#include <angelia/bson/json.h>

namespace angelia::test_support {

store::WatchEvents WatchLog::events() {
    store::WatchEvents events;
    events.on_batch = [this](std::vector<bson::Document> batch, const bson::Document& token) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (auto& event : batch) events_.push_back(std::move(event));
        token_ = token.copy();
        ++batches_;
        ++calls_;
        changed_.notify_all();
    };
    events.on_started = [this](bool gap) {
        const std::lock_guard<std::mutex> lock(mutex_);
        gaps_.push_back(gap);
        ++calls_;
        changed_.notify_all();
    };
    events.on_error = [this](const Error& error, bool) {
        const std::lock_guard<std::mutex> lock(mutex_);
        errors_.push_back(error);
        ++calls_;
        changed_.notify_all();
    };
    return events;
}

template <class Condition>
bool WatchLog::wait(Condition&& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
}

bool WatchLog::wait_started(std::size_t count) {
    return wait([&] { return gaps_.size() >= count; });
}
bool WatchLog::wait_events(std::size_t count) {
    return wait([&] { return events_.size() >= count; });
}
bool WatchLog::wait_batches(std::size_t count) {
    return wait([&] { return batches_ >= count; });
}
bool WatchLog::wait_errors(std::size_t count) {
    return wait([&] { return errors_.size() >= count; });
}

std::string WatchLog::text() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string out;
    for (const auto& event : events_) {
        out += std::string(event["operationType"].get_string().value_or("?"));
        const bson::ValueView id = event.view().find_path("documentKey._id");
        if (id) out += " " + bson::to_json(id);
        const bson::ValueView updated = event.view().find_path("updateDescription.updatedFields");
        if (updated) out += " " + bson::to_json(updated);
        out += "\n";
    }
    return out;
}

std::vector<bson::Document> WatchLog::all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<bson::Document> out;
    for (const auto& event : events_) out.push_back(event.copy());
    return out;
}

bson::Document WatchLog::last_token() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return token_.copy();
}
std::vector<bool> WatchLog::gaps() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return gaps_;
}
std::vector<Error> WatchLog::errors() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return errors_;
}
std::size_t WatchLog::calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
}

}  // namespace angelia::test_support
