// claim() on MongoDB: one unordered bulk wins locks, one unordered bulk changes the documents whose lock was won. Why so, and what a
// crash in between leaves: docs/decisions/claim.md.
#include "store_mongo/mongo_store.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/compare.h>

#include <algorithm>

namespace angelia::store::mongo {
namespace {

using Candidate = ClaimRequest::Candidate;
using Outcome = ClaimResult::Outcome;

/// A lock is inserted; with take_over it is replaced if it still has its exact old values. An upsert does both: a lock that exists
/// with other values makes it try an insert, which meets the duplicate `_id`.
BulkOp lock_operation(const Candidate& c) {
    BulkOp op;
    if (c.take_over) {
        op.kind = BulkOp::Kind::Update;
        op.update = {c.take_over->copy(), c.lock.copy(), false, true};
    } else {
        op.document = c.lock.copy();
    }
    return op;
}

BulkOp update_operation(const Candidate& c) {
    BulkOp op;
    op.kind = BulkOp::Kind::Update;
    op.update = {c.condition.copy(), c.update.copy(), false, false};
    return op;
}

/// Deletes the lock only while it is the one we wrote.
BulkOp release_operation(const Candidate& c) {
    BulkOp op;
    op.kind = BulkOp::Kind::Delete;
    op.remove = {c.lock.copy(), false};
    return op;
}

template <class Make>
Result<BulkResult> run_for(mongoc_client_t* client, const CollectionName& name, const ClaimRequest& request, const std::vector<std::size_t>& which, Make&& make,
                           const CallOptions& options) {
    if (which.empty()) return BulkResult{};
    std::vector<BulkOp> ops;
    for (const std::size_t i : which) ops.push_back(make(request.candidates[i]));
    std::vector<const BulkOp*> pointers;
    for (const auto& op : ops) pointers.push_back(&op);
    return run_bulk(client, name, pointers, false, options);
}

/// The values that the update sets with $set, if it has any: what tells a changed document from one that no longer matched.
std::optional<bson::DocumentView> set_values(const Candidate& c) {
    const auto set = c.update["$set"].get_document();
    return set && !set->empty() ? set : std::nullopt;
}

bool shows_update(bson::DocumentView document, const Candidate& c) {
    const auto set = set_values(c);
    if (!set) return false;
    return std::all_of(set->begin(), set->end(), [&](const bson::Element& e) {
        const bson::ValueView value = document.find_path(e.key);
        return value && bson::equal(value, e.value);
    });
}

/// The documents of `which`, in the order of candidates; nothing for those that are gone.
Result<std::vector<std::optional<bson::Document>>> fetch(mongoc_client_t* client, const ClaimRequest& request, const std::vector<std::size_t>& which,
                                                         const CallOptions& options) {
    bson::Builder filter;
    filter.open("_id").open_array("$in");
    for (const std::size_t i : which) filter.push(request.candidates[i].lock["_id"]);
    filter.close().close();
    FindRequest find;
    find.collection = request.documents;
    find.filter = filter.take();
    ANGELIA_TRY_ASSIGN(std::vector<bson::Document> found, find_documents(client, find, options));
    std::vector<std::optional<bson::Document>> out(which.size());
    std::sort(found.begin(), found.end(), [](const bson::Document& a, const bson::Document& b) { return bson::compare(a["_id"], b["_id"]) < 0; });
    for (std::size_t k = 0; k < which.size(); ++k) {
        const bson::ValueView id = request.candidates[which[k]].lock["_id"];
        const auto at = std::lower_bound(found.begin(), found.end(), id, [](const bson::Document& d, bson::ValueView v) { return bson::compare(d["_id"], v) < 0; });
        if (at != found.end() && bson::equal((*at)["_id"], id)) out[k] = at->copy();
    }
    return out;
}

}  // namespace

Result<ClaimResult> run_claim(mongoc_client_t* client, ClaimRequest& request, const CallOptions& options) {
    ClaimResult result;
    result.entries.resize(request.candidates.size());
    std::vector<std::size_t> all(request.candidates.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;

    // Locks. A duplicate key means that somebody else holds it; any other error fails the claim, and what was won is given back.
    ANGELIA_TRY_ASSIGN(const BulkResult locked, run_for(client, request.locks, request, all, lock_operation, options));
    std::vector<bool> lost(request.candidates.size());
    std::optional<Error> failure;
    for (const auto& error : locked.errors) {
        if (error.index < lost.size()) lost[error.index] = true;
        if (error.error.code != ErrorCode::DuplicateKey && !failure) failure = error.error;
    }
    std::vector<std::size_t> won;
    std::copy_if(all.begin(), all.end(), std::back_inserter(won), [&](std::size_t i) { return !lost[i]; });
    const auto give_back = [&](const std::vector<std::size_t>& which) { return run_for(client, request.locks, request, which, release_operation, options); };
    if (failure) {
        ANGELIA_TRY(give_back(won));
        return *std::move(failure);
    }
    if (won.empty()) return result;

    // Documents. An update that cannot be told apart afterwards runs alone.
    std::vector<std::size_t> together, alone, changed;
    for (const std::size_t i : won) (set_values(request.candidates[i]) ? together : alone).push_back(i);
    const auto fail = [&](Error error) -> Result<ClaimResult> {
        ANGELIA_TRY(give_back(won));
        return error;
    };
    for (const std::size_t i : alone) {
        const auto updated = run_for(client, request.documents, request, {i}, update_operation, options);
        if (!updated) return fail(updated.error());
        if (!updated->errors.empty()) return fail(updated->errors.front().error);
        if (updated->matched == 0) changed.push_back(i);
        result.entries[i].outcome = updated->matched == 0 ? Outcome::Changed : Outcome::Claimed;
    }
    const auto updated = run_for(client, request.documents, request, together, update_operation, options);
    if (!updated) return fail(updated.error());
    if (!updated->errors.empty()) return fail(updated->errors.front().error);
    const bool all_matched = updated->matched == static_cast<std::int64_t>(together.size());
    for (const std::size_t i : together) result.entries[i].outcome = Outcome::Claimed;

    if (request.return_documents || !all_matched) {
        ANGELIA_TRY_ASSIGN(auto documents, fetch(client, request, won, options));
        for (std::size_t k = 0; k < won.size(); ++k) {
            auto& entry = result.entries[won[k]];
            const Candidate& c = request.candidates[won[k]];
            if (entry.outcome == Outcome::Claimed && !all_matched && set_values(c) && !(documents[k] && shows_update(*documents[k], c))) {
                entry.outcome = Outcome::Changed;
                changed.push_back(won[k]);
            }
            if (entry.outcome == Outcome::Claimed && request.return_documents) entry.document = std::move(documents[k]);
        }
    }
    ANGELIA_TRY(give_back(changed));
    return result;
}

}  // namespace angelia::store::mongo
