#include "store_under_test.h"

#include <angelia/bson/json.h>

#include <random>

namespace angelia::store::contract {

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

CollectionName StoreContract::collection(std::string_view suffix) const {
    return store_.collection(prefix_ + std::string(suffix));
}

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

std::unique_ptr<Watch> StoreContract::watch(WatchLog& log, const CollectionName& name,
                                            WatchRequest request) {
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
