// The drivers' rules of transactions, free of I/O: which labels an error carries, and what to do
// after each outcome. All adapters use them, so that a transaction behaves alike everywhere.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/error.h>

#include <cstdint>
#include <optional>

namespace angelia::store {

inline constexpr const char* kTransientTransactionError = "TransientTransactionError";
inline constexpr const char* kUnknownCommitResult = "UnknownTransactionCommitResult";

// Pauses between attempts: 5 ms, half as long again each time, at most 500 ms, and of that a random
// part (drivers' specification of the convenient API, "Backoff").
inline constexpr microseconds kPauseFirst{5'000};
inline constexpr microseconds kPauseMax{500'000};

/// The connection failed: whether the server did what it was asked is open.
bool is_network_error(ErrorCode code);

/// What a server adds to the error of a statement in a transaction: TransientTransactionError when
/// the whole transaction may be tried again.
void label_statement_error(Error& error);
/// The same for a commit, and the drivers' UnknownTransactionCommitResult when it may have happened
/// all the same.
void label_commit_error(Error& error);

/// What is known when a step of with_transaction is over.
struct TransactionStep {
    enum class Kind : std::uint8_t { Work, Commit } kind = Kind::Work;
    std::optional<Error> error;  ///< none: it went well
    bool still_open = true;      ///< Work: neither committed nor aborted by itself
    std::uint32_t attempts = 1;  ///< how often `work` has run
    std::uint32_t commits = 0;   ///< how often this attempt was committed
    microseconds elapsed{0};     ///< since the first attempt began
    microseconds retry_for{0};
    double jitter = 0;    ///< [0, 1)
    bool closed = false;  ///< the store was: nothing is tried again
};

struct TransactionDecision {
    enum class Action : std::uint8_t {
        Commit,       ///< after work that went well
        CommitAgain,  ///< the outcome of the commit is unknown
        StartAgain,   ///< the whole of work, in a new transaction
        Return,       ///< with the step's error, if it has one
    } action = Action::Return;
    bool abort_first = false;
    microseconds pause{0};
};

/// Never pauses beyond `retry_for`: then the last error is the answer.
TransactionDecision decide_transaction(const TransactionStep& step);

}  // namespace angelia::store
