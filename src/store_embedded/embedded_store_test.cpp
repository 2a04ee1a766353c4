// What is special to the embedded store; what all stores do is tests/contract.
#include "store_embedded/embedded_store.h"

#include <angelia/bson/json.h>

#include <gtest/gtest.h>

#include <filesystem>

namespace angelia::store_embedded {
namespace {

using store::StoreAddress;

store::Store open(const std::string& text) {
    const auto address = StoreAddress::parse(text).value_or_throw();
    return store::Store(open_embedded(address, {}).value_or_throw(), address.database);
}

bson::Document doc(std::string_view json) { return bson::from_json(json).value_or_throw(); }

/// A folder of this test, removed at its end.
struct Folder {
    explicit Folder(const char* name)
        : path(std::filesystem::path(::testing::TempDir()) /
               (std::string("angelia_embedded_") + name + bson::ObjectId::generate().to_hex())) {}
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
};

TEST(EmbeddedStore, TwoStoresOfOneFolderShareOneEngine) {
    const Folder folder("shared");
    store::Store a = open("embedded:" + folder.path.string());
    store::Store b =
        open("embedded:" + folder.path.string() + "/../" + folder.path.filename().string());
    EXPECT_EQ(engine_of(a), engine_of(b));
    ASSERT_TRUE(a.insert(a.collection("c"), doc(R"({"_id": 1})")));
    ASSERT_TRUE(a.close());
    EXPECT_EQ(b.count(b.collection("c"), {}).value_or_throw(), 1)
        << "the engine lives as long as one of them";
    ASSERT_TRUE(b.close());
    EXPECT_EQ(engine_of(b), nullptr);
    store::Store again = open("embedded:" + folder.path.string());
    EXPECT_EQ(again.count(again.collection("c"), {}).value_or_throw(), 1)
        << "the last close let go of the folder";
}

TEST(EmbeddedStore, OneFolderHasOneDurability) {
    const Folder folder("durability");
    store::Store strict = open("embedded:" + folder.path.string());
    const auto other = open_embedded(
        StoreAddress::parse("embedded:" + folder.path.string() + "?durability=periodic")
            .value_or_throw(),
        {});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::BadValue) << other.error().to_string();
}

TEST(EmbeddedStore, MemoryIsSharedByNameOnly) {
    store::Store a = open("embedded::memory:?name=embedded_store_test");
    store::Store b = open("embedded::memory:?name=embedded_store_test");
    store::Store other = open("embedded::memory:");
    ASSERT_TRUE(a.insert(a.collection("c"), doc(R"({"_id": 1})")));
    EXPECT_EQ(b.count(b.collection("c"), {}).value_or_throw(), 1);
    EXPECT_EQ(other.count(other.collection("c"), {}).value_or_throw(), 0);
}

TEST(EmbeddedStore, AClaimIsOneCommit) {
    store::Store s = open("embedded::memory:");
    const auto docs = s.collection("docs"), locks = s.collection("locks");
    for (std::int32_t i = 0; i < 100; ++i)
        ASSERT_TRUE(s.insert(docs, bson::make("_id", i, "state", i % 2 == 0 ? "waiting" : "done")));
    store::ClaimRequest request;
    request.documents = docs;
    request.locks = locks;
    for (std::int32_t i = 0; i < 100; ++i) {
        store::ClaimRequest::Candidate c;
        c.lock = bson::make("_id", i);
        c.condition = bson::make("_id", i, "state", "waiting");
        c.update = doc(R"({"$set": {"state": "taken"}})");
        request.candidates.push_back(std::move(c));
    }
    const auto before = engine_of(s)->storage().statistics().commits;
    const auto result = s.claim(std::move(request)).value_or_throw();
    EXPECT_EQ(engine_of(s)->storage().statistics().commits - before, 1u);
    EXPECT_EQ(s.count(locks, {}).value_or_throw(), 50);
    EXPECT_EQ(s.count(docs, doc(R"({"state": "taken"})")).value_or_throw(), 50);
}

TEST(EmbeddedStore, AStoreMayBeClosedInACallback) {
    store::Store s =
        open("embedded:" + (std::filesystem::path(::testing::TempDir()) /
                            ("angelia_embedded_close" + bson::ObjectId::generate().to_hex()))
                               .string());
    const std::filesystem::path path = engine_of(s)->options().storage.path;
    std::mutex mutex;
    std::condition_variable changed;
    bool closed = false;
    store::WatchRequest request;
    request.collection = s.collection("c");
    store::WatchEvents events;
    events.on_batch = [&](std::vector<bson::Document> batch, const bson::Document&) {
        if (batch.empty()) return;
        EXPECT_TRUE(s.close());
        const std::lock_guard<std::mutex> lock(mutex);
        closed = true;
        changed.notify_all();
    };
    const auto watch = s.watch(std::move(request), std::move(events)).value_or_throw();
    (void)s.insert(s.collection("c"),
                   doc(R"({"_id": 1})"));  // may be refused by the close that its own event causes
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return closed; }));
    lock.unlock();
    std::filesystem::remove_all(path);
}

TEST(EmbeddedStore, DiagnosticsRunCommands) {
    store::Store s = open("embedded::memory:");
    const auto reply = s.diagnostics()->run_command("admin", doc(R"({"ping": 1})"));
    ASSERT_TRUE(reply) << reply.error().to_string();
    const auto refused = s.diagnostics()->run_command("admin", doc(R"({"frobnicate": 1})"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::CommandNotFound);
}

}  // namespace
}  // namespace angelia::store_embedded
