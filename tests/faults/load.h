// Writers that remember what they were told. Each owns its documents, so that what must be in the
// store after a failure is known exactly: the acknowledged state, or what the one write without an
// answer would have made of it.
#pragma once

#include "engine/testing/test_engine.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace angelia::engine::faults {

using testing_support::TestEngine;

inline constexpr int kCollections = 3;
Namespace loaded(int collection);
/// Holds a TTL index on `at`.
extern const Namespace kExpiring;
extern const Namespace kLists;
/// Written without waiting for the sync; only its timestamps are promised something.
extern const Namespace kLoose;

struct State {
    std::int64_t rev = 0;
    std::int64_t unique = 0;
    std::int32_t tag = 0;
    bool operator==(const State&) const = default;
};
struct Key {
    int collection = 0;
    std::int64_t id = 0;
    auto operator<=>(const Key&) const = default;
};
using States = std::map<Key, State>;

/// What a violated promise looks like; empty = all held.
using Violations = std::vector<std::string>;

/// Operation times that clients were told. Threads: safe.
class Times {
  public:
    void told(bson::Timestamp time);
    Violations take_violations();

  private:
    std::mutex mutex_;
    std::set<std::uint64_t> told_;
    Violations violations_;
};

/// Everything that is known about one store over all its lives.
struct Ledger {
    Times times;
    std::atomic<std::uint64_t> acknowledged{0};
};

/// The collections and indexes that the load needs; waits until they are durable.
void make_collections(TestEngine& engine);

class Writer {
  public:
    Writer(int number, std::uint64_t seed, Ledger& ledger);

    /// Writes until the store gives no answer. `wait_durable` false makes it believe too early: for
    /// proving that the check can fail.
    void run(TestEngine& engine, bool wait_durable = true);

    /// Compares with what the store holds (only this writer's documents are in `found`) and takes
    /// that over: the write without an answer is either wholly there or not at all.
    Violations compare(const States& found);
    /// Sends the last retryable write again: an acknowledged one must change nothing, an unanswered
    /// one happens exactly once.
    Violations send_again(TestEngine& engine);

    int number() const { return number_; }
    const States& sure() const { return sure_; }
    bool in_doubt() const { return doubt_.has_value(); }

  private:
    struct Change {
        Key key;
        std::optional<State> after;
    };
    struct Operation {
        std::vector<ConditionalWrite> writes;
        std::vector<Change> changes;
        bool atomic = false;
        bool duplicate = false;  ///< must be refused
        std::optional<std::int64_t> txn;
    };
    /// Enough to send it once more.
    struct Sent {
        std::int64_t txn = 0;
        std::vector<ConditionalWrite> writes;
        std::vector<Change> changes;
        bool atomic = false;
    };

    Operation next();
    void add_insert(Operation& op);
    void add_update(Operation& op, const Key& key, const State& before);
    void add_multi_update(Operation& op);
    void add_duplicate(Operation& op);
    Result<WriteResult> send(TestEngine& engine, Operation& op, bool wait_durable);
    void apply(const std::vector<Change>& changes);
    std::int64_t below(std::int64_t n) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
    }

    int number_;
    std::mt19937_64 random_;
    Ledger& ledger_;
    States sure_;
    std::optional<std::vector<Change>> doubt_;
    std::optional<Sent> last_retryable_;
    bool last_acknowledged_ = false;
    std::int64_t txn_ = 0;
    std::int64_t next_id_ = 0;
    std::int64_t next_unique_ = 0;
    Violations violations_;
};

/// Documents that expire, and passes of the monitor between them.
class ExpiringWriter {
  public:
    explicit ExpiringWriter(Ledger& ledger) : ledger_(ledger) {}
    void run(TestEngine& engine);
    /// Those of the far future are all there; after a pass nothing else is.
    Violations check(TestEngine& engine);

  private:
    Ledger& ledger_;
    std::set<std::int64_t> kept_, doubtful_;
    std::int64_t next_ = 0;
};

/// Makes and drops collections and indexes.
class CatalogWriter {
  public:
    void run(TestEngine& engine);
    Violations check(TestEngine& engine);

  private:
    struct Known {
        bool exists = false;
        std::int64_t documents = 0;
        bool index = false;
    };
    enum class Doubt { None, Create, Insert, Index, Drop };
    static Namespace name(std::int64_t number) { return {"catalog", "c" + std::to_string(number)}; }
    std::map<std::int64_t, Known> known_;
    Doubt doubt_ = Doubt::None;
    std::int64_t next_ = 0;
};

/// Long ordered lists as drivers send them: too long for one batch, so a cut may leave a beginning
/// of one; sent again it is completed.
class ListWriter {
  public:
    explicit ListWriter(Ledger& ledger) : ledger_(ledger) {}
    void run(TestEngine& engine);
    Violations check(TestEngine& engine);

  private:
    Result<WriteResult> send(TestEngine& engine, std::int64_t list) const;
    Ledger& ledger_;
    std::int64_t next_ = 0;
    std::optional<std::int64_t> doubt_;
};

/// Inserts without waiting for durability and remembers the times it was told.
void write_loosely(TestEngine& engine, Ledger& ledger, std::int64_t first_id);

}  // namespace angelia::engine::faults
