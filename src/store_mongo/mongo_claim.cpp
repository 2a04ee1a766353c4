// claim() on MongoDB: locks are won first, then the documents whose lock was won are changed. Where
// the server has bulkWrite, both in one command; else, and for what that left undone, one unordered
// bulk each. Why so, and what a crash in between leaves: docs/decisions/0010-claim.md.
#include "store_mongo/driver_error.h"
#include "store_mongo/mongo_store.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/compare.h>

#include <algorithm>

namespace angelia::store::mongo {
namespace {

using Candidate = ClaimRequest::Candidate;
using Outcome = ClaimResult::Outcome;

/// A lock is inserted; with take_over it is replaced if it still has its exact old values. An
/// upsert does both: a lock that exists with other values makes it try an insert, which meets the
/// duplicate `_id`.
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
Result<BulkResult> run_for(Connection client, const CollectionName& name,
                           const ClaimRequest& request, const std::vector<std::size_t>& which,
                           Make&& make, const CallOptions& options) {
    if (which.empty()) return BulkResult{};
    std::vector<BulkOp> ops;
    for (const std::size_t i : which) ops.push_back(make(request.candidates[i]));
    std::vector<const BulkOp*> pointers;
    for (const auto& op : ops) pointers.push_back(&op);
    return run_bulk(client, name, pointers, false, options);
}

/// The values that the update sets with $set, if it has any: what tells a changed document from one
/// that no longer matched.
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
Result<std::vector<std::optional<bson::Document>>> fetch(Connection client,
                                                         const ClaimRequest& request,
                                                         const std::vector<std::size_t>& which,
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
    std::sort(found.begin(), found.end(), [](const bson::Document& a, const bson::Document& b) {
        return bson::compare(a["_id"], b["_id"]) < 0;
    });
    for (std::size_t k = 0; k < which.size(); ++k) {
        const bson::ValueView id = request.candidates[which[k]].lock["_id"];
        const auto at = std::lower_bound(found.begin(), found.end(), id,
                                         [](const bson::Document& d, bson::ValueView v) {
                                             return bson::compare(d["_id"], v) < 0;
                                         });
        if (at != found.end() && bson::equal((*at)["_id"], id)) out[k] = at->copy();
    }
    return out;
}

/// `index`: of the candidate in the bulk that `done` answers.
void note_update(ClaimResult::Entry& entry, bool effective, const BulkResult& done,
                 std::size_t index) {
    entry.outcome = effective ? Outcome::Claimed : Outcome::Changed;
    for (const auto& error : done.errors) {
        if (error.index != index) continue;
        entry.outcome = Outcome::Changed;
        entry.error = error.error;
    }
}

/// The updates' fate is unknown: locks that we can still reach are given back, the others end with
/// their lease.
Result<ClaimResult> give_back_and_fail(Connection client, const ClaimRequest& request,
                                       const std::vector<std::size_t>& won,
                                       const CallOptions& options, Error error) {
    ANGELIA_TRY(run_for(client, request.locks, request, won, release_operation, options));
    return error;
}

}  // namespace

namespace {

/// What is known of each candidate on the way through run_claim().
struct ClaimProgress {
    enum class Lock : std::uint8_t { Untried, Won, Lost };
    std::vector<Lock> locks;
    std::vector<bool> updated;  ///< the update ran, with an outcome

