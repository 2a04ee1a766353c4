#include "store/transaction_rules.h"

#include <gtest/gtest.h>

namespace angelia::store {
namespace {

using Kind = TransactionStep::Kind;

std::string labels_of_statement(ErrorCode code) {
    Error error(code, "");
    label_statement_error(error);
    return error.labels.empty() ? "" : error.labels.front();
}

std::string labels_of_commit(ErrorCode code) {
    Error error(code, "");
    label_commit_error(error);
    return error.labels.empty() ? "" : error.labels.front();
}

Error labelled(ErrorCode code, const char* label) {
    Error error(code, "");
    error.labels.emplace_back(label);
    return error;
}

TransactionStep step(Kind kind, std::optional<Error> error) {
    TransactionStep s;
    s.kind = kind;
    s.error = std::move(error);
    s.commits = kind == Kind::Commit ? 1 : 0;
    s.retry_for = std::chrono::seconds(120);
    s.jitter = 0.5;
    return s;
}

std::string text(const TransactionDecision& decision) {
    const char* names[] = {"commit", "commit again", "start again", "return"};
    return std::string(decision.abort_first ? "abort, " : "") +
           names[static_cast<int>(decision.action)] + " after " +
           std::to_string(decision.pause.count());
}

TEST(TransactionRules, LabelsOfStatements) {
    EXPECT_EQ(labels_of_statement(ErrorCode::WriteConflict), kTransientTransactionError);
    EXPECT_EQ(labels_of_statement(ErrorCode::NoSuchTransaction), kTransientTransactionError);
    EXPECT_EQ(labels_of_statement(ErrorCode::SnapshotUnavailable), kTransientTransactionError);
    EXPECT_EQ(labels_of_statement(ErrorCode::TemporarilyUnavailable), kTransientTransactionError);
    EXPECT_EQ(labels_of_statement(ErrorCode::HostUnreachable), kTransientTransactionError);
    EXPECT_EQ(labels_of_statement(ErrorCode::DuplicateKey), "");
    EXPECT_EQ(labels_of_statement(ErrorCode::TransactionCommitted), "");
    EXPECT_EQ(labels_of_statement(ErrorCode::MaxTimeMSExpired), "");
}

TEST(TransactionRules, LabelsOfCommits) {
    EXPECT_EQ(labels_of_commit(ErrorCode::NoSuchTransaction), kTransientTransactionError);
    EXPECT_EQ(labels_of_commit(ErrorCode::WriteConflict), kTransientTransactionError);
    EXPECT_EQ(labels_of_commit(ErrorCode::HostUnreachable), kUnknownCommitResult);
    EXPECT_EQ(labels_of_commit(ErrorCode::MaxTimeMSExpired), kUnknownCommitResult);
    EXPECT_EQ(labels_of_commit(ErrorCode::WriteConcernTimeout), kUnknownCommitResult);
    EXPECT_EQ(labels_of_commit(ErrorCode::TransactionTooLarge), "");
    EXPECT_EQ(labels_of_commit(ErrorCode::OutOfDiskSpace), "");
}

TEST(TransactionRules, WorkThatWentWellIsCommitted) {
    EXPECT_EQ(text(decide_transaction(step(Kind::Work, {}))), "commit after 0");
    EXPECT_EQ(text(decide_transaction(step(Kind::Commit, {}))), "return after 0");
}

TEST(TransactionRules, WorkThatEndedItsTransactionIsTheEnd) {
    auto ended = step(Kind::Work, {});
    ended.still_open = false;
    EXPECT_EQ(text(decide_transaction(ended)), "return after 0");
    ended.error = Error(ErrorCode::BadValue, "");
    EXPECT_EQ(text(decide_transaction(ended)), "return after 0");
}

TEST(TransactionRules, TransientErrorsStartAgain) {
    const auto conflict = labelled(ErrorCode::WriteConflict, kTransientTransactionError);
    EXPECT_EQ(text(decide_transaction(step(Kind::Work, conflict))),
              "abort, start again after 2500");
    EXPECT_EQ(text(decide_transaction(step(Kind::Commit, conflict))), "start again after 2500");
}

TEST(TransactionRules, AnUnknownCommitIsCommittedAgain) {
    const auto lost = labelled(ErrorCode::HostUnreachable, kUnknownCommitResult);
    EXPECT_EQ(text(decide_transaction(step(Kind::Commit, lost))), "commit again after 2500");
    const auto expired = labelled(ErrorCode::MaxTimeMSExpired, kUnknownCommitResult);
    EXPECT_EQ(text(decide_transaction(step(Kind::Commit, expired))), "return after 0");
    EXPECT_EQ(text(decide_transaction(step(Kind::Work, lost))), "abort, return after 0")
        << "a label of commits means nothing in work";
}

TEST(TransactionRules, NothingIsTriedAgainOnAClosedStore) {
    auto s = step(Kind::Commit, labelled(ErrorCode::ShutdownInProgress, kUnknownCommitResult));
    s.closed = true;
    EXPECT_EQ(text(decide_transaction(s)), "return after 0");
    s = step(Kind::Work, labelled(ErrorCode::HostUnreachable, kTransientTransactionError));
    s.closed = true;
    EXPECT_EQ(text(decide_transaction(s)), "abort, return after 0");
}

TEST(TransactionRules, OtherErrorsAbortAndAreReturned) {
    EXPECT_EQ(text(decide_transaction(step(Kind::Work, Error(ErrorCode::DuplicateKey, "")))),
              "abort, return after 0");
    EXPECT_EQ(
        text(decide_transaction(step(Kind::Commit, Error(ErrorCode::TransactionTooLarge, "")))),
        "return after 0");
}

TEST(TransactionRules, PausesGrowToHalfASecond) {
    auto s = step(Kind::Work, labelled(ErrorCode::WriteConflict, kTransientTransactionError));
    s.jitter = 1.0;
    std::string pauses;
    for (const std::uint32_t attempts : {1u, 2u, 3u, 4u, 12u, 13u, 1'000'000u}) {
        s.attempts = attempts;
        pauses += std::to_string(decide_transaction(s).pause.count()) + " ";
    }
    EXPECT_EQ(pauses, "5000 7500 11250 16875 432487 500000 500000 ");
    s.jitter = 0;
    EXPECT_EQ(decide_transaction(s).pause.count(), 0);
}

TEST(TransactionRules, NothingBeginsBehindTheLimit) {
    auto s = step(Kind::Work, labelled(ErrorCode::WriteConflict, kTransientTransactionError));
    s.jitter = 1.0;
    s.elapsed = s.retry_for - microseconds(5'001);
    EXPECT_EQ(text(decide_transaction(s)), "abort, start again after 5000");
    s.elapsed = s.retry_for - microseconds(5'000);
    EXPECT_EQ(text(decide_transaction(s)), "abort, return after 0");
    auto commit = step(Kind::Commit, labelled(ErrorCode::NetworkTimeout, kUnknownCommitResult));
    commit.elapsed = commit.retry_for;
    EXPECT_EQ(text(decide_transaction(commit)), "return after 0");
}

}  // namespace
}  // namespace angelia::store
