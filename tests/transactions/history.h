// What clients did to lists and what they saw, and the check of it. A history is a set of
// transactions that read whole lists and append values, each value used once; so a read tells which
// appends came before it, and the longest read of a list tells in which order they happened.
//
// The kinds of violation are those of A. Adya, "Weak Consistency: A Generalized Theory and
// Optimistic Implementations for Distributed Transactions" (1999). That lists make the version
// order visible is the method of K. Kingsbury and P. Alvaro, "Elle: Inferring Isolation Anomalies
// from Experimental Observations" (2020). That exactly the cycles without two anti-dependencies in
// a row are forbidden under snapshot isolation: A. Cerone and A. Gotsman, "Analysing Snapshot
// Isolation" (2016).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace angelia::transactions {

using ListKey = std::int64_t;
using ListValue = std::int64_t;
using List = std::vector<ListValue>;

struct Step {
    enum class Kind : std::uint8_t { Read, Append };
    Kind kind = Kind::Read;
    ListKey key = 0;
    ListValue value = 0;  ///< Append
    List list;            ///< Read; empty also when there is no such list
    std::string how;      ///< for the story: "by id", "by index"
};
Step read_step(ListKey key, List list, std::string how = {});
Step append_step(ListKey key, ListValue value, std::string how = {});

/// Unknown: no answer came; it happened whole or not at all.
enum class Outcome : std::uint8_t { Committed, Aborted, Unknown };

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

struct Transaction {
    std::string who;
    std::vector<Step> steps;
    Outcome outcome = Outcome::Committed;
    /// Instants of one counter for all clients: before the first statement was sent; after the
    /// answer to the commit came (kNever: none did).
    std::uint64_t began = 0;
    std::uint64_t ended = kNever;
    /// How the store knows it: to ask for its outcome again. Plain operations: 0.
    std::int64_t session = 0, number = 0;

    bool appends() const;
};

struct History {
    std::vector<Transaction> transactions;
    /// Every list, read when nobody writes any more.
    std::optional<std::map<ListKey, List>> final_lists;
};

enum class Anomaly : std::uint8_t {
    DirtyRead,         ///< G1a: a value of a transaction that was aborted
    IntermediateRead,  ///< G1b: a list as a transaction had it between two of its own appends
    PhantomValue,      ///< a value that nobody appended there
    RepeatedValue,     ///< a value twice in a list
    DivergentLists,    ///< two reads of a list of which neither is the beginning of the other
    LostAppend,        ///< of a committed transaction, and not in the end
    BrokenAtomicity,   ///< a part of a transaction is there in the end, another is not
    OwnWriteMissing,   ///< a transaction does not see what it appended itself
    MovedSnapshot,     ///< a transaction reads a list twice and sees others' appends between
    WriteCycle,        ///< G0, G1c: a cycle of ww and wr
    FracturedRead,     ///< G-single of two: saw one append of a transaction and missed another
    ReadSkew,          ///< G-single and its kin: a cycle without two rw in a row
    StaleRead,         ///< such a cycle that needs the order of acknowledgements
};
const char* name_of(Anomaly anomaly);

struct Finding {
    Anomaly anomaly;
    std::string story;
};

struct Report {
    std::vector<Finding> findings;
    /// Pairs of transactions of which each misses what the other appended: allowed, and must be
    /// seen where a run was made for it.
    std::size_t write_skews = 0;
    std::size_t committed = 0, aborted = 0, unknown = 0;

    bool has(Anomaly anomaly) const;
    /// The first findings with their stories; empty = clean.
    std::string text() const;
};

Report check(const History& history);

}  // namespace angelia::transactions
