// claim(): a lock won and the document changed, or neither.
#include "store_under_test.h"

#include <atomic>
#include <thread>

namespace angelia::store::contract {
namespace {

using Outcome = ClaimResult::Outcome;

ClaimRequest::Candidate candidate(std::int32_t id, std::string_view holder) {
    ClaimRequest::Candidate c;
    c.lock = bson::make("_id", id, "holder", holder);
    c.condition = bson::make("_id", id, "state", "waiting");
    c.update = bson::make("$set", bson::make("state", "taken", "by", holder));
    return c;
}

ClaimRequest claim_of(const CollectionName& documents, const CollectionName& locks,
                      std::vector<ClaimRequest::Candidate> candidates) {
    ClaimRequest request;
    request.documents = documents;
    request.locks = locks;
    request.candidates = std::move(candidates);
    return request;
}

std::string outcomes(const Result<ClaimResult>& result) {
    if (!result) return result.error().to_string();
    static constexpr const char* names[] = {"claimed", "locked", "changed"};
    std::string out;
    for (const auto& entry : result->entries)
        out += (out.empty() ? "" : " ") + std::string(names[static_cast<int>(entry.outcome)]);
    return out;
}

TEST_P(StoreContract, ClaimWinsFreeDocuments) {
    const auto docs = collection("docs"), locks = collection("locks");
    put(docs, {R"({"_id": 1, "state": "waiting"})", R"({"_id": 2, "state": "waiting"})"});
    std::vector<ClaimRequest::Candidate> candidates;
    candidates.push_back(candidate(2, "me"));
    candidates.push_back(candidate(1, "me"));
    const auto result = store_.claim(claim_of(docs, locks, std::move(candidates)));
    ASSERT_EQ(outcomes(result), "claimed claimed");
    ASSERT_TRUE(result->entries[0].document && result->entries[1].document);
    EXPECT_EQ((*result->entries[0].document)["_id"].to_int64(), 2);
    EXPECT_EQ((*result->entries[0].document)["by"].get_string(), "me");
    EXPECT_EQ((*result->entries[1].document)["_id"].to_int64(), 1);
    EXPECT_EQ(content(locks), "{\"_id\":1,\"holder\":\"me\"}\n{\"_id\":2,\"holder\":\"me\"}\n");
    EXPECT_EQ(content(docs),
              "{\"_id\":1,\"state\":\"taken\",\"by\":\"me\"}\n{\"_id\":2,\"state\":\"taken\","
              "\"by\":\"me\"}\n");
}

TEST_P(StoreContract, ClaimWithoutDocumentsAnswersOutcomesOnly) {
    const auto docs = collection("docs"), locks = collection("locks");
    put(docs, {R"({"_id": 1, "state": "waiting"})"});
    std::vector<ClaimRequest::Candidate> candidates;
    candidates.push_back(candidate(1, "me"));
    ClaimRequest request = claim_of(docs, locks, std::move(candidates));
    request.return_documents = false;
    const auto result = store_.claim(std::move(request));
    ASSERT_EQ(outcomes(result), "claimed");
    EXPECT_FALSE(result->entries[0].document);
}

TEST_P(StoreContract, ClaimAnswersLockedAndChangedInOrder) {
    const auto docs = collection("docs"), locks = collection("locks");
    put(docs, {R"({"_id": 1, "state": "waiting"})", R"({"_id": 2, "state": "done"})",
               R"({"_id": 3, "state": "waiting"})"});
    put(locks, {R"({"_id": 1, "holder": "other"})"});
    std::vector<ClaimRequest::Candidate> candidates;
    for (const std::int32_t id : {1, 2, 3, 4}) candidates.push_back(candidate(id, "me"));
    const auto result = store_.claim(claim_of(docs, locks, std::move(candidates)));
    EXPECT_EQ(outcomes(result), "locked changed claimed changed");
    EXPECT_EQ(content(locks), "{\"_id\":1,\"holder\":\"other\"}\n{\"_id\":3,\"holder\":\"me\"}\n")
        << "a lock that was of no use is released again";
    EXPECT_EQ(content(docs),
              "{\"_id\":1,\"state\":\"waiting\"}\n{\"_id\":2,\"state\":\"done\"}\n{\"_id\":3,"
              "\"state\":\"taken\",\"by\":\"me\"}\n");
}

TEST_P(StoreContract, ClaimTakesOverALockWithExactlyTheOldValues) {
    const auto docs = collection("docs"), locks = collection("locks");
    put(docs, {R"({"_id": 1, "state": "waiting"})", R"({"_id": 2, "state": "waiting"})",
               R"({"_id": 3, "state": "waiting"})"});
    put(locks, {R"({"_id": 1, "holder": "dead", "until": 10})",
                R"({"_id": 2, "holder": "dead", "until": 20})"});
    std::vector<ClaimRequest::Candidate> candidates;
    for (const std::int32_t id : {1, 2, 3}) {
        candidates.push_back(candidate(id, "me"));
        candidates.back().take_over =
            bson::make("_id", id, "holder", "dead", "until", std::int32_t{10});
    }
    const auto result = store_.claim(claim_of(docs, locks, std::move(candidates)));
    EXPECT_EQ(outcomes(result), "claimed locked claimed")
        << "the second was renewed meanwhile, the third lost its lock";
    EXPECT_EQ(content(locks),
              "{\"_id\":1,\"holder\":\"me\"}\n{\"_id\":2,\"holder\":\"dead\",\"until\":20}\n{\"_"
              "id\":3,\"holder\":\"me\"}\n");
}

TEST_P(StoreContract, ClaimMixesNewLocksAndTakeOvers) {
    const auto docs = collection("docs"), locks = collection("locks");
    put(docs, {R"({"_id": 1, "state": "waiting"})", R"({"_id": 2, "state": "waiting"})",
               R"({"_id": 3, "state": "done"})"});
    put(locks, {R"({"_id": 2, "holder": "dead"})", R"({"_id": 3, "holder": "dead"})"});
    std::vector<ClaimRequest::Candidate> candidates;
    for (const std::int32_t id : {1, 2, 3}) candidates.push_back(candidate(id, "me"));
    candidates[1].take_over = json(R"({"_id": 2, "holder": "dead"})");
    candidates[2].take_over = json(R"({"_id": 3, "holder": "dead"})");
    const auto result = store_.claim(claim_of(docs, locks, std::move(candidates)));
    EXPECT_EQ(outcomes(result), "claimed claimed changed");
    EXPECT_EQ(content(locks), "{\"_id\":1,\"holder\":\"me\"}\n{\"_id\":2,\"holder\":\"me\"}\n");
}

TEST_P(StoreContract, ClaimWithABadUpdateLeavesNoLockAndHarmsNoOther) {
    const auto docs = collection("docs"), locks = collection("locks");
    put(docs,
        {R"({"_id": 1, "state": "waiting"})", R"({"_id": 2, "state": "waiting", "n": "text"})",
         R"({"_id": 3, "state": "waiting"})"});
    std::vector<ClaimRequest::Candidate> candidates;
    for (const std::int32_t id : {1, 2, 3}) candidates.push_back(candidate(id, "me"));
    candidates[0].update = json(R"({"$frobnicate": {"a": 1}})");
    candidates[1].update = json(R"({"$inc": {"n": 1}, "$set": {"by": "me"}})");
    const auto result = store_.claim(claim_of(docs, locks, std::move(candidates)));
    ASSERT_EQ(outcomes(result), "changed changed claimed");
    ASSERT_TRUE(result->entries[0].error && result->entries[1].error);
    EXPECT_EQ(result->entries[0].error->code, ErrorCode::FailedToParse)
        << result->entries[0].error->to_string();
    EXPECT_EQ(result->entries[1].error->code, ErrorCode::TypeMismatch)
        << result->entries[1].error->to_string();
    EXPECT_FALSE(result->entries[2].error);
    EXPECT_EQ(content(locks), "{\"_id\":3,\"holder\":\"me\"}\n");
}

TEST_P(StoreContract, ClaimNeedsIdsAndOperators) {
    const auto docs = collection("docs"), locks = collection("locks");
    std::vector<ClaimRequest::Candidate> candidates;
    candidates.push_back(candidate(1, "me"));
    candidates[0].update = json(R"({"whole": "document"})");
    const auto result = store_.claim(claim_of(docs, locks, std::move(candidates)));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::BadValue);
}

TEST_P(StoreContract, ClaimHasOneWinnerAmongRacingThreads) {
    constexpr std::int32_t kDocuments = 50;
    constexpr int kThreads = 6;
    const auto docs = collection("docs"), locks = collection("locks");
    std::vector<bson::Document> documents;
    std::vector<bson::DocumentView> views;
    for (std::int32_t i = 0; i < kDocuments; ++i)
        documents.push_back(bson::make("_id", i, "state", "waiting"));
    for (const auto& d : documents) views.push_back(d.view());
    ASSERT_TRUE(store_.insert(docs, views));

    std::atomic<std::int32_t> wins[kDocuments] = {};
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            std::vector<ClaimRequest::Candidate> candidates;
            for (std::int32_t i = 0; i < kDocuments; ++i)
                candidates.push_back(candidate(i, "node" + std::to_string(t)));
            const auto result = store_.claim(claim_of(docs, locks, std::move(candidates)));
            failures += result ? 0 : 1;
            for (std::size_t i = 0; result && i < result->entries.size(); ++i)
                wins[i] += result->entries[i].outcome == Outcome::Claimed ? 1 : 0;
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(failures, 0);
    for (std::int32_t i = 0; i < kDocuments; ++i) EXPECT_EQ(wins[i], 1) << i;
    EXPECT_EQ(store_.count(docs, json(R"({"state": "taken"})")).value_or_throw(), kDocuments);
    EXPECT_EQ(store_.count(locks, {}).value_or_throw(), kDocuments);
}

}  // namespace
}  // namespace angelia::store::contract
