// claim() in the engine: for each candidate lock, document and, if the document did not match, the
// lock's release, all in one commit.
#include "store_embedded/adapter.h"
#include "store_embedded/write_list.h"

#include "engine/query/matcher.h"
#include "engine/query/update.h"

#include <angelia/bson/builder.h>

namespace angelia::store_embedded {
namespace {

using engine::ConditionalWrite;
using Candidate = store::ClaimRequest::Candidate;
using Outcome = store::ClaimResult::Outcome;

// Three writes each; the engine commits up to 1000 writes of a list together, so that no claim is
// torn.
constexpr std::size_t kCandidatesPerCommit = 300;

/// Positions of one candidate's writes in the list.
struct Steps {
    std::size_t candidate;
    std::size_t lock, document;
};

/// A lock is inserted; with take_over it is replaced if it still has its exact old values. An
/// upsert does both: a lock that exists with other values makes it try an insert, which meets the
/// duplicate `_id`.
Result<ConditionalWrite> lock_write(const engine::Namespace& ns, const Candidate& c) {
    if (!c.take_over) return to_write(ns, c.lock.view());
    return to_write(ns, store::UpdateOp{c.take_over->copy(), c.lock.copy(), false, true});
}

Result<void> append(std::vector<ConditionalWrite>& writes, const store::ClaimRequest& request,
                    const Candidate& c, Steps& steps) {
    ANGELIA_TRY_ASSIGN(ConditionalWrite lock, lock_write(to_namespace(request.locks), c));
    ANGELIA_TRY_ASSIGN(
        ConditionalWrite document,
        to_write(to_namespace(request.documents),
                 store::UpdateOp{c.condition.copy(), c.update.copy(), false, false}));
    ANGELIA_TRY_ASSIGN(ConditionalWrite release,
                       to_write(to_namespace(request.locks),
                                store::DeleteOp{bson::make("_id", c.lock["_id"]), false}));
    steps.lock = writes.size();
    steps.document = steps.lock + 1;
    if (request.return_documents) document.image = engine::ReturnImage::After;
    document.only_if = steps.lock;
    release.only_if = steps.lock;
    release.unless = steps.document;
    writes.push_back(std::move(lock));
    writes.push_back(std::move(document));
    writes.push_back(std::move(release));
    return {};
}

void take_outcome(engine::WriteOutcome& lock, engine::WriteOutcome& document,
                  store::ClaimResult::Entry& entry) {
    if (lock.error || document.skipped) {
        if (lock.error && lock.error->code != ErrorCode::DuplicateKey)
            entry.error = std::move(lock.error);
        return;  // Locked
    }
    entry.outcome = document.modified > 0 ? Outcome::Claimed : Outcome::Changed;
    if (document.error) entry.error = std::move(document.error);
    if (entry.outcome == Outcome::Claimed) entry.document = std::move(document.image);
}

}  // namespace

Result<store::ClaimResult> EmbeddedStore::claim(store::ClaimRequest request,
                                                const store::CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    store::ClaimResult result;
    result.entries.resize(request.candidates.size());
    for (std::size_t begin = 0; begin < request.candidates.size(); begin += kCandidatesPerCommit) {
        const std::size_t end = std::min(request.candidates.size(), begin + kCandidatesPerCommit);
        std::vector<ConditionalWrite> writes;
        std::vector<Steps> all;
        writes.reserve(3 * (end - begin));
        for (std::size_t i = begin; i < end; ++i) {
            Steps steps{i, 0, 0};
            if (auto appended = append(writes, request, request.candidates[i], steps); !appended) {
                result.entries[i].outcome = Outcome::Changed;
                result.entries[i].error = std::move(appended).error();
                continue;
            }
            all.push_back(steps);
        }
        if (writes.empty()) continue;
        ANGELIA_TRY_ASSIGN(engine::WriteResult done,
                           write(*target, std::move(writes), false, options));
        for (const Steps& steps : all)
            take_outcome(done.outcomes[steps.lock], done.outcomes[steps.document],
                         result.entries[steps.candidate]);
    }
    return result;
}

}  // namespace angelia::store_embedded
