#include "store_under_test.h"

#include <angelia/bson/json.h>

#include <random>

namespace angelia::store::contract {

WatchEvents WatchLog::events() {
    WatchEvents events;
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

void StoreContract::SetUp() {
    running_ = GetParam().start();
    ASSERT_NE(running_, nullptr);
    store_ = running_->connect();
    std::random_device random;
    prefix_ = "contract_" + std::to_string(random()) + "_";
}

// Drops what the test made: an outside server lives on.
void StoreContract::TearDown() {
    if (running_ == nullptr) return;
    Store other = running_->connect();
    const auto names = other.list_collections();
    ASSERT_TRUE(names) << names.error().to_string();
    for (const auto& name : *names) {
        if (name.rfind(prefix_, 0) != 0) continue;
        EXPECT_TRUE(other.drop(other.collection(name)));
    }
    EXPECT_TRUE(other.close());
    EXPECT_TRUE(store_.close());
    store_ = Store();
    other = Store();
    running_.reset();
}

CollectionName StoreContract::collection(std::string_view suffix) const { return store_.collection(prefix_ + std::string(suffix)); }

void StoreContract::put(const CollectionName& name, std::initializer_list<const char*> documents) {
    std::vector<bson::Document> parsed;
    std::vector<bson::DocumentView> views;
    for (const char* d : documents) parsed.push_back(json(d));
    for (const auto& d : parsed) views.push_back(d.view());
    const auto done = store_.insert(name, views);
    ASSERT_TRUE(done) << done.error().to_string();
    ASSERT_EQ(done->inserted, static_cast<std::int64_t>(documents.size())) << text(done->errors);
}

std::string StoreContract::content(const CollectionName& name) {
    FindRequest request;
    request.collection = name;
    request.sort = json(R"({"_id": 1})");
    const auto found = store_.find(request);
    return found ? text(*found) : found.error().to_string();
}

std::unique_ptr<Watch> StoreContract::watch(WatchLog& log, const CollectionName& name, WatchRequest request) {
    request.collection = name;
    auto watch = store_.watch(std::move(request), log.events());
    if (!watch) {
        ADD_FAILURE() << watch.error().to_string();
        return nullptr;
    }
    EXPECT_TRUE(log.wait_started(1));
    return *std::move(watch);
}

bson::Document json(std::string_view text) { return bson::from_json(text).value_or_throw(); }

std::string text(const std::vector<bson::Document>& documents) {
    std::string out;
    for (const auto& d : documents) out += bson::to_json(d) + "\n";
    return out;
}

UpdateOp change(std::string_view filter, std::string_view update, bool multi, bool upsert) {
    return {json(filter), json(update), multi, upsert};
}

DeleteOp removal(std::string_view filter, bool multi) { return {json(filter), multi}; }

std::string text(const std::vector<WriteError>& errors) {
    std::string out;
    for (const auto& e : errors) {
        if (!out.empty()) out += ", ";
        out += std::to_string(e.index) + " " + error_code_name(e.error.code);
    }
    return out;
}

}  // namespace angelia::store::contract
