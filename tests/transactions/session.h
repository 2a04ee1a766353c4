// One client's session, as the workload uses it: over an engine in this process, or over the wire.
#pragma once

#include "transactions/history.h"

#include "engine/testing/test_engine.h"

namespace angelia::transactions {

/// Lists are documents {_id: key, k: key, values: [...]} of this collection, with indexes on `k`
/// and on `values`.
inline const engine::Namespace kLists{"app", "lists"};

enum class Path : std::uint8_t {
    ById,        ///< one list
    ByRange,     ///< a range of `k` through its index
    ByOwnValue,  ///< through the index on `values`
};

struct ReadRequest {
    Path path = Path::ById;
    ListKey first = 0, last = 0;  ///< ById: the first; ByRange: both ends included
    ListValue value = 0;          ///< ByOwnValue
};
bson::Document filter_of(const ReadRequest& request);
/// Empty: none.
std::string hint_of(const ReadRequest& request);
using Lists = std::map<ListKey, List>;
void add_list(Lists& lists, bson::DocumentView document);

/// Not thread-safe. Plain calls belong to no transaction.
class Session {
  public:
    virtual ~Session() = default;
    virtual void begin() = 0;
    /// Of the transaction that began last; under the same two another session may ask for its
    /// outcome.
    virtual std::int64_t number() const = 0;
    virtual std::int64_t session() const = 0;
    virtual Result<Lists> read(const ReadRequest& request) = 0;
    /// Makes the list when there is none.
    virtual Result<void> append(ListKey key, ListValue value, bool by_index) = 0;
    virtual Outcome commit() = 0;
    virtual void abort() = 0;

    virtual Result<Lists> plain_read(const ReadRequest& request, bool snapshot) = 0;
    virtual Outcome plain_append(ListKey key, ListValue value) = 0;
};

void make_lists(engine::testing_support::TestEngine& engine);
/// Asks for the outcome of a transaction again. Unknown: the session has gone on since.
Outcome commit_again(engine::Engine& engine, std::int64_t session, std::int64_t number);
std::unique_ptr<Session> engine_session(engine::Engine& engine, std::int64_t number);
/// Every list there is.
Lists all_lists(engine::testing_support::TestEngine& engine);

}  // namespace angelia::transactions
