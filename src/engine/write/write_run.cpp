// The frame: batches, rollback, searches outside. What a single write does is in
// write_evaluate.cpp.
#include "engine/write/write_run.h"

#include "engine/session/session_table.h"

#include <fmt/format.h>

#include <set>

namespace angelia::engine {

WriteRun::WriteRun(Core& core, WriteRequest request) : core_(core), request_(std::move(request)) {
    outcomes_.resize(request_.writes.size());
    prepared_.resize(request_.writes.size());
}

Result<void> WriteRun::check_request() const {
    const auto& writes = request_.writes;
    if (writes.empty() || writes.size() > kWritesMax)
        return Error(ErrorCode::InvalidLength,
                     fmt::format("Write batch sizes must be between 1 and {}. Got {} operations.",
                                 kWritesMax, writes.size()));
    const Namespace* checked = nullptr;
    for (std::size_t i = 0; i < writes.size(); ++i) {
        const auto& write = writes[i];
        if (!checked || *checked != write.ns) ANGELIA_TRY(check_namespace(write.ns));
        checked = &write.ns;
        if ((write.only_if && *write.only_if >= i) || (write.unless && *write.unless >= i))
            return Error(
                ErrorCode::BadValue,
                fmt::format("write {} depends on a write that does not stand before it", i));
        if (write.kind != WriteKind::Insert && !write.filter)
            return Error(ErrorCode::BadValue, fmt::format("write {} has no filter", i));
        if (write.kind == WriteKind::Update && !write.update)
            return Error(ErrorCode::BadValue, fmt::format("write {} has no update", i));
        if (request_.retry && write.multi)
            return Error(ErrorCode::InvalidOptions, "Cannot use retryable writes with multi=true");
    }
    return {};
}

void WriteRun::prepare(std::size_t from, std::size_t to) {
    CollectionPtr collection;
    for (std::size_t i = from; i < to; ++i) {
        auto& write = request_.writes[i];
        auto& prepared = prepared_[i];
        if (write.kind != WriteKind::Insert || prepared.done) continue;
        prepared.done = true;
        auto document = prepare_insert(std::move(write.document));
        if (!document) {
            prepared.error = std::move(document).error();
            continue;
        }
        write.document = std::move(document).value();
        if (!collection || collection->ns != write.ns) collection = core_.catalog.find(write.ns);
        if (!collection) continue;
        auto keys = keys_of_document(*collection, write.document);
        if (!keys) {
            prepared.error = std::move(keys).error();
            continue;
        }
        prepared.keys = {collection->index_generation, std::move(keys).value()};
    }
}

Result<void> WriteRun::run(WaiterId waiter) {
    waiter_ = waiter;
    ANGELIA_TRY(check_request());
    return request_.statement ? run_in_transaction() : run_plain();
}

Result<void> WriteRun::run_plain() {
    while (next_ < request_.writes.size()) {
        ANGELIA_TRY(core_.check_open());
        ANGELIA_TRY(check_deadline(core_, request_.deadline));
        const auto size = request_.writes.size();
        prepare(next_, request_.atomic ? size : std::min(size, next_ + kBatchWritesMax));
        start_batch();
        auto step = run_batch();
        if (!step) {
            if (blocked_on(step.error())) take_back_batch();
            return std::move(step).error();
        }
        if (*step == Step::SearchOutside) ANGELIA_TRY(search_outside(next_));
        if (*step == Step::SearchOutside && request_.atomic) next_ = 0;
    }
    if (position_.sequence == 0) position_ = core_.storage->applied();
    return {};
}

void WriteRun::start_batch() {
    batch_first_ = next_;
    batch_progress_ = progress_;
    batch_matched_ = outcomes_[next_].matched;
    batch_modified_ = outcomes_[next_].modified;
}

void WriteRun::take_back_batch() {
    for (std::size_t i = batch_first_; i < outcomes_.size(); ++i) outcomes_[i] = WriteOutcome{};
    next_ = batch_first_;
    outcomes_[next_].matched = batch_matched_;
    outcomes_[next_].modified = batch_modified_;
    progress_ = std::move(batch_progress_);
    // What was found outside may be others' by the time this runs again.
    if (!progress_) outside_.clear();
    searches_ = 0;
}

Result<WriteRun::Step> WriteRun::run_batch() {
    ApplyScope scope(core_, waiter_);
    if (request_.atomic) scope.make_atomic();
    if (request_.retry) ANGELIA_TRY(core_.retries.check(scope.section(), *request_.retry));
    PendingStatements statements;
    applied_in_batch_ = 0;
    Step last = Step::Finished;
    const std::size_t first = next_;
    // Alone in its batch a failed write is undone by throwing the batch away; an insert fails
    // before it puts anything.
    const auto needs_mark = [&](std::size_t i) {
        return !request_.atomic && request_.writes.size() > 1 &&
               (request_.writes[i].kind != WriteKind::Insert || request_.before_commit);
    };
    bool failed_alone = false;
    const auto ready = [&](std::size_t i) {
        return request_.writes[i].kind != WriteKind::Insert || prepared_[i].done;
    };
    while (next_ < request_.writes.size() && ready(next_)) {
        if (!request_.atomic && next_ != first &&
            (applied_in_batch_ >= kBatchWritesMax || scope.bytes() >= kBatchBytesMax))
            break;
        const auto mark = needs_mark(next_) ? scope.mark() : nullptr;
        const auto statement_mark = statements.results.size();
        auto step = evaluate(scope, next_, statements);
        if (!step && blocked_on(step.error())) return std::move(step).error();
        if (step && request_.atomic && scope.bytes() > kAtomicBytesMax)
            step = Error(
                ErrorCode::TransactionTooLarge,
                fmt::format("an atomic list of writes is limited to {} bytes", kAtomicBytesMax));
        if (!step) {
            if (request_.atomic) {
                fail_atomic(next_, std::move(step).error());
                return Step::Finished;
            }
            if (mark) scope.rollback(*mark);
            statements.results.resize(statement_mark);
            failed_alone = request_.writes.size() == 1;
            if (step.error().code == ErrorCode::DuplicateKey) ++core_.counters.duplicate_keys;
            auto& outcome = outcomes_[next_];
            outcome = WriteOutcome{};
            outcome.error = std::move(step).error();
            progress_.reset();
            searches_ = 0;
            ++next_;
            if (request_.ordered) skip_rest();
            continue;
        }
        last = *step;
        if (last != Step::Finished) break;
        progress_.reset();
        if (!request_.atomic) searches_ = 0;
        ++next_;
    }
    if (last == Step::SearchOutside && request_.atomic) {
        for (auto& outcome : outcomes_) outcome = WriteOutcome{};
        progress_.reset();
        return last;
    }
    if (!scope.changed() || failed_alone) {
        // What was found out here may rest on others' writes behind our last batch: the answer
        // waits for those, too.
        position_ = core_.storage->applied();
        return last;
    }
    ANGELIA_TRY_ASSIGN(position_, scope.commit(request_.retry ? &*request_.retry : nullptr,
                                               std::move(statements)));
    return last;
}

void WriteRun::fail_atomic(std::size_t i, Error error) {
    if (error.code == ErrorCode::DuplicateKey) ++core_.counters.duplicate_keys;
    for (auto& outcome : outcomes_) {
        outcome = WriteOutcome{};
        outcome.skipped = true;
    }
    outcomes_[i].skipped = false;
    outcomes_[i].error = std::move(error);
    next_ = request_.writes.size();
}

void WriteRun::skip_rest() {
    for (; next_ < outcomes_.size(); ++next_) outcomes_[next_].skipped = true;
}

Result<void> WriteRun::search_outside(std::size_t i) {
    ++searches_;
    ++core_.counters.outside_searches;
    if (searches_ > 1) ++core_.counters.searches_repeated;
    const auto& write = request_.writes[i];
    const Transaction* own = request_.statement ? &request_.statement->transaction() : nullptr;
    auto collection = own ? own->catalog()->find(write.ns) : core_.catalog.find(write.ns);
    if (!collection) return {};  // dropped meanwhile: found out inside
    auto targets = search_targets(core_, own ? own->reader() : core_.storage->latest(),
                                  own ? SearchView::Snapshot : SearchView::Latest, collection,
                                  write, 0, request_.deadline);
    if (!targets) {
        // An error of the search is the write's own; the search inside will meet it again unless it
        // came from a dropped index.
        if (targets.error().code == ErrorCode::MaxTimeMSExpired) return std::move(targets).error();
        searches_ = kSearchesOutsideMax;
        return {};
    }
    outside_[i] = std::move(targets).value();
    return {};
}

WriteScope::RetryReference WriteRun::retry_reference(std::size_t i) const {
    if (!request_.retry) return {};
    return {request_.retry->lsid.view(), request_.retry->txn_number, stmt_id(i)};
}

std::int32_t WriteRun::stmt_id(std::size_t i) const {
    const auto id = request_.writes[i].stmt_id;
    return id >= 0 ? id : static_cast<std::int32_t>(i);
}

bool WriteRun::took_effect(std::size_t i) const {
    const auto& outcome = outcomes_[i];
    if (outcome.error || outcome.skipped) return false;
    if (request_.writes[i].kind == WriteKind::Update)
        return outcome.modified > 0 || !outcome.upserted_id.is_missing();
    return outcome.matched > 0;
}

}  // namespace angelia::engine