    std::vector<std::size_t> with(Lock lock) const {
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < locks.size(); ++i) {
            if (locks[i] == lock) out.push_back(i);
        }
        return out;
    }
};
using LockState = ClaimProgress::Lock;

/// Nearly always nobody else wants the same messages, and all locks and all updates succeed: one
/// ordered command then, which ends at the first lock of somebody else. What it left undone goes
/// the long way. An error that leaves open what took effect makes our own locks ones to take over.
Result<void> claim_in_one_command(Connection client, Learned& learned, ClaimRequest& request,
                                  const CallOptions& options, ClaimProgress& progress,
                                  ClaimResult& result) {
    constexpr int kLongWayAfterLoss = 16;
    if (client.session) return {};  // a driver's command, which knows of the session
    if (learned.claims_contended.load() > 0) {
        --learned.claims_contended;
        return {};
    }
    const std::size_t n = request.candidates.size();
    std::vector<BulkOp> ops;
    for (const auto& c : request.candidates) {
        ops.push_back(lock_operation(c));
        ops.back().collection = request.locks;
    }
    for (const auto& c : request.candidates) {
        ops.push_back(update_operation(c));
        ops.back().collection = request.documents;
    }
    std::vector<const BulkOp*> pointers;
    for (const auto& op : ops) pointers.push_back(&op);
    auto done = run_bulk_command(client, learned, pointers, true, options);
    if (!done) return {};
    if (!*done) {
        if (!leaves_open(done->error())) return done->error();
        for (auto& c : request.candidates) {
            if (!c.take_over) c.take_over = c.lock.copy();
        }
        return {};
    }
    BulkResult& bulk = **done;
    const std::size_t ended = bulk.errors.empty() ? 2 * n : bulk.errors.front().index;
    for (std::size_t i = 0; i < n; ++i) {
        if (i < ended) progress.locks[i] = LockState::Won;
        if (n + i >= ended) continue;
        progress.updated[i] = true;
        result.entries[i].outcome = bulk.effective[n + i] ? Outcome::Claimed : Outcome::Changed;
    }
    if (bulk.errors.empty()) return {};
    Error& error = bulk.errors.front().error;
    if (ended >= n) {
        progress.updated[ended - n] = true;
        result.entries[ended - n].outcome = Outcome::Changed;
        result.entries[ended - n].error = std::move(error);
        return {};
    }
    learned.claims_contended = kLongWayAfterLoss;
    progress.locks[ended] = LockState::Lost;
    if (error.code != ErrorCode::DuplicateKey) result.entries[ended].error = std::move(error);
    return {};
}

/// Locks of those that have not tried yet. A duplicate key means that somebody else holds it.
Result<void> claim_locks(Connection client, const ClaimRequest& request, const CallOptions& options,
                         ClaimProgress& progress, ClaimResult& result) {
    const auto untried = progress.with(LockState::Untried);
    ANGELIA_TRY_ASSIGN(BulkResult locked,
                       run_for(client, request.locks, request, untried, lock_operation, options));
    for (const std::size_t i : untried) progress.locks[i] = LockState::Won;
    for (auto& error : locked.errors) {
        if (error.index >= untried.size()) continue;
        const std::size_t i = untried[error.index];
        progress.locks[i] = LockState::Lost;
        if (error.error.code != ErrorCode::DuplicateKey)
            result.entries[i].error = std::move(error.error);
    }
    return {};
}

}  // namespace

Result<ClaimResult> run_claim(Connection client, Learned& learned, ClaimRequest& request,
                              const CallOptions& options) {
    ClaimResult result;
    result.entries.resize(request.candidates.size());
    ClaimProgress progress;
    progress.locks.resize(request.candidates.size(), LockState::Untried);
    progress.updated.resize(request.candidates.size());
    ANGELIA_TRY(claim_in_one_command(client, learned, request, options, progress, result));
    ANGELIA_TRY(claim_locks(client, request, options, progress, result));
    const std::vector<std::size_t> won = progress.with(LockState::Won);
    if (won.empty()) return result;

    // Documents. Where $set gives no values to tell a changed document by, the update runs alone.
    std::vector<std::size_t> together, changed;
    for (const std::size_t i : won) {
        if (!progress.updated[i] && set_values(request.candidates[i])) {
            together.push_back(i);
            continue;
        }
        if (!progress.updated[i]) {
            auto updated =
                run_for(client, request.documents, request, {i}, update_operation, options);
            if (!updated) return give_back_and_fail(client, request, won, options, updated.error());
            note_update(result.entries[i], updated->modified > 0, *updated, 0);
        }
        if (result.entries[i].outcome == Outcome::Changed) changed.push_back(i);
    }
    auto updated = run_for(client, request.documents, request, together, update_operation, options);
    if (!updated) return give_back_and_fail(client, request, won, options, updated.error());
    const bool all_changed = updated->modified == static_cast<std::int64_t>(together.size());
    for (std::size_t k = 0; k < together.size(); ++k)
        note_update(result.entries[together[k]], true, *updated, k);

    if (request.return_documents || !all_changed) {
        ANGELIA_TRY_ASSIGN(auto documents, fetch(client, request, won, options));
        for (std::size_t k = 0; k < won.size(); ++k) {
            auto& entry = result.entries[won[k]];
            const Candidate& c = request.candidates[won[k]];
            const bool in_doubt = !all_changed && !progress.updated[won[k]] && set_values(c) &&
                                  entry.outcome == Outcome::Claimed;
            if (in_doubt && !(documents[k] && shows_update(*documents[k], c)))
                entry.outcome = Outcome::Changed;
            if (entry.outcome == Outcome::Claimed && request.return_documents)
                entry.document = std::move(documents[k]);
        }
    }
    for (const std::size_t i : together) {
        if (result.entries[i].outcome == Outcome::Changed) changed.push_back(i);
    }
    ANGELIA_TRY(run_for(client, request.locks, request, changed, release_operation, options));
    return result;
}

}  // namespace angelia::store::mongo
