// What the contract suite needs of a store besides the port itself: connecting, and making time pass for TTL.
#pragma once

#include <angelia/store/store.h>

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace angelia::store::contract {

using namespace std::chrono_literals;

/// How long a test waits for what must happen before it fails. Never how long something takes.
inline constexpr auto kPatience = 20s;

/// One running store. Destroyed after all its handles.
class StoreUnderTest {
  public:
    virtual ~StoreUnderTest() = default;
    /// A new handle with a connection of its own.
    virtual Store connect() = 0;
    /// Documents whose time is over go soon after this.
    virtual void expire_documents() = 0;
};

struct Adapter {
    std::string name;
    std::function<std::unique_ptr<StoreUnderTest>()> start;
};
inline std::ostream& operator<<(std::ostream& out, const Adapter& adapter) { return out << adapter.name; }

/// Collects what a watch says. Threads: safe.
class WatchLog {
  public:
    WatchEvents events();
    /// Waits; false when patience ended first.
    bool wait_started(std::size_t count);
    bool wait_events(std::size_t count);
    bool wait_batches(std::size_t count);
    bool wait_errors(std::size_t count);

    /// One line per event: "insert 1", "update 1 {\"a\":2}", "delete 1".
    std::string text() const;
    std::vector<bson::Document> all() const;
    bson::Document last_token() const;
    std::vector<bool> gaps() const;
    std::vector<Error> errors() const;
    std::size_t calls() const;

  private:
    template <class Condition>
    bool wait(Condition&& condition);
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bson::Document> events_;
    std::vector<bool> gaps_;
    std::vector<Error> errors_;
    bson::Document token_;
    std::size_t batches_ = 0;
    std::size_t calls_ = 0;
};

/// One suite, every adapter: TEST_P(StoreContract, …).
class StoreContract : public ::testing::TestWithParam<Adapter> {
  protected:
    void SetUp() override;
    void TearDown() override;

    /// Collections of this test alone.
    CollectionName collection(std::string_view suffix = "c") const;
    void put(const CollectionName& name, std::initializer_list<const char*> documents);
    /// Documents of a collection by `_id`, one relaxed JSON per line.
    std::string content(const CollectionName& name);
    std::unique_ptr<Watch> watch(WatchLog& log, const CollectionName& name, WatchRequest request = {});

    std::unique_ptr<StoreUnderTest> running_;
    Store store_;
    std::string prefix_;
};

bson::Document json(std::string_view text);
std::string text(const std::vector<bson::Document>& documents);
UpdateOp change(std::string_view filter, std::string_view update, bool multi = false, bool upsert = false);
DeleteOp removal(std::string_view filter, bool multi = false);
/// "0 DuplicateKey, 3 BadValue": positions and codes.
std::string text(const std::vector<WriteError>& errors);

}  // namespace angelia::store::contract
