// What the contract suite needs of a store besides the port itself: connecting, and making time
// pass for TTL.
#pragma once

#include "watch_log.h"

#include <angelia/store/store.h>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace angelia::store::contract {

using namespace std::chrono_literals;

using test_support::kPatience;
using test_support::WatchLog;

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
inline std::ostream& operator<<(std::ostream& out, const Adapter& adapter) {
    return out << adapter.name;
}

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
    std::unique_ptr<Watch> watch(WatchLog& log, const CollectionName& name,
                                 WatchRequest request = {});

    // Sessions (transactions_test.cpp); answers are "ok", or the code and the labels.
    std::unique_ptr<Session> session();
    std::unique_ptr<Session> transaction();  ///< a session with a transaction
    std::string put_in(Session& s, const CollectionName& name, const char* document);
    std::string set_in(Session& s, const CollectionName& name, const char* filter,
                       const char* update);
    std::string content_in(Session& s, const CollectionName& name);

    std::unique_ptr<StoreUnderTest> running_;
    Store store_;
    std::string prefix_;
};

bson::Document json(std::string_view text);
std::string text(const std::vector<bson::Document>& documents);
UpdateOp change(std::string_view filter, std::string_view update, bool multi = false,
                bool upsert = false);
DeleteOp removal(std::string_view filter, bool multi = false);
/// "0 DuplicateKey, 3 BadValue": positions and codes.
std::string text(const std::vector<WriteError>& errors);

}  // namespace angelia::store::contract
